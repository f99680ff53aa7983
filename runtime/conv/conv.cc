#include "conv/kernels.h"
#include "conv/primitives.h"
#include "conv/problem.h"

namespace gradsmith::conv {
namespace {

template <typename Ref>
bool IsPresent(const Ref* tensor) {
  return tensor != nullptr && tensor->present;
}

const ConstTensorRef* PresentOrNull(const ConstTensorRef* tensor) {
  return IsPresent(tensor) ? tensor : nullptr;
}

}  // namespace

Status Conv::RunCpu(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  const Result<Problem> problem = ConvolutionProblem(attributes, *inputs.X, *inputs.W);
  if (!problem.ok()) {
    return problem.status();
  }
  Forward(
      context, WithStrides(*problem, inputs.X->strides, inputs.W->strides, outputs.Y->strides),
      inputs.X->data, inputs.W->data, PresentOrNull(inputs.B), outputs.Y->data);
  return {};
}

Status ConvGrad::RunCpu(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  const Result<Problem> problem = ConvolutionProblem(attributes, *inputs.X, *inputs.W);
  if (!problem.ok()) {
    return problem.status();
  }
  if (IsPresent(outputs.dX)) {
    BackwardData(
        context, WithStrides(*problem, outputs.dX->strides, inputs.W->strides, inputs.dY->strides),
        inputs.dY->data, inputs.W->data, nullptr, outputs.dX->data);
  }
  if (IsPresent(outputs.dW)) {
    BackwardFilter(
        context, WithStrides(*problem, inputs.X->strides, outputs.dW->strides, inputs.dY->strides),
        inputs.X->data, inputs.dY->data, outputs.dW->data);
  }
  if (IsPresent(outputs.dB)) {
    BackwardBias(context, *inputs.dY, *outputs.dB);
  }
  return {};
}

Status ConvTranspose::RunCpu(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  const Result<Problem> problem = TransposedProblem(attributes, *inputs.X, *inputs.W);
  if (!problem.ok()) {
    return problem.status();
  }
  BackwardData(
      context, WithStrides(*problem, outputs.Y->strides, inputs.W->strides, inputs.X->strides),
      inputs.X->data, inputs.W->data, PresentOrNull(inputs.B), outputs.Y->data);
  return {};
}

Status ConvTransposeGrad::RunCpu(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  const Result<Problem> problem = TransposedProblem(attributes, *inputs.X, *inputs.W);
  if (!problem.ok()) {
    return problem.status();
  }
  if (IsPresent(outputs.dX)) {
    Forward(
        context, WithStrides(*problem, inputs.dY->strides, inputs.W->strides, outputs.dX->strides),
        inputs.dY->data, inputs.W->data, nullptr, outputs.dX->data);
  }
  if (IsPresent(outputs.dW)) {
    BackwardFilter(
        context, WithStrides(*problem, inputs.dY->strides, outputs.dW->strides, inputs.X->strides),
        inputs.dY->data, inputs.X->data, outputs.dW->data);
  }
  if (IsPresent(outputs.dB)) {
    BackwardBias(context, *inputs.dY, *outputs.dB);
  }
  return {};
}

}  // namespace gradsmith::conv
