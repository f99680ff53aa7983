#ifndef GRADSMITH_CONV_KERNELS_H_
#define GRADSMITH_CONV_KERNELS_H_

#include <cstdint>
#include <string_view>

#include "core/kernel_arguments.h"
#include "gradsmith/attributes.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

/// The convolution family: four ops over three primitives (forward, backward-data,
/// backward-filter). A kernel is a struct that the generated stubs bind by name: Attributes, Inputs
/// and Outputs have the fields that an op may bind (a null pointer is an argument that the op does
/// not have, or that is left out), and RunCpu and RunCuda do the work on arguments that have been
/// validated against the op's schema. Constants say what these must be, in words that
/// docs/schema.md explains: kShapes their shapes, kTypes which of them have one element type,
/// kLimits the lengths of lists and the ranges of attributes, kGradientOf which gradients they are.
/// The generator reads this header, and refuses an op that does not fit: fields are written as they
/// are here, one to a declaration, and a struct that has another's fields too derives from it.
namespace gradsmith::conv {

/// Attributes of every convolution op (ONNX Conv-22). Empty lists mean the defaults.
struct Attributes {
  IntList kernel_shape = {};  ///< default: W's spatial dims
  IntList strides = {};       ///< default: 1s
  IntList pads = {};          ///< begins, then ends; default: 0s
  IntList dilations = {};     ///< default: 1s
  std::int64_t group = 1;
  AutoPad auto_pad = AutoPad::NOTSET;
};

/// What the transposed ones have besides (ONNX ConvTranspose-22).
struct TransposedAttributes : Attributes {
  IntList output_padding = {};  ///< default: 0s
  IntList output_shape = {};    ///< sets the pads; default: none
};

/// OutputSpatial is the shape rule of Conv: D is X's spatial dims, K is W's.
inline constexpr std::string_view kOutputSpatial = R"(
    stated = entry(kernel_shape, 0)
    expect stated == 0 or stated == K:
        attribute kernel_shape is {kernel_shape}; expected W's spatial dims {K}
    windows(D, K)
)";
Result<Dims> OutputSpatial(const Attributes& attributes, const Dims& D, const Dims& K);

/// TransposedOutputSpatial is the shape rule of ConvTranspose: D is X's spatial dims, K is W's.
inline constexpr std::string_view kTransposedOutputSpatial = R"(
    stated = entry(kernel_shape, 0)
    expect stated == 0 or stated == K:
        attribute kernel_shape is {kernel_shape}; expected W's spatial dims {K}
    size = K
    expect size >= 1: spatial axis {axis}: the filter has size {size}; expected 1 or more
    stride = entry(strides, 1)
    dilation = entry(dilations, 1)
    pad_begin = begin(pads, 0)
    pad_end = end(pads, 0)
    extra = entry(output_padding, 0)
    same = auto_pad == SAME_UPPER or auto_pad == SAME_LOWER
    sized = given(output_shape)
    expect pad_begin + pad_end == 0 or (not same and auto_pad != VALID):
        attribute pads is {pads}; expected none, or zeros, where auto_pad is {auto_pad}
    expect pad_begin + pad_end == 0 or not sized:
        attribute pads is {pads}; expected none, or zeros, where output_shape sets the pads
    expect not sized or auto_pad != VALID:
        attribute output_shape is given; expected none where auto_pad is VALID, as both set the pads
    limit = max(stride, dilation)
    expect extra < limit:
        spatial axis {axis}: output_padding is {extra}; expected less than {limit},
        the larger of stride {stride} and dilation {dilation}
    span = dilation * (size - 1) + 1
    full = stride * (D - 1) + extra + span
    expect sized or same or D == 0 or full >= pad_begin + pad_end:
        spatial axis {axis}: pads {pad_begin}, {pad_end} are cut from an output of {full} positions;
        expected no more than that
    unsized = where(same or D == 0, D * stride, full - pad_begin - pad_end)
    where(sized, entry(output_shape, 0), unsized)
)";
Result<Dims>
TransposedOutputSpatial(const TransposedAttributes& attributes, const Dims& D, const Dims& K);

/// Y = X * W + B, where there is a B.
struct Conv {
  static constexpr std::string_view kShapes =
      "X [N, C, *D], W [M, C / group, *K], B [M], Y [N, M, *O], O = conv::OutputSpatial(D, K)";
  static constexpr std::string_view kTypes = "X T, W T, B T, Y T";
  static constexpr std::string_view kLimits =
      "D length [1, 3], K length D, O length D, M multiple_of group, C multiple_of group, "
      "kernel_shape length D min 1, strides length D min 1, pads length 2 * D min 0, "
      "dilations length D min 1, group min 1";
  using Attributes = conv::Attributes;
  struct Inputs {
    RequiredInput X = nullptr;
    RequiredInput W = nullptr;
    const ConstTensorRef* B = nullptr;
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

/// Gradients of Conv.
struct ConvGrad {
  static constexpr std::string_view kShapes =
      "dY [N, M, *O], X [N, C, *D], W [M, C / group, *K], dX [N, C, *D], dW [M, C / group, *K], "
      "dB [M], O = conv::OutputSpatial(D, K)";
  static constexpr std::string_view kTypes = "dY T, X T, W T, dX T, dW T, dB T";
  static constexpr std::string_view kLimits = Conv::kLimits;
  static constexpr std::string_view kGradientOf = "Conv, dY of Y, dX of X, dW of W, dB of B";
  using Attributes = conv::Attributes;
  struct Inputs {
    RequiredInput dY = nullptr;
    RequiredInput X = nullptr;
    RequiredInput W = nullptr;
  };
  struct Outputs {
    const TensorRef* dX = nullptr;
    const TensorRef* dW = nullptr;
    const TensorRef* dB = nullptr;
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

/// The transpose of Conv.
struct ConvTranspose {
  static constexpr std::string_view kShapes =
      "X [N, C, *D], W [C, M / group, *K], B [M], Y [N, M, *O], "
      "O = conv::TransposedOutputSpatial(D, K)";
  static constexpr std::string_view kTypes = Conv::kTypes;
  static constexpr std::string_view kLimits =
      "D length [1, 3], K length D, O length D, M multiple_of group, C multiple_of group, "
      "kernel_shape length D min 1, strides length D min 1, pads length 2 * D min 0, "
      "dilations length D min 1, group min 1, output_padding length D min 0, "
      "output_shape length D min 0";
  using Attributes = conv::TransposedAttributes;
  using Inputs = Conv::Inputs;
  using Outputs = Conv::Outputs;
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

/// Gradients of ConvTranspose.
struct ConvTransposeGrad {
  static constexpr std::string_view kShapes =
      "dY [N, M, *O], X [N, C, *D], W [C, M / group, *K], dX [N, C, *D], dW [C, M / group, *K], "
      "dB [M], O = conv::TransposedOutputSpatial(D, K)";
  static constexpr std::string_view kTypes = ConvGrad::kTypes;
  static constexpr std::string_view kLimits = ConvTranspose::kLimits;
  static constexpr std::string_view kGradientOf =
      "ConvTranspose, dY of Y, dX of X, dW of W, dB of B";
  using Attributes = conv::TransposedAttributes;
  using Inputs = ConvGrad::Inputs;
  using Outputs = ConvGrad::Outputs;
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

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_KERNELS_H_
