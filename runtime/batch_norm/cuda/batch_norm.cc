#include "batch_norm/cuda/family.h"
#include "batch_norm/cuda/task.h"
#include "batch_norm/kernels.h"
#include "batch_norm/shapes.h"
#include "cuda/run_op.h"

/// The ops on CUDA.
namespace gradsmith::batch_norm {

namespace {

Status RunForward(
    const Context& context,
    Activation activation,
    const Attributes& attributes,
    const BatchNormalization::Inputs& inputs,
    const BatchNormalization::Outputs& outputs) {
  if (Status status = CheckShapes(inputs, outputs); !status.ok()) {
    return status;
  }
  return cuda::RunOp(context, kFamily, MakeTask(activation, attributes, inputs, outputs));
}

Status RunBackward(
    const Context& context,
    const BatchNormalizationReluGrad::Inputs& inputs,
    const BatchNormalizationGrad::Outputs& outputs) {
  if (Status status = CheckShapes(inputs, outputs); !status.ok()) {
    return status;
  }
  return cuda::RunOp(context, kFamily, MakeTask(inputs, outputs));
}

}  // namespace

Status BatchNormalization::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return RunForward(context, Activation::kNone, attributes, inputs, outputs);
}

Status BatchNormalizationRelu::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return RunForward(context, Activation::kRelu, attributes, inputs, outputs);
}

Status BatchNormalizationGrad::RunCuda(
    const Context& context,
    const Attributes& /*attributes*/,
    const Inputs& inputs,
    const Outputs& outputs) {
  return RunBackward(context, WithoutActivation(inputs), outputs);
}

Status BatchNormalizationReluGrad::RunCuda(
    const Context& context,
    const Attributes& /*attributes*/,
    const Inputs& inputs,
    const Outputs& outputs) {
  return RunBackward(context, inputs, outputs);
}

}  // namespace gradsmith::batch_norm
