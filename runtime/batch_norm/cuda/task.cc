#include "batch_norm/cuda/task.h"

#include <array>
#include <cstdint>
#include <string_view>

namespace gradsmith::batch_norm {

namespace {

using cuda::OpInfo;
using cuda::OpTask;

/// Epsilon and momentum.
constexpr std::array<double, 2> kTrialScalars = {1e-5, 0.9};

constexpr OpInfo Forward(OpInfo op, std::string_view operation) {
  op.lead = forward::kX;
  op.trial_scalars = kTrialScalars;
  op.operation = operation;
  return op;
}

constexpr OpInfo Backward(std::string_view name, std::string_view operation) {
  return {
      .name = name,
      .operands = backward::Operands::kNames,
      .inputs = backward::kInputs,
      .lead = backward::kX,
      .operation = operation};
}

/// The operators: those of a direction stand together, one for each activation.
constexpr std::array<std::array<OpInfo, 2>, 2> kOps = {
    {{Forward(operands::BatchNormalization::kOp, "batch-normalization"),
      Forward(operands::BatchNormalizationRelu::kOp, "batch-normalization-relu")},
     {Backward(operands::BatchNormalizationGrad::kOp.name, "batch-normalization-backward"),
      Backward(
          operands::BatchNormalizationReluGrad::kOp.name,
          "batch-normalization-relu-backward")}}};

}  // namespace

const OpInfo& OpOf(Direction direction, Activation activation) {
  return kOps.at(static_cast<std::size_t>(direction)).at(static_cast<std::size_t>(activation));
}

Direction DirectionOf(const OpTask& task) {
  return task.inputs() == forward::kInputs ? Direction::kForward : Direction::kBackward;
}

Activation ActivationOf(const OpTask& task) {
  return task.op == &OpOf(DirectionOf(task), Activation::kRelu) ? Activation::kRelu
                                                                : Activation::kNone;
}

OpTask MakeTask(
    Activation activation,
    const Attributes& attributes,
    const BatchNormalization::Inputs& inputs,
    const BatchNormalization::Outputs& outputs) {
  OpTask task = cuda::MakeOpTask(
      OpOf(Direction::kForward, activation), inputs.X, inputs.scale, inputs.B, inputs.running_mean,
      inputs.running_var, outputs.Y, outputs.running_mean, outputs.running_var, outputs.saved_mean,
      outputs.saved_inv_std);
  task.scalars = {attributes.epsilon, attributes.momentum};
  return task;
}

OpTask MakeTask(
    const BatchNormalizationReluGrad::Inputs& inputs,
    const BatchNormalizationGrad::Outputs& outputs) {
  return cuda::MakeOpTask(
      OpOf(Direction::kBackward, ActivationOf(inputs)), inputs.dY, inputs.X, inputs.scale, inputs.B,
      inputs.saved_mean, inputs.saved_inv_std, outputs.dX, outputs.dScale, outputs.dBias);
}

bool IsPerElement(const TensorRef& tensor) {
  return tensor.rank() > 1;
}

std::int64_t SamplesPerChannel(const OpTask& task) {
  const Dims& dims = XOf(task).dims;
  std::int64_t samples = 1;
  for (int i = 0; i < dims.size(); ++i) {
    samples *= i == 1 ? 1 : dims[i];
  }
  return samples;
}

}  // namespace gradsmith::batch_norm
