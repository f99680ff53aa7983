#include <array>
#include <string_view>

#include "cuda/kernel_images.h"
#include "cuda/run_op.h"
#include "elementwise/kernels.h"
#include "patterns/cuda/map.h"

namespace gradsmith::elementwise {

namespace {

constexpr std::array kTable = {cuda::MapBy<cuda::kImage_elementwise_map>};
constexpr cuda::FamilyOnCuda kFamily = {.table = kTable};

constexpr std::array<std::string_view, 2> kSigmoidOperands = {"X", "Y"};
constexpr cuda::OpInfo kSigmoid = {.name = "Sigmoid", .operands = kSigmoidOperands, .inputs = 1};
constexpr std::array<std::string_view, 3> kSigmoidGradOperands = {"dY", "Y", "dX"};
constexpr cuda::OpInfo kSigmoidGrad = {
    .name = "SigmoidGrad",
    .operands = kSigmoidGradOperands,
    .inputs = 2};
constexpr std::array<std::string_view, 2> kLeakyReluOperands = {"X", "Y"};
constexpr cuda::OpInfo kLeakyRelu = {
    .name = "LeakyRelu",
    .operands = kLeakyReluOperands,
    .inputs = 1};
constexpr std::array<std::string_view, 3> kLeakyReluGradOperands = {"dY", "X", "dX"};
constexpr cuda::OpInfo kLeakyReluGrad = {
    .name = "LeakyReluGrad",
    .operands = kLeakyReluGradOperands,
    .inputs = 2};

}  // namespace

Status Sigmoid::RunCuda(
    const Context& context,
    const Attributes& /*attributes*/,
    const Inputs& inputs,
    const Outputs& outputs) {
  return cuda::RunOp(context, kFamily, cuda::MakeOpTask(kSigmoid, inputs.X, outputs.Y));
}

Status SigmoidGrad::RunCuda(
    const Context& context,
    const Attributes& /*attributes*/,
    const Inputs& inputs,
    const Outputs& outputs) {
  return cuda::RunOp(
      context, kFamily, cuda::MakeOpTask(kSigmoidGrad, inputs.dY, inputs.Y, outputs.dX));
}

Status LeakyRelu::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  cuda::OpTask task = cuda::MakeOpTask(kLeakyRelu, inputs.X, outputs.Y);
  task.scalars.push_back(attributes.alpha);
  return cuda::RunOp(context, kFamily, task);
}

Status LeakyReluGrad::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  cuda::OpTask task = cuda::MakeOpTask(kLeakyReluGrad, inputs.dY, inputs.X, outputs.dX);
  task.scalars.push_back(attributes.alpha);
  return cuda::RunOp(context, kFamily, task);
}

}  // namespace gradsmith::elementwise
