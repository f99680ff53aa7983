#ifndef GRADSMITH_POOL_KERNELS_H_
#define GRADSMITH_POOL_KERNELS_H_

#include <cstdint>
#include <string_view>

#include "core/kernel_arguments.h"
#include "gradsmith/attributes.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

/// Pooling. Half and bf16 are summed in float. Kernels are bound by name as conv/kernels.h says.
namespace gradsmith::pool {

/// Where the windows lie (ONNX MaxPool-22, AveragePool-22). Empty lists mean the defaults.
struct WindowAttributes {
  IntList kernel_shape = {};  ///< the window's dims; required
  IntList strides = {};       ///< default: 1s
  IntList pads = {};          ///< begins, then ends; default: 0s
  IntList dilations = {};     ///< default: 1s
  AutoPad auto_pad = AutoPad::NOTSET;
  bool ceil_mode = false;
};

struct MaxPoolAttributes : WindowAttributes {
  /// 0: indices count the last spatial axis first; 1: the first.
  std::int64_t storage_order = 0;
};

struct MaxPoolGradAttributes : MaxPoolAttributes {
  IntList x_shape = {};  ///< spatial dims of X; default: those of the dX that is passed
};

struct AveragePoolAttributes : WindowAttributes {
  bool count_include_pad = false;
};

struct NoAttributes {};

/// PooledSpatial is the shape rule of pooling: how many windows there are along X's spatial dims D.
inline constexpr std::string_view kPooledSpatial = R"(
    expect given(kernel_shape): attribute kernel_shape is []; expected the window's dims
    windows(D, entry(kernel_shape, 1))
)";
Result<Dims> PooledSpatial(const WindowAttributes& attributes, const Dims& D);

/// GlobalSpatial is the shape rule of global pooling: one for each of X's spatial dims.
inline constexpr std::string_view kGlobalSpatial = "1";
Result<Dims> GlobalSpatial(const NoAttributes& attributes, const Dims& D);

/// Y is the largest element of each window, where NaN is larger than all others, and -infinity
/// where the window lies in padding. Indices count the elements of X; that of a window in padding
/// is -1.
struct MaxPool {
  static constexpr std::string_view kShapes =
      "X [N, C, *D], Y [N, C, *O], Indices [N, C, *O], O = pool::PooledSpatial(D)";
  static constexpr std::string_view kTypes = "X T, Y T, Indices int64";
  static constexpr std::string_view kLimits =
      "D length [1, 3], O length D, kernel_shape length D min 1, strides length D min 1, "
      "pads length 2 * D min 0, dilations length D min 1, storage_order min 0 max 1";
  using Attributes = pool::MaxPoolAttributes;
  struct Inputs {
    RequiredInput X = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
    const TensorRef* Indices = nullptr;
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

/// dX has at each element the sum of the dY of those windows whose Indices name it. An index that
/// names no element of its window adds to nothing.
struct MaxPoolGrad {
  static constexpr std::string_view kShapes = "dY [N, C, *O], Indices [N, C, *O], dX [N, C, *D]";
  static constexpr std::string_view kTypes = "dY T, Indices int64, dX T";
  static constexpr std::string_view kLimits = MaxPool::kLimits;
  static constexpr std::string_view kGradientOf = "MaxPool, dY of Y, dX of X";
  using Attributes = pool::MaxPoolGradAttributes;
  struct Inputs {
    RequiredInput dY = nullptr;
    RequiredInput Indices = nullptr;
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

/// dX has at each element the sum of the dY of those windows whose maximum Y it is: of several
/// elements that equal Y the first in the window, and where Y is NaN the last NaN.
struct MaxPoolXYGrad {
  static constexpr std::string_view kShapes =
      "dY [N, C, *O], X [N, C, *D], Y [N, C, *O], dX [N, C, *D], O = pool::PooledSpatial(D)";
  static constexpr std::string_view kTypes = "dY T, X T, Y T, dX T";
  static constexpr std::string_view kLimits = MaxPool::kLimits;
  static constexpr std::string_view kGradientOf = "MaxPool, dY of Y, dX of X";
  using Attributes = pool::MaxPoolAttributes;
  struct Inputs {
    RequiredInput dY = nullptr;
    RequiredInput X = nullptr;
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

/// Y is the mean of each window: of its elements in X, or with count_include_pad of those in X and
/// its pads, but not of what a last window of ceil_mode holds beyond. It is 0 where that is none.
struct AveragePool {
  static constexpr std::string_view kShapes =
      "X [N, C, *D], Y [N, C, *O], O = pool::PooledSpatial(D)";
  static constexpr std::string_view kTypes = "X T, Y T";
  static constexpr std::string_view kLimits =
      "D length [1, 3], O length D, kernel_shape length D min 1, strides length D min 1, "
      "pads length 2 * D min 0, dilations length D min 1";
  using Attributes = pool::AveragePoolAttributes;
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

/// dX has at each element the sum of dY / count of those windows that hold it.
struct AveragePoolGrad {
  static constexpr std::string_view kShapes =
      "dY [N, C, *O], X [N, C, *D], dX [N, C, *D], O = pool::PooledSpatial(D)";
  static constexpr std::string_view kTypes = "dY T, X T, dX T";
  static constexpr std::string_view kLimits =
      "D length [1, 3], O length D, kernel_shape length D min 1, strides length D min 1, "
      "pads length 2 * D min 0, dilations length D min 1, X shape_only";
  static constexpr std::string_view kGradientOf = "AveragePool, dY of Y, dX of X";
  using Attributes = pool::AveragePoolAttributes;
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

/// Y is the largest element of each channel, where NaN is larger than all others, and -infinity
/// where there is none.
struct GlobalMaxPool {
  static constexpr std::string_view kShapes =
      "X [N, C, *D], Y [N, C, *O], O = pool::GlobalSpatial(D)";
  static constexpr std::string_view kTypes = "X T, Y T";
  static constexpr std::string_view kLimits = "D length [1, 3], O length D";
  using Attributes = pool::NoAttributes;
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

/// dX has dY at the element of each channel that Y is: the first that equals it, or where Y is NaN
/// the last NaN. It is 0 at all others.
struct GlobalMaxPoolGrad {
  static constexpr std::string_view kShapes =
      "dY [N, C, *O], X [N, C, *D], Y [N, C, *O], dX [N, C, *D], O = pool::GlobalSpatial(D)";
  static constexpr std::string_view kTypes = "dY T, X T, Y T, dX T";
  static constexpr std::string_view kLimits = GlobalMaxPool::kLimits;
  static constexpr std::string_view kGradientOf = "GlobalMaxPool, dY of Y, dX of X";
  using Attributes = pool::NoAttributes;
  struct Inputs {
    RequiredInput dY = nullptr;
    RequiredInput X = nullptr;
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

/// Y is the mean of each channel, and 0 where it has no elements.
struct GlobalAveragePool {
  static constexpr std::string_view kShapes = GlobalMaxPool::kShapes;
  static constexpr std::string_view kTypes = "X T, Y T";
  static constexpr std::string_view kLimits = GlobalMaxPool::kLimits;
  using Attributes = pool::NoAttributes;
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

/// dX is dY / count, where count is of a channel's elements.
struct GlobalAveragePoolGrad {
  static constexpr std::string_view kShapes =
      "dY [N, C, *O], X [N, C, *D], dX [N, C, *D], O = pool::GlobalSpatial(D)";
  static constexpr std::string_view kTypes = "dY T, X T, dX T";
  static constexpr std::string_view kLimits = "D length [1, 3], O length D, X shape_only";
  static constexpr std::string_view kGradientOf = "GlobalAveragePool, dY of Y, dX of X";
  using Attributes = pool::NoAttributes;
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

}  // namespace gradsmith::pool

#endif  // GRADSMITH_POOL_KERNELS_H_
