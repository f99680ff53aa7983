#ifndef GRADSMITH_PRELU_KERNELS_H_
#define GRADSMITH_PRELU_KERNELS_H_

#include <string_view>

#include "core/kernel_arguments.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

/// PRelu, whose slope is a tensor that is broadcast. Half and bf16 are computed in float. Kernels
/// are bound by name as conv/kernels.h says.
namespace gradsmith::prelu {

struct NoAttributes {};

/// Y = X where X is positive, and slope * X elsewhere.
struct PRelu {
  static constexpr std::string_view kShapes = "X [*D], slope [*S], Y [*D], Y in_place_of X";
  static constexpr std::string_view kTypes = "X T, slope T, Y T";
  static constexpr std::string_view kLimits = "S broadcast_to D";
  using Attributes = prelu::NoAttributes;
  struct Inputs {
    RequiredInput X = nullptr;
    RequiredInput slope = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
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

/// dX = dY where X is positive, and slope * dY elsewhere, as at 0; dSlope is the sum of dY * X
/// where X is not positive.
struct PReluGrad {
  static constexpr std::string_view kShapes =
      "dY [*D], X [*D], slope [*S], dX [*D], dSlope [*S], dX in_place_of dY";
  static constexpr std::string_view kTypes = "dY T, X T, slope T, dX T, dSlope T";
  static constexpr std::string_view kLimits = PRelu::kLimits;
  static constexpr std::string_view kGradientOf = "PRelu, dY of Y, dX of X, dSlope of slope";
  using Attributes = prelu::NoAttributes;
  struct Inputs {
    RequiredInput dY = nullptr;
    RequiredInput X = nullptr;
    RequiredInput slope = nullptr;
  };
  struct Outputs {
    const TensorRef* dX = nullptr;
    const TensorRef* dSlope = nullptr;
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

}  // namespace gradsmith::prelu

#endif  // GRADSMITH_PRELU_KERNELS_H_
