#include "softmax/axes.h"
#include "softmax/functors.h"
#include "softmax/kernels.h"

namespace gradsmith::softmax {

using internal::RowsOnCpu;

Status Softmax::RunCpu(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return RowsOnCpu<SoftmaxRows>(context, AxesOf(attributes, *inputs.X), {}, inputs.X, outputs.Y);
}

Status SoftmaxGrad::RunCpu(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return RowsOnCpu<SoftmaxGradRows>(
      context, AxesOf(attributes, *inputs.Y), {}, inputs.dY, inputs.Y, outputs.dX);
}

Status LogSoftmax::RunCpu(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return RowsOnCpu<LogSoftmaxRows>(context, AxesOf(attributes, *inputs.X), {}, inputs.X, outputs.Y);
}

Status LogSoftmaxGrad::RunCpu(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return RowsOnCpu<LogSoftmaxGradRows>(
      context, AxesOf(attributes, *inputs.Y), {}, inputs.dY, inputs.Y, outputs.dX);
}

}  // namespace gradsmith::softmax
