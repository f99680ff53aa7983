#ifndef GRADSMITH_SOFTMAX_KERNELS_H_
#define GRADSMITH_SOFTMAX_KERNELS_H_

#include <cstdint>
#include <string_view>

#include "core/kernel_arguments.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

/// Softmax and its logarithm along an axis. Half and bf16 are computed in float. Kernels are bound
/// by name as conv/kernels.h says.
namespace gradsmith::softmax {

struct Attributes {
  /// The axis along which a row lies, counted from the first dim.
  std::int64_t axis = 0;
  /// Whether a row has all dims from the axis on, as ONNX had it before opset 13.
  bool coerced = false;
};

/// Y = exp(X) / sum(exp(X)), the sum over the row.
struct Softmax {
  static constexpr std::string_view kShapes = "X [*D], Y [*D], Y in_place_of X";
  static constexpr std::string_view kTypes = "X T, Y T";
  static constexpr std::string_view kLimits = "axis axis_of X";
  using Attributes = softmax::Attributes;
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

/// dX = Y * (dY - sum(dY * Y)).
struct SoftmaxGrad {
  static constexpr std::string_view kShapes = "dY [*D], Y [*D], dX [*D], dX in_place_of dY";
  static constexpr std::string_view kTypes = "dY T, Y T, dX T";
  static constexpr std::string_view kLimits = "axis axis_of Y";
  static constexpr std::string_view kGradientOf = "Softmax, dY of Y, dX of X";
  using Attributes = softmax::Attributes;
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

/// Y = X - log(sum(exp(X))).
struct LogSoftmax {
  static constexpr std::string_view kShapes = "X [*D], Y [*D], Y in_place_of X";
  static constexpr std::string_view kTypes = "X T, Y T";
  static constexpr std::string_view kLimits = "axis axis_of X";
  using Attributes = softmax::Attributes;
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

/// dX = dY - exp(Y) * sum(dY).
struct LogSoftmaxGrad {
  static constexpr std::string_view kShapes = "dY [*D], Y [*D], dX [*D], dX in_place_of dY";
  static constexpr std::string_view kTypes = "dY T, Y T, dX T";
  static constexpr std::string_view kLimits = "axis axis_of Y";
  static constexpr std::string_view kGradientOf = "LogSoftmax, dY of Y, dX of X";
  using Attributes = softmax::Attributes;
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

}  // namespace gradsmith::softmax

#endif  // GRADSMITH_SOFTMAX_KERNELS_H_
