#include "batch_norm/cuda/finish.h"

#include "gradsmith/types.h"

namespace gradsmith::batch_norm {

namespace {

static_assert(static_cast<int>(DataType::kFloat) == own::kFloat);
static_assert(static_cast<int>(DataType::kDouble) == own::kDouble);
static_assert(static_cast<int>(DataType::kMLFloat16) == own::kHalf);
static_assert(static_cast<int>(DataType::kBFloat16) == own::kBFloat16);

template <typename Ref>
own::Parameter ToParameter(const Ref* tensor) {
  own::Parameter parameter{};
  if (IsPresent(tensor)) {
    parameter.data = const_cast<void*>(tensor->data);
    parameter.stride = tensor->strides[0];
    parameter.type = static_cast<int>(tensor->type);
    parameter.present = true;
    parameter.accumulate = tensor->accumulate;
  }
  return parameter;
}

}  // namespace

own::ForwardFinish MakeForwardFinish(
    const Attributes& attributes,
    const BatchNormalization::Inputs& inputs,
    const BatchNormalization::Outputs& outputs,
    const own::Plan& plan) {
  return {
      .walk = plan.walk,
      .grid = plan.grid,
      .X = plan.operands.X,
      .type = static_cast<int>(inputs.X->type),
      .epsilon = attributes.epsilon,
      .momentum = attributes.momentum,
      .scale = ToParameter(inputs.scale),
      .bias = ToParameter(inputs.B),
      .running_mean = ToParameter(inputs.running_mean),
      .running_var = ToParameter(inputs.running_var),
      .new_running_mean = ToParameter(outputs.running_mean),
      .new_running_var = ToParameter(outputs.running_var),
      .saved_mean = ToParameter(outputs.saved_mean),
      .saved_inv_std = ToParameter(outputs.saved_inv_std)};
}

own::BackwardFinish MakeBackwardFinish(
    const BatchNormalizationReluGrad::Inputs& inputs,
    const BatchNormalizationGrad::Outputs& outputs,
    const own::Plan& plan,
    bool products) {
  own::BackwardFinish finish = {
      .walk = plan.walk,
      .grid = plan.grid,
      .type = static_cast<int>(inputs.dY->type),
      .products = products,
      .normalization = {},
      .dScale = ToParameter(outputs.dScale),
      .dBias = ToParameter(outputs.dBias)};
  if (products) {
    finish.normalization = {
        .mean = ToParameter(inputs.saved_mean),
        .inv_std = ToParameter(inputs.saved_inv_std),
        .scale = ToParameter(inputs.scale),
        .bias = ToParameter(inputs.B)};
  }
  return finish;
}

}  // namespace gradsmith::batch_norm
