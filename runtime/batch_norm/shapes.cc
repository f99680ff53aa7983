#include "batch_norm/shapes.h"

#include <span>
#include <string>
#include <string_view>

#include "core/arguments.h"

namespace gradsmith::batch_norm {
namespace {

using internal::Argument;
using internal::MakeArgument;

constexpr int kMaxSpatialRank = 3;

Status CheckRank(const Dims& X) {
  if (X.size() >= 2 && X.size() <= 2 + kMaxSpatialRank) {
    return {};
  }
  return InvalidArgument(
      "X has shape " + ToString(X) + ", rank " + std::to_string(X.size()) +
      "; expected rank 2 to " + std::to_string(2 + kMaxSpatialRank) + ": [N, C, *D]");
}

Status CheckArguments(std::string_view types, std::span<const Argument> arguments) {
  for (const Argument& argument : arguments) {
    if (internal::HasWrongDims(argument)) {
      const bool is_like_x = argument.expected_dims->size() > 1;
      return internal::WrongDims(
          argument.name, *argument.dims, *argument.expected_dims,
          is_like_x ? ", as X" : ", X's channels");
    }
  }
  return internal::CheckTypes(arguments, types);
}

}  // namespace

Status CheckShapes(
    const BatchNormalization::Inputs& inputs,
    const BatchNormalization::Outputs& outputs) {
  const Dims& X = inputs.X->dims;
  if (Status status = CheckRank(X); !status.ok()) {
    return status;
  }
  const Dims C = {X[1]};
  const DataType T1 = inputs.scale->type;
  const DataType T2 = inputs.running_mean->type;
  const Argument arguments[] = {
      MakeArgument("scale", inputs.scale, C, T1),
      MakeArgument("B", inputs.B, C, T1),
      MakeArgument("running_mean", inputs.running_mean, C, T2),
      MakeArgument("running_var", inputs.running_var, C, T2),
      MakeArgument("Y", outputs.Y, X, inputs.X->type),
      MakeArgument("running_mean", outputs.running_mean, C, T2),
      MakeArgument("running_var", outputs.running_var, C, T2),
      MakeArgument("saved_mean", outputs.saved_mean, C, T2),
      MakeArgument("saved_inv_std", outputs.saved_inv_std, C, T2)};
  return CheckArguments(BatchNormalization::kTypes, arguments);
}

Status CheckShapes(
    const BatchNormalizationReluGrad::Inputs& inputs,
    const BatchNormalizationGrad::Outputs& outputs) {
  const Dims& X = inputs.X->dims;
  if (Status status = CheckRank(X); !status.ok()) {
    return status;
  }
  const Dims C = {X[1]};
  const DataType T = inputs.X->type;
  const DataType T1 = inputs.scale->type;
  const DataType T2 = inputs.saved_mean->type;
  const Argument arguments[] = {
      MakeArgument("dY", inputs.dY, X, T),
      MakeArgument("scale", inputs.scale, C, T1),
      MakeArgument("B", inputs.B, C, T1),
      MakeArgument("saved_mean", inputs.saved_mean, C, T2),
      MakeArgument("saved_inv_std", inputs.saved_inv_std, C, T2),
      MakeArgument("dX", outputs.dX, X, T),
      MakeArgument("dScale", outputs.dScale, C, T1),
      MakeArgument("dBias", outputs.dBias, C, T1)};
  return CheckArguments(BatchNormalizationReluGrad::kTypes, arguments);
}

}  // namespace gradsmith::batch_norm
