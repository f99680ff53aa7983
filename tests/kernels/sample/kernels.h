#ifndef GRADSMITH_TESTS_KERNELS_SAMPLE_KERNELS_H_
#define GRADSMITH_TESTS_KERNELS_SAMPLE_KERNELS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/kernel_arguments.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

/// The kernels of tests/kernels/ops.yaml, which says what they compute.
namespace gradsmith::sample {

struct Attributes {
  std::int64_t axis = 0;
  std::optional<std::int64_t> ignore_index;
  std::optional<double> bias;
  double limit = 0;
  FloatList factors = {};
  bool negate = false;
  std::string unit;
};

struct Pick {
  static constexpr std::string_view kShapes =
      "X [*A, C, *B], index [*A, *B], mask [*A, *B], Y [*A, *B], hits [*A, *B]";
  static constexpr std::string_view kTypes = "X T, Y T, index int64, mask bool, hits int32";
  static constexpr std::string_view kLimits =
      "A length axis, axis axis_of X, limit min 0 max inf, factors length A";
  using Attributes = sample::Attributes;
  struct Inputs {
    RequiredInput X = nullptr;
    RequiredInput index = nullptr;
    const ConstTensorRef* mask = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
    const TensorRef* hits = nullptr;
  };
  static Status RunCpu(
      const Context& context,
      const Attributes& attributes,
      const Inputs& inputs,
      const Outputs& outputs);
};

struct PickGrad {
  static constexpr std::string_view kShapes =
      "dY [*A, *B], X [*A, C, *B], index [*A, *B], mask [*A, *B], dX [*A, C, *B]";
  static constexpr std::string_view kTypes = "dY T, X T, dX T, index int64, mask bool";
  static constexpr std::string_view kLimits = Pick::kLimits;
  static constexpr std::string_view kGradientOf = "Pick, dY of Y, dX of X";
  using Attributes = sample::Attributes;
  struct Inputs {
    RequiredInput dY = nullptr;
    RequiredInput X = nullptr;
    RequiredInput index = nullptr;
    const ConstTensorRef* mask = nullptr;
  };
  struct Outputs {
    RequiredOutput dX = nullptr;
  };
  static Status RunCpu(
      const Context& context,
      const Attributes& attributes,
      const Inputs& inputs,
      const Outputs& outputs);
};

struct NoAttributes {};

struct Blend {
  static constexpr std::string_view kShapes = "X [*D], slope [*S], Y [*D]";
  static constexpr std::string_view kTypes = "X T, slope T, Y T";
  static constexpr std::string_view kLimits = "S broadcast_to D";
  using Attributes = NoAttributes;
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
};

struct BlendGrad {
  static constexpr std::string_view kShapes = "dY [*D], X [*D], slope [*S], dX [*D], dSlope [*S]";
  static constexpr std::string_view kTypes = "dY T, X T, slope T, dX T, dSlope T";
  static constexpr std::string_view kLimits = Blend::kLimits;
  static constexpr std::string_view kGradientOf = "Blend, dY of Y, dX of X, dSlope of slope";
  using Attributes = NoAttributes;
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
};

struct Spread {
  static constexpr std::string_view kShapes = "X [*D], number [], Y [*D]";
  static constexpr std::string_view kTypes = "X T, number T, Y T";
  static constexpr std::string_view kLimits = "X shape_only";
  using Attributes = NoAttributes;
  struct Inputs {
    RequiredInput X = nullptr;
    RequiredInput number = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
  };
  static Status RunCpu(
      const Context& context,
      const Attributes& attributes,
      const Inputs& inputs,
      const Outputs& outputs);
};

struct CropAttributes {
  IntList size = {};
};

struct Crop {
  static constexpr std::string_view kShapes = "X [N, *D], Y [N, *K]";
  static constexpr std::string_view kTypes = "X T, Y T";
  static constexpr std::string_view kLimits = "K length D";
  using Attributes = CropAttributes;
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
};

struct CropGrad {
  static constexpr std::string_view kShapes = "dY [N, *K], dX [N, *D]";
  static constexpr std::string_view kTypes = "dY T, dX T";
  static constexpr std::string_view kLimits = "D length K";
  static constexpr std::string_view kGradientOf = "Crop, dY of Y, dX of X";
  using Attributes = NoAttributes;
  struct Inputs {
    RequiredInput dY = nullptr;
  };
  struct Outputs {
    RequiredOutput dX = nullptr;
  };
  static Status RunCpu(
      const Context& context,
      const Attributes& attributes,
      const Inputs& inputs,
      const Outputs& outputs);
};

struct Sift {
  static constexpr std::string_view kShapes =
      "bits [ceil(N / 32)], X [N], Y [N], left [ceil(N / 32)]";
  static constexpr std::string_view kTypes = "bits uint32, X float, Y float, left uint32";
  using Attributes = NoAttributes;
  struct Inputs {
    const ConstTensorRef* bits = nullptr;
    RequiredInput X = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
    const TensorRef* left = nullptr;
  };
  static Status RunCpu(
      const Context& context,
      const Attributes& attributes,
      const Inputs& inputs,
      const Outputs& outputs);
};

struct Total {
  static constexpr std::string_view kShapes = "X [*D], Y []";
  static constexpr std::string_view kTypes = "X T, Y T";
  using Attributes = NoAttributes;
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
};

struct ConcatAttributes {
  std::int64_t axis = 0;
};

struct Concat {
  static constexpr std::string_view kShapes = "X [*A, P, *B], Y [*A, S, *B], S = sum(P)";
  static constexpr std::string_view kTypes = "X T, Y T";
  static constexpr std::string_view kLimits = "A length axis, axis axis_of X";
  using Attributes = ConcatAttributes;
  struct Inputs {
    RequiredInputs X;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
  };
  static Status RunCpu(
      const Context& context,
      const Attributes& attributes,
      const Inputs& inputs,
      const Outputs& outputs);
};

struct ConcatGrad {
  static constexpr std::string_view kShapes =
      "dY [*A, S, *B], X [*A, P, *B], dX [*A, P, *B], S = sum(P)";
  static constexpr std::string_view kTypes = "dY T, X T, dX T";
  static constexpr std::string_view kLimits = "A length axis, axis axis_of X, X shape_only";
  static constexpr std::string_view kGradientOf = "Concat, dY of Y, dX of X";
  using Attributes = ConcatAttributes;
  struct Inputs {
    RequiredInput dY = nullptr;
    RequiredInputs X;
  };
  struct Outputs {
    std::span<const TensorRef> dX;
  };
  static Status RunCpu(
      const Context& context,
      const Attributes& attributes,
      const Inputs& inputs,
      const Outputs& outputs);
};

struct Sum {
  static constexpr std::string_view kShapes = "X [*P], Y [*D]";
  static constexpr std::string_view kTypes = "X T, Y T";
  static constexpr std::string_view kLimits = "P broadcast_to D";
  using Attributes = NoAttributes;
  struct Inputs {
    RequiredInputs X;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
  };
  static Status RunCpu(
      const Context& context,
      const Attributes& attributes,
      const Inputs& inputs,
      const Outputs& outputs);
};

struct DescendAttributes {
  double momentum = 0;
};

struct Descend {
  static constexpr std::string_view kShapes =
      "W [*D], dW [*D], V [*D], rate [], scale [], new_W [*D], new_V [*D], "
      "new_W in_place_of W, new_V in_place_of V";
  static constexpr std::string_view kTypes =
      "W T, dW T, V T1, rate float, scale float, new_W T, new_V T1, T1 = float";
  static constexpr std::string_view kLimits = "rate may_be_on_host, momentum min 0 max 1";
  using Attributes = DescendAttributes;
  struct Inputs {
    RequiredInputs W;
    RequiredInputs dW;
    RequiredInputs V;
    RequiredInput rate = nullptr;
    std::span<const ConstTensorRef> scale;
  };
  struct Outputs {
    RequiredOutputs new_W;
    std::span<const TensorRef> new_V;
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

}  // namespace gradsmith::sample

#endif  // GRADSMITH_TESTS_KERNELS_SAMPLE_KERNELS_H_
