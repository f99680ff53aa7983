#ifndef GRADSMITH_LAYER_NORM_KERNELS_H_
#define GRADSMITH_LAYER_NORM_KERNELS_H_

#include <cstdint>
#include <string_view>

#include "core/kernel_arguments.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

/// Layer normalization and its simplified form, RMS normalization, over the dims from an axis on. X
/// has the type T, scale and Y have T1; where these differ, one is float and the other half, or X
/// is bf16 and scale float. All is computed in float, or in double. Kernels are bound by name as
/// conv/kernels.h says.
namespace gradsmith::layer_norm {

struct GradAttributes {
  /// The first dim of a row.
  std::int64_t axis = 0;
};

struct ForwardAttributes {
  std::int64_t axis = 0;
  /// Added to the variance, or the mean square.
  double epsilon = 1e-5;
};

/// Y = (X - mean) * inv_std * scale + B, mean and inv_std = 1 / sqrt(variance + epsilon) of the
/// row.
struct LayerNormalization {
  static constexpr std::string_view kShapes =
      "X [*P, *S], scale [*S], B [*S], Y [*P, *S], mean [*P], inv_std [*P]";
  static constexpr std::string_view kTypes = "X T, scale T1, B T1, Y T1, mean T2, inv_std T2";
  static constexpr std::string_view kLimits = "P length axis, axis axis_of X, epsilon min 0";
  using Attributes = layer_norm::ForwardAttributes;
  struct Inputs {
    RequiredInput X = nullptr;
    RequiredInput scale = nullptr;
    const ConstTensorRef* B = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
    const TensorRef* mean = nullptr;
    const TensorRef* inv_std = nullptr;
  };
  static Status RunCpu(
      const Context& context,
      const Attributes& attributes,
      const Inputs& inputs,
      const Outputs& outputs);
  static Status RunCuda(
      const Context& context,
      const Attributes& attributes,
      const Inputs& inputs,
      const Outputs& outputs);
};

/// dX = inv_std * (g - mean(g) - xhat * mean(g * xhat)), g = dY * scale, xhat = (X - mean) *
/// inv_std.
struct LayerNormalizationGrad {
  static constexpr std::string_view kShapes =
      "dY [*P, *S], X [*P, *S], scale [*S], mean [*P], inv_std [*P], dX [*P, *S], dScale [*S], dBias [*S]";
  static constexpr std::string_view kTypes =
      "dY T1, X T, scale T1, mean T2, inv_std T2, dX T, dScale T1, dBias T1";
  static constexpr std::string_view kLimits = "P length axis, axis axis_of X";
  static constexpr std::string_view kGradientOf =
      "LayerNormalization, dY of Y, dX of X, dScale of scale, dBias of B";
  using Attributes = layer_norm::GradAttributes;
  struct Inputs {
    RequiredInput dY = nullptr;
    RequiredInput X = nullptr;
    RequiredInput scale = nullptr;
    RequiredInput mean = nullptr;
    RequiredInput inv_std = nullptr;
  };
  struct Outputs {
    const TensorRef* dX = nullptr;
    const TensorRef* dScale = nullptr;
    const TensorRef* dBias = nullptr;
  };
  static Status RunCpu(
      const Context& context,
      const Attributes& attributes,
      const Inputs& inputs,
      const Outputs& outputs);
  static Status RunCuda(
      const Context& context,
      const Attributes& attributes,
      const Inputs& inputs,
      const Outputs& outputs);
};

/// Y = X * inv_std * scale, inv_std = 1 / sqrt(mean(X * X) + epsilon) of the row.
struct SimplifiedLayerNormalization {
  static constexpr std::string_view kShapes = "X [*P, *S], scale [*S], Y [*P, *S], inv_std [*P]";
  static constexpr std::string_view kTypes = "X T, scale T1, Y T1, inv_std T2";
  static constexpr std::string_view kLimits = "P length axis, axis axis_of X, epsilon min 0";
  using Attributes = layer_norm::ForwardAttributes;
  struct Inputs {
    RequiredInput X = nullptr;
    RequiredInput scale = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
    const TensorRef* inv_std = nullptr;
  };
  static Status RunCpu(
      const Context& context,
      const Attributes& attributes,
      const Inputs& inputs,
      const Outputs& outputs);
  static Status RunCuda(
      const Context& context,
      const Attributes& attributes,
      const Inputs& inputs,
      const Outputs& outputs);
};

/// dX = inv_std * (g - xhat * mean(g * xhat)), g = dY * scale, xhat = X * inv_std.
struct SimplifiedLayerNormalizationGrad {
  static constexpr std::string_view kShapes =
      "dY [*P, *S], X [*P, *S], scale [*S], inv_std [*P], dX [*P, *S], dScale [*S]";
  static constexpr std::string_view kTypes = "dY T1, X T, scale T1, inv_std T2, dX T, dScale T1";
  static constexpr std::string_view kLimits = "P length axis, axis axis_of X";
  static constexpr std::string_view kGradientOf =
      "SimplifiedLayerNormalization, dY of Y, dX of X, dScale of scale";
  using Attributes = layer_norm::GradAttributes;
  struct Inputs {
    RequiredInput dY = nullptr;
    RequiredInput X = nullptr;
    RequiredInput scale = nullptr;
    RequiredInput inv_std = nullptr;
  };
  struct Outputs {
    const TensorRef* dX = nullptr;
    const TensorRef* dScale = nullptr;
  };
  static Status RunCpu(
      const Context& context,
      const Attributes& attributes,
      const Inputs& inputs,
      const Outputs& outputs);
  static Status RunCuda(
      const Context& context,
      const Attributes& attributes,
      const Inputs& inputs,
      const Outputs& outputs);
};

}  // namespace gradsmith::layer_norm

#endif  // GRADSMITH_LAYER_NORM_KERNELS_H_
