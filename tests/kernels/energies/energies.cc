#include "cuda/kernel_images.h"
#include "energies/functors.h"
#include "energies/kernels.h"
#include "energies/operands.h"
#include "energies/shape_rules.h"
#include "patterns/run_functor.h"
#include "pool/problem.h"

namespace gradsmith::energies {

namespace {

using internal::FunctorKernels;

constexpr FunctorKernels kEnergyPool = {
    .name = "EnergyPool",
    .operands = operands::EnergyPool::kNames,
    .image = &cuda::kImage_energy_windows};
constexpr FunctorKernels kEnergyPoolGrad = {
    .name = "EnergyPoolGrad",
    .operands = operands::EnergyPoolGrad::kNames,
    .image = &cuda::kImage_energy_windows};

pool::WindowAttributes WindowsOf(const PoolAttributes& attributes) {
  return {.kernel_shape = attributes.kernel_shape, .strides = attributes.strides};
}

}  // namespace

Result<Dims> OutputSpatial(const PoolAttributes& attributes, const Dims& D) {
  return internal::SizesBy<rules::OutputSpatial>(attributes, D);
}

Status EnergyPool::Run(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return internal::ReduceWindowsOnBackend<EnergyPoolWindow>(
      context, kEnergyPool, pool::WindowsOver(WindowsOf(attributes), inputs.X->dims), inputs.X,
      outputs.Y);
}

Status EnergyPoolGrad::Run(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return internal::GatherWindowsOnBackend<EnergyPoolGradWindows>(
      context, kEnergyPoolGrad, pool::WindowsOver(WindowsOf(attributes), inputs.X->dims), inputs.dY,
      inputs.X, outputs.dX);
}

}  // namespace gradsmith::energies
