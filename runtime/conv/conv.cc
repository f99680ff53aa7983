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

/// Runs a primitive on its tensors, one of which is its result.
Status Run(
    const Context& context,
    Primitive primitive,
    const Problem& problem,
    const ConstTensorRef& x,
    const ConstTensorRef& w,
    const ConstTensorRef& y,
    const ConstTensorRef* bias = nullptr) {
  return RunPrimitive(
      context, primitive, WithStrides(problem, x.strides, w.strides, y.strides),
      {const_cast<void*>(x.data), const_cast<void*>(w.data), const_cast<void*>(y.data)}, bias);
}

/// What one of the gradients may be asked for.
struct Gradients {
  const TensorRef* dX;
  const TensorRef* dW;
  const TensorRef* dB;
};

/// Computes those outputs that are wanted, by `data` and `filter`, which are given where the result
/// goes.
template <typename Data, typename Filter>
Status RunGradients(
    const Context& context,
    const ConstTensorRef& dY,
    const Gradients& gradients,
    const Data& data,
    const Filter& filter) {
  Status status;
  if (IsPresent(gradients.dX)) {
    status = data(*gradients.dX);
  }
  if (status.ok() && IsPresent(gradients.dW)) {
    status = filter(*gradients.dW);
  }
  if (status.ok() && IsPresent(gradients.dB)) {
    BackwardBias(context, dY, *gradients.dB);
  }
  return status;
}

}  // namespace

Status Conv::RunCpu(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  const Result<Problem> problem = ConvolutionProblem(attributes, inputs, outputs);
  if (!problem.ok()) {
    return problem.status();
  }
  return Run(
      context, Primitive::kForward, *problem, *inputs.X, *inputs.W, *outputs.Y,
      PresentOrNull(inputs.B));
}

Status ConvGrad::RunCpu(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  const Result<Problem> problem = ConvolutionProblem(attributes, inputs, outputs);
  if (!problem.ok()) {
    return problem.status();
  }
  return RunGradients(
      context, *inputs.dY, {outputs.dX, outputs.dW, outputs.dB},
      [&](const TensorRef& dX) {
        return Run(context, Primitive::kBackwardData, *problem, dX, *inputs.W, *inputs.dY);
      },
      [&](const TensorRef& dW) {
        return Run(context, Primitive::kBackwardFilter, *problem, *inputs.X, dW, *inputs.dY);
      });
}

Status ConvTranspose::RunCpu(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  const Result<Problem> problem = TransposedProblem(attributes, inputs, outputs);
  if (!problem.ok()) {
    return problem.status();
  }
  return Run(
      context, Primitive::kBackwardData, *problem, *outputs.Y, *inputs.W, *inputs.X,
      PresentOrNull(inputs.B));
}

Status ConvTransposeGrad::RunCpu(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  const Result<Problem> problem = TransposedProblem(attributes, inputs, outputs);
  if (!problem.ok()) {
    return problem.status();
  }
  return RunGradients(
      context, *inputs.dY, {outputs.dX, outputs.dW, outputs.dB},
      [&](const TensorRef& dX) {
        return Run(context, Primitive::kForward, *problem, *inputs.dY, *inputs.W, dX);
      },
      [&](const TensorRef& dW) {
        return Run(context, Primitive::kBackwardFilter, *problem, *inputs.dY, dW, *inputs.X);
      });
}

}  // namespace gradsmith::conv
