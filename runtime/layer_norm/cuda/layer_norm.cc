#include <array>
#include <string_view>

#include "cuda/kernel_images.h"
#include "cuda/run_op.h"
#include "layer_norm/functors.h"
#include "layer_norm/kernels.h"
#include "patterns/cuda/rows.h"

namespace gradsmith::layer_norm {

namespace {

template <typename Functor>
Status Run(const Context& context, std::int64_t axis, const ConstTensorRef& X, cuda::OpTask task) {
  static constexpr std::array kTable = {cuda::RowsBy<Functor, cuda::kImage_layer_norm_rows>};
  static constexpr cuda::FamilyOnCuda kFamily = {.table = kTable};
  cuda::AddAxes(internal::AxesFrom(static_cast<int>(axis), X.dims.size()), &task);
  return cuda::RunOp(context, kFamily, task);
}

}  // namespace

Status LayerNormalization::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  static constexpr std::array<std::string_view, 6> kOperands = {"X", "scale", "B",
                                                                "Y", "mean",  "inv_std"};
  static constexpr cuda::OpInfo kOp = {
      .name = "LayerNormalization", .operands = kOperands, .inputs = 3};
  cuda::OpTask task = cuda::MakeOpTask(
      kOp, inputs.X, inputs.scale, inputs.B, outputs.Y, outputs.mean, outputs.inv_std);
  task.scalars.push_back(attributes.epsilon);
  return Run<LayerNormalizationRows>(context, attributes.axis, *inputs.X, task);
}

Status LayerNormalizationGrad::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  static constexpr std::array<std::string_view, 8> kOperands = {"dY",      "X",  "scale",  "mean",
                                                                "inv_std", "dX", "dScale", "dBias"};
  static constexpr cuda::OpInfo kOp = {
      .name = "LayerNormalizationGrad", .operands = kOperands, .inputs = 5};
  const cuda::OpTask task = cuda::MakeOpTask(
      kOp, inputs.dY, inputs.X, inputs.scale, inputs.mean, inputs.inv_std, outputs.dX,
      outputs.dScale, outputs.dBias);
  return Run<LayerNormalizationGradRows>(context, attributes.axis, *inputs.X, task);
}

Status SimplifiedLayerNormalization::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  static constexpr std::array<std::string_view, 4> kOperands = {"X", "scale", "Y", "inv_std"};
  static constexpr cuda::OpInfo kOp = {
      .name = "SimplifiedLayerNormalization", .operands = kOperands, .inputs = 2};
  cuda::OpTask task = cuda::MakeOpTask(kOp, inputs.X, inputs.scale, outputs.Y, outputs.inv_std);
  task.scalars.push_back(attributes.epsilon);
  return Run<SimplifiedLayerNormalizationRows>(context, attributes.axis, *inputs.X, task);
}

Status SimplifiedLayerNormalizationGrad::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  static constexpr std::array<std::string_view, 6> kOperands = {"dY",      "X",  "scale",
                                                                "inv_std", "dX", "dScale"};
  static constexpr cuda::OpInfo kOp = {
      .name = "SimplifiedLayerNormalizationGrad", .operands = kOperands, .inputs = 4};
  const cuda::OpTask task = cuda::MakeOpTask(
      kOp, inputs.dY, inputs.X, inputs.scale, inputs.inv_std, outputs.dX, outputs.dScale);
  return Run<SimplifiedLayerNormalizationGradRows>(context, attributes.axis, *inputs.X, task);
}

}  // namespace gradsmith::layer_norm
