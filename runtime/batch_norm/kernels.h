#ifndef GRADSMITH_BATCH_NORM_KERNELS_H_
#define GRADSMITH_BATCH_NORM_KERNELS_H_

#include <string_view>

#include "core/kernel_arguments.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

/// The batch-normalization family, per channel (spatial mode). Kernels are bound by name as
/// conv/kernels.h says.
namespace gradsmith::batch_norm {

struct Attributes {
  /// Added to the variance before the square root. The gradient does not use it: its saved
  /// statistics hold it.
  double epsilon = 1e-5;
  /// running = momentum * running + (1 - momentum) * batch.
  double momentum = 0.9;
};

/// Training forward. running_mean and running_var may be written in place. running_var takes in the
/// unbiased variance, saved_inv_std is 1 / sqrt(biased variance + epsilon).
struct BatchNormalization {
  static constexpr std::string_view kShapes =
      "X [N, C, *D], scale [C], B [C], running_mean [C], running_var [C], Y [N, C, *D], "
      "saved_mean [C], saved_inv_std [C], running_mean in_place_of running_mean, "
      "running_var in_place_of running_var";
  static constexpr std::string_view kTypes =
      "X T, Y T, scale T1, B T1, running_mean T2, running_var T2, saved_mean T2, saved_inv_std T2";
  static constexpr std::string_view kLimits =
      "D length [0, 3], epsilon min 0, momentum min 0 max 1";
  using Attributes = batch_norm::Attributes;
  struct Inputs {
    RequiredInput X = nullptr;
    RequiredInput scale = nullptr;
    RequiredInput B = nullptr;
    RequiredInput running_mean = nullptr;
    RequiredInput running_var = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
    const TensorRef* running_mean = nullptr;
    const TensorRef* running_var = nullptr;
    const TensorRef* saved_mean = nullptr;
    const TensorRef* saved_inv_std = nullptr;
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

/// Gradients of BatchNormalization.
struct BatchNormalizationGrad {
  static constexpr std::string_view kShapes =
      "dY [N, C, *D], X [N, C, *D], scale [C], saved_mean [C], saved_inv_std [C], dX [N, C, *D], "
      "dScale [C], dBias [C]";
  static constexpr std::string_view kTypes =
      "dY T, X T, dX T, scale T1, dScale T1, dBias T1, saved_mean T2, saved_inv_std T2";
  static constexpr std::string_view kLimits = BatchNormalization::kLimits;
  static constexpr std::string_view kGradientOf =
      "BatchNormalization, dY of Y, dX of X, dScale of scale, dBias of B";
  using Attributes = batch_norm::Attributes;
  struct Inputs {
    RequiredInput dY = nullptr;
    RequiredInput X = nullptr;
    RequiredInput scale = nullptr;
    RequiredInput saved_mean = nullptr;
    RequiredInput saved_inv_std = nullptr;
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

/// BatchNormalization, then ReLU: negative Y become 0.
struct BatchNormalizationRelu {
  static constexpr std::string_view kShapes = BatchNormalization::kShapes;
  static constexpr std::string_view kTypes = BatchNormalization::kTypes;
  static constexpr std::string_view kLimits = BatchNormalization::kLimits;
  using Attributes = batch_norm::Attributes;
  using Inputs = BatchNormalization::Inputs;
  using Outputs = BatchNormalization::Outputs;
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

/// Gradients of BatchNormalizationRelu, from X alone: where what ReLU was given, computed anew, is
/// not positive, dY counts as 0.
struct BatchNormalizationReluGrad {
  static constexpr std::string_view kShapes =
      "dY [N, C, *D], X [N, C, *D], scale [C], B [C], saved_mean [C], saved_inv_std [C], "
      "dX [N, C, *D], dScale [C], dBias [C]";
  static constexpr std::string_view kTypes =
      "dY T, X T, dX T, scale T1, B T1, dScale T1, dBias T1, saved_mean T2, saved_inv_std T2";
  static constexpr std::string_view kLimits = BatchNormalization::kLimits;
  static constexpr std::string_view kGradientOf =
      "BatchNormalizationRelu, dY of Y, dX of X, dScale of scale, dBias of B";
  using Attributes = batch_norm::Attributes;
  struct Inputs {
    RequiredInput dY = nullptr;
    RequiredInput X = nullptr;
    RequiredInput scale = nullptr;
    RequiredInput B = nullptr;
    RequiredInput saved_mean = nullptr;
    RequiredInput saved_inv_std = nullptr;
  };
  using Outputs = BatchNormalizationGrad::Outputs;
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

}  // namespace gradsmith::batch_norm

#endif  // GRADSMITH_BATCH_NORM_KERNELS_H_
