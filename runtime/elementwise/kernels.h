#ifndef GRADSMITH_ELEMENTWISE_KERNELS_H_
#define GRADSMITH_ELEMENTWISE_KERNELS_H_

#include <string_view>

#include "core/kernel_arguments.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

/// Element-wise operators. Half and bf16 are computed in float. Kernels are bound by name as
/// conv/kernels.h says.
namespace gradsmith::elementwise {

struct NoAttributes {};

struct SlopeAttributes {
  /// The slope where X is not positive.
  double alpha = 0.01;
};

/// Y = 1 / (1 + exp(-X)).
struct Sigmoid {
  static constexpr std::string_view kShapes = "X [*D], Y [*D], Y in_place_of X";
  static constexpr std::string_view kTypes = "X T, Y T";
  using Attributes = elementwise::NoAttributes;
  struct Inputs {
    RequiredInput X = nullptr;
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

/// dX = dY * Y * (1 - Y).
struct SigmoidGrad {
  static constexpr std::string_view kShapes = "dY [*D], Y [*D], dX [*D], dX in_place_of dY";
  static constexpr std::string_view kTypes = "dY T, Y T, dX T";
  static constexpr std::string_view kGradientOf = "Sigmoid, dY of Y, dX of X";
  using Attributes = elementwise::NoAttributes;
  struct Inputs {
    RequiredInput dY = nullptr;
    RequiredInput Y = nullptr;
  };
  struct Outputs {
    RequiredOutput dX = nullptr;
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

/// Y = X where X is positive, and alpha * X elsewhere.
struct LeakyRelu {
  static constexpr std::string_view kShapes = "X [*D], Y [*D], Y in_place_of X";
  static constexpr std::string_view kTypes = "X T, Y T";
  using Attributes = elementwise::SlopeAttributes;
  struct Inputs {
    RequiredInput X = nullptr;
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

/// dX = dY where X is positive, and alpha * dY elsewhere, as at 0.
struct LeakyReluGrad {
  static constexpr std::string_view kShapes = "dY [*D], X [*D], dX [*D], dX in_place_of dY";
  static constexpr std::string_view kTypes = "dY T, X T, dX T";
  static constexpr std::string_view kGradientOf = "LeakyRelu, dY of Y, dX of X";
  using Attributes = elementwise::SlopeAttributes;
  struct Inputs {
    RequiredInput dY = nullptr;
    RequiredInput X = nullptr;
  };
  struct Outputs {
    RequiredOutput dX = nullptr;
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

}  // namespace gradsmith::elementwise

#endif  // GRADSMITH_ELEMENTWISE_KERNELS_H_
