#include "layer_norm/functors.h"
#include "layer_norm/kernels.h"
#include "patterns/rows.h"

namespace gradsmith::layer_norm {

using internal::RowsOnCpu;

namespace {

internal::RowsAxes AxesOf(std::int64_t axis, const ConstTensorRef& X) {
  return internal::AxesFrom(static_cast<int>(axis), X.dims.size());
}

}  // namespace

Status LayerNormalization::RunCpu(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return RowsOnCpu<LayerNormalizationRows>(
      context, AxesOf(attributes.axis, *inputs.X), {attributes.epsilon}, inputs.X, inputs.scale,
      inputs.B, outputs.Y, outputs.mean, outputs.inv_std);
}

Status LayerNormalizationGrad::RunCpu(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return RowsOnCpu<LayerNormalizationGradRows>(
      context, AxesOf(attributes.axis, *inputs.X), {}, inputs.dY, inputs.X, inputs.scale,
      inputs.mean, inputs.inv_std, outputs.dX, outputs.dScale, outputs.dBias);
}

Status SimplifiedLayerNormalization::RunCpu(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return RowsOnCpu<SimplifiedLayerNormalizationRows>(
      context, AxesOf(attributes.axis, *inputs.X), {attributes.epsilon}, inputs.X, inputs.scale,
      outputs.Y, outputs.inv_std);
}

Status SimplifiedLayerNormalizationGrad::RunCpu(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return RowsOnCpu<SimplifiedLayerNormalizationGradRows>(
      context, AxesOf(attributes.axis, *inputs.X), {}, inputs.dY, inputs.X, inputs.scale,
      inputs.inv_std, outputs.dX, outputs.dScale);
}

}  // namespace gradsmith::layer_norm
