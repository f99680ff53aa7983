#include <array>
#include <string_view>

#include "cuda/kernel_images.h"
#include "cuda/run_op.h"
#include "patterns/cuda/rows.h"
#include "softmax/axes.h"
#include "softmax/functors.h"
#include "softmax/kernels.h"

namespace gradsmith::softmax {

namespace {

constexpr std::array<std::string_view, 2> kOperands = {"X", "Y"};
constexpr std::array<std::string_view, 3> kGradOperands = {"dY", "Y", "dX"};

template <typename Functor>
Status Run(const Context& context, const RowsAxes& axes, cuda::OpTask task) {
  static constexpr std::array kTable = {cuda::RowsBy<Functor, cuda::kImage_softmax_rows>};
  static constexpr cuda::FamilyOnCuda kFamily = {.table = kTable};
  cuda::AddAxes(axes, &task);
  return cuda::RunOp(context, kFamily, task);
}

}  // namespace

Status Softmax::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  static constexpr cuda::OpInfo kOp = {.name = "Softmax", .operands = kOperands, .inputs = 1};
  return Run<SoftmaxRows>(
      context, AxesOf(attributes, *inputs.X), cuda::MakeOpTask(kOp, inputs.X, outputs.Y));
}

Status SoftmaxGrad::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  static constexpr cuda::OpInfo kOp = {
      .name = "SoftmaxGrad", .operands = kGradOperands, .inputs = 2};
  return Run<SoftmaxGradRows>(
      context, AxesOf(attributes, *inputs.Y),
      cuda::MakeOpTask(kOp, inputs.dY, inputs.Y, outputs.dX));
}

Status LogSoftmax::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  static constexpr cuda::OpInfo kOp = {.name = "LogSoftmax", .operands = kOperands, .inputs = 1};
  return Run<LogSoftmaxRows>(
      context, AxesOf(attributes, *inputs.X), cuda::MakeOpTask(kOp, inputs.X, outputs.Y));
}

Status LogSoftmaxGrad::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  static constexpr cuda::OpInfo kOp = {
      .name = "LogSoftmaxGrad", .operands = kGradOperands, .inputs = 2};
  return Run<LogSoftmaxGradRows>(
      context, AxesOf(attributes, *inputs.Y),
      cuda::MakeOpTask(kOp, inputs.dY, inputs.Y, outputs.dX));
}

}  // namespace gradsmith::softmax
