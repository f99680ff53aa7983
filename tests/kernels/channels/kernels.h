#ifndef GRADSMITH_TESTS_KERNELS_CHANNELS_KERNELS_H_
#define GRADSMITH_TESTS_KERNELS_CHANNELS_KERNELS_H_

#include <string_view>

#include "core/kernel_arguments.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

/// Operators of tests/kernels/ops.yaml that are made of the pattern `channels` alone.
namespace gradsmith::channels {

struct NormAttributes {
  double epsilon = 1e-5;
};

struct ChannelNorm {
  static constexpr std::string_view kShapes =
      "X [N, C, *D], scale [C], B [C], Y [N, C, *D], mean [C], inv_std [C], Y in_place_of X";
  static constexpr std::string_view kTypes = "X T, Y T, scale T1, B T1, mean T1, inv_std T1";
  static constexpr std::string_view kLimits = "D length [0, 3], epsilon min 0";
  using Attributes = NormAttributes;
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
  static Status Run(
      const Context& context,
      const Attributes& attributes,
      const Inputs& inputs,
      const Outputs& outputs);
};

struct NoAttributes {};

struct ChannelNormGrad {
  static constexpr std::string_view kShapes =
      "dY [N, C, *D], X [N, C, *D], scale [C], mean [C], inv_std [C], dX [N, C, *D], dScale [C], "
      "dBias [C], dX in_place_of dY";
  static constexpr std::string_view kTypes =
      "dY T, X T, dX T, scale T1, mean T1, inv_std T1, dScale T1, dBias T1";
  static constexpr std::string_view kLimits = "D length [0, 3]";
  static constexpr std::string_view kGradientOf =
      "ChannelNorm, dY of Y, dX of X, dScale of scale, dBias of B";
  using Attributes = NoAttributes;
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
  static Status Run(
      const Context& context,
      const Attributes& attributes,
      const Inputs& inputs,
      const Outputs& outputs);
};

struct ChannelTotals {
  static constexpr std::string_view kShapes =
      "X [N, C, *D], weight [N, *D], factor [C], Y [N, C, *D], sums [N, *D], of_totals [N, *D], "
      "totals [C]";
  static constexpr std::string_view kTypes =
      "X T, weight T, factor T, Y T, sums T, of_totals T, totals T";
  static constexpr std::string_view kLimits = "D length [0, 3]";
  using Attributes = NoAttributes;
  struct Inputs {
    RequiredInput X = nullptr;
    RequiredInput weight = nullptr;
    RequiredInput factor = nullptr;
  };
  struct Outputs {
    const TensorRef* Y = nullptr;
    const TensorRef* sums = nullptr;
    const TensorRef* of_totals = nullptr;
    const TensorRef* totals = nullptr;
  };
  static Status Run(
      const Context& context,
      const Attributes& attributes,
      const Inputs& inputs,
      const Outputs& outputs);
};

}  // namespace gradsmith::channels

#endif  // GRADSMITH_TESTS_KERNELS_CHANNELS_KERNELS_H_
