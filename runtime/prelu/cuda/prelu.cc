#include <array>
#include <string_view>

#include "cuda/kernel_images.h"
#include "cuda/run_op.h"
#include "patterns/cuda/map.h"
#include "prelu/kernels.h"

namespace gradsmith::prelu {

namespace {

constexpr std::array kTable = {cuda::MapBy<cuda::kImage_prelu_map, /*kSums=*/true>};
constexpr cuda::FamilyOnCuda kFamily = {.table = kTable};

constexpr std::array<std::string_view, 3> kOperands = {"X", "slope", "Y"};
constexpr cuda::OpInfo kPRelu = {.name = "PRelu", .operands = kOperands, .inputs = 2};
constexpr std::array<std::string_view, 5> kGradOperands = {"dY", "X", "slope", "dX", "dSlope"};
constexpr cuda::OpInfo kPReluGrad = {.name = "PReluGrad", .operands = kGradOperands, .inputs = 3};

}  // namespace

Status PRelu::RunCuda(
    const Context& context,
    const Attributes& /*attributes*/,
    const Inputs& inputs,
    const Outputs& outputs) {
  return cuda::RunOp(context, kFamily, cuda::MakeOpTask(kPRelu, inputs.X, inputs.slope, outputs.Y));
}

Status PReluGrad::RunCuda(
    const Context& context,
    const Attributes& /*attributes*/,
    const Inputs& inputs,
    const Outputs& outputs) {
  return cuda::RunOp(
      context, kFamily,
      cuda::MakeOpTask(kPReluGrad, inputs.dY, inputs.X, inputs.slope, outputs.dX, outputs.dSlope));
}

}  // namespace gradsmith::prelu
