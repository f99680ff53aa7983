#include "batch_norm/shapes.h"

#include <span>
#include <string>
#include <string_view>

#include "core/argument_dims.h"

namespace gradsmith::batch_norm {
namespace {

using internal::DimsOrNull;

constexpr int kMaxSpatialRank = 3;

enum class Kind : unsigned char { kLikeX, kPerChannel };

struct Argument {
  std::string_view name;
  const Dims* dims;  ///< null where it is absent
  Kind kind = Kind::kPerChannel;
};

Status CheckArguments(const Dims& X, std::span<const Argument> arguments) {
  if (X.size() < 2 || X.size() > 2 + kMaxSpatialRank) {
    return InvalidArgument(
        "X has shape " + ToString(X) + ", rank " + std::to_string(X.size()) +
        "; expected rank 2 to " + std::to_string(2 + kMaxSpatialRank) + ": [N, C, *D]");
  }
  const Dims channels = {X[1]};
  for (const Argument& argument : arguments) {
    const bool is_like_x = argument.kind == Kind::kLikeX;
    const Dims& expected = is_like_x ? X : channels;
    if (argument.dims != nullptr && !(*argument.dims == expected)) {
      return internal::WrongDims(
          argument.name, *argument.dims, expected, is_like_x ? ", as X" : ", X's channels");
    }
  }
  return {};
}

}  // namespace

Status CheckShapes(
    const BatchNormalization::Inputs& inputs,
    const BatchNormalization::Outputs& outputs) {
  const Argument arguments[] = {
      {"scale", DimsOrNull(inputs.scale)},
      {"B", DimsOrNull(inputs.B)},
      {"running_mean", DimsOrNull(inputs.running_mean)},
      {"running_var", DimsOrNull(inputs.running_var)},
      {"Y", DimsOrNull(outputs.Y), Kind::kLikeX},
      {"running_mean", DimsOrNull(outputs.running_mean)},
      {"running_var", DimsOrNull(outputs.running_var)},
      {"saved_mean", DimsOrNull(outputs.saved_mean)},
      {"saved_inv_std", DimsOrNull(outputs.saved_inv_std)}};
  return CheckArguments(inputs.X->dims, arguments);
}

Status CheckShapes(
    const BatchNormalizationReluGrad::Inputs& inputs,
    const BatchNormalizationGrad::Outputs& outputs) {
  const Argument arguments[] = {
      {"dY", DimsOrNull(inputs.dY), Kind::kLikeX},
      {"scale", DimsOrNull(inputs.scale)},
      {"B", DimsOrNull(inputs.B)},
      {"saved_mean", DimsOrNull(inputs.saved_mean)},
      {"saved_inv_std", DimsOrNull(inputs.saved_inv_std)},
      {"dX", DimsOrNull(outputs.dX), Kind::kLikeX},
      {"dScale", DimsOrNull(outputs.dScale)},
      {"dBias", DimsOrNull(outputs.dBias)}};
  return CheckArguments(inputs.X->dims, arguments);
}

}  // namespace gradsmith::batch_norm
