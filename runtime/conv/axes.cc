#include "conv/axes.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/window.h"

namespace gradsmith::conv {
namespace {

using internal::EntryOr;
using internal::IsSame;
using internal::kMaxExtent;
using internal::Wide;
using internal::WindowFault;
using internal::WindowList;
using internal::WindowSpan;

/// What the attributes say of one axis.
struct AxisAttributes {
  std::int64_t stride;
  std::int64_t dilation;
  std::int64_t pad_begin;
  std::int64_t pad_end;
};

/// An input axis of D positions meets a filter of K; both rules turn that into an Axis.
struct AxisSizes {
  std::int64_t D;
  std::int64_t K;
};

Status AxisError(int axis, const std::string& what) {
  return InvalidArgument("spatial axis " + std::to_string(axis) + ": " + what);
}

std::string Text(std::string_view name, std::int64_t value) {
  return std::string(name) + " " + std::to_string(value);
}

Status TooLarge(int axis, std::string_view what) {
  return AxisError(axis, std::string(what) + " passes 2^62 positions; expected at most 2^62");
}

bool AllZero(const IntList& list) {
  return std::all_of(list.begin(), list.end(), [](std::int64_t value) { return value == 0; });
}

Status CheckLists(const Attributes& attributes, int rank) {
  const WindowList lists[] = {
      {"kernel_shape", attributes.kernel_shape, 1, 1},
      {"strides", attributes.strides, 1, 1},
      {"pads", attributes.pads, 2, 0},
      {"dilations", attributes.dilations, 1, 1}};
  return internal::CheckWindowLists(lists, rank);
}

Status CheckLists(const TransposedAttributes& attributes, int rank) {
  const Attributes& shared = attributes;
  if (Status status = CheckLists(shared, rank); !status.ok()) {
    return status;
  }
  const WindowList lists[] = {
      {"output_padding", attributes.output_padding, 1, 0},
      {"output_shape", attributes.output_shape, 1, 0}};
  return internal::CheckWindowLists(lists, rank);
}

Status CheckPadSources(const Attributes& attributes) {
  return internal::CheckPadSources(attributes.auto_pad, attributes.pads);
}

Status CheckPadSources(const TransposedAttributes& attributes) {
  const Attributes& shared = attributes;
  if (Status status = CheckPadSources(shared); !status.ok() || attributes.output_shape.empty()) {
    return status;
  }
  if (!AllZero(attributes.pads)) {
    return InvalidArgument(
        "attribute pads is " + ToString(attributes.pads) +
        "; expected none, or zeros, where output_shape sets the pads");
  }
  if (attributes.auto_pad == AutoPad::VALID) {
    return InvalidArgument(
        "attribute output_shape is given; expected none where auto_pad is VALID, as both set the pads");
  }
  return {};
}

Status CheckFilter(const Attributes& attributes, const Dims& D, const Dims& K) {
  if (D.size() < 1 || D.size() > kMaxSpatialRank || K.size() != D.size()) {
    return InvalidArgument(
        "X has " + std::to_string(D.size()) + " spatial axes and W has " +
        std::to_string(K.size()) + "; expected the same number, from 1 to 3");
  }
  for (int axis = 0; axis < K.size(); ++axis) {
    if (K[axis] < 1) {
      return AxisError(axis, Text("the filter has size", K[axis]) + "; expected 1 or more");
    }
    if (D[axis] < 0 || std::max(D[axis], K[axis]) > kMaxExtent) {
      return AxisError(
          axis, "X has " + std::to_string(D[axis]) + " and W has " + std::to_string(K[axis]) +
                    " positions; expected at most 2^62");
    }
  }
  if (!attributes.kernel_shape.empty() && !(attributes.kernel_shape == K)) {
    return InvalidArgument(
        "attribute kernel_shape is " + ToString(attributes.kernel_shape) +
        "; expected W's spatial dims " + ToString(K));
  }
  return {};
}

template <typename Given>
Status CheckArguments(const Given& attributes, const Dims& D, const Dims& K) {
  if (Status status = CheckFilter(attributes, D, K); !status.ok()) {
    return status;
  }
  if (Status status = CheckLists(attributes, D.size()); !status.ok()) {
    return status;
  }
  return CheckPadSources(attributes);
}

AxisAttributes AttributesOf(const Attributes& attributes, int axis, int rank) {
  return {
      .stride = EntryOr(1, attributes.strides, axis),
      .dilation = EntryOr(1, attributes.dilations, axis),
      .pad_begin = EntryOr(0, attributes.pads, axis),
      .pad_end = EntryOr(0, attributes.pads, axis + rank)};
}

Status DoesNotReach(int axis, const Axis& resolved) {
  return AxisError(
      axis,
      Text("the padded input has", resolved.x + resolved.pad_begin + resolved.pad_end) +
          " positions (" + std::to_string(resolved.x) + " and " + Text("pads", resolved.pad_begin) +
          ", " + std::to_string(resolved.pad_end) + "); expected at least the " +
          std::to_string(static_cast<std::int64_t>(WindowSpan(resolved.w, resolved.dilation))) +
          " that the filter spans (" + Text("size", resolved.w) + ", " +
          Text("dilation", resolved.dilation) + ")");
}

Result<Axis> ConvolutionAxis(const Attributes& attributes, int index, AxisSizes sizes, int rank) {
  const AxisAttributes given = AttributesOf(attributes, index, rank);
  internal::WindowAxis windows{
      .input = sizes.D,
      .size = sizes.K,
      .stride = given.stride,
      .dilation = given.dilation,
      .pad_begin = given.pad_begin,
      .pad_end = given.pad_end};
  const WindowFault fault = internal::PlaceWindows(attributes.auto_pad, false, &windows);
  const Axis axis{
      .x = windows.input,
      .w = windows.size,
      .y = windows.output,
      .stride = windows.stride,
      .dilation = windows.dilation,
      .pad_begin = windows.pad_begin,
      .pad_end = windows.pad_end};
  switch (fault) {
    case WindowFault::kNone:
      break;
    case WindowFault::kWindowTooLarge:
      return TooLarge(index, "the filter, with dilations,");
    case WindowFault::kInputTooLarge:
      return TooLarge(index, "the input, with pads,");
    case WindowFault::kDoesNotReach:
      return DoesNotReach(index, axis);
  }
  return axis;
}

Status CheckOutputPadding(int index, std::int64_t output_padding, const AxisAttributes& given) {
  const std::int64_t limit = std::max(given.stride, given.dilation);
  if (output_padding < limit) {
    return {};
  }
  return AxisError(
      index, Text("output_padding is", output_padding) + "; expected less than " +
                 std::to_string(limit) + ", the larger of " + Text("stride", given.stride) +
                 " and " + Text("dilation", given.dilation));
}

/// Sets the size of the transposed convolution's output, which is axis->x, and the pads. `full` is
/// the size before pads take from it.
Status
SetTransposedOutput(const TransposedAttributes& attributes, int index, Wide full, Axis* axis) {
  const bool has_output_shape = !attributes.output_shape.empty();
  if (axis->y == 0) {
    axis->x = has_output_shape ? attributes.output_shape[index] : 0;
  } else if (has_output_shape || IsSame(attributes.auto_pad)) {
    const Wide size =
        has_output_shape ? attributes.output_shape[index] : Wide{axis->y} * axis->stride;
    axis->x = static_cast<std::int64_t>(std::min<Wide>(size, kMaxExtent + Wide{1}));
    internal::SplitPads(
        full - size, attributes.auto_pad == AutoPad::SAME_UPPER, &axis->pad_begin, &axis->pad_end);
  } else {
    const Wide size = full - axis->pad_begin - axis->pad_end;
    if (size < 0) {
      return AxisError(
          index, "pads " + std::to_string(axis->pad_begin) + ", " + std::to_string(axis->pad_end) +
                     " are cut from an output of " +
                     std::to_string(static_cast<std::int64_t>(full)) +
                     " positions; expected no more than that");
    }
    axis->x = static_cast<std::int64_t>(size);
  }
  return axis->x > kMaxExtent ? TooLarge(index, "the output") : Status();
}

Result<Axis>
TransposedAxis(const TransposedAttributes& attributes, int index, AxisSizes sizes, int rank) {
  const AxisAttributes given = AttributesOf(attributes, index, rank);
  const std::int64_t output_padding = EntryOr(0, attributes.output_padding, index);
  if (Status status = CheckOutputPadding(index, output_padding, given); !status.ok()) {
    return status;
  }
  Axis axis{
      .x = 0,
      .w = sizes.K,
      .y = sizes.D,
      .stride = given.stride,
      .dilation = given.dilation,
      .pad_begin = given.pad_begin,
      .pad_end = given.pad_end};
  const Wide filter = WindowSpan(axis.w, axis.dilation);
  if (filter > kMaxExtent) {
    return TooLarge(index, "the filter, with dilations,");
  }
  const Wide full = (Wide{axis.stride} * (axis.y - 1)) + output_padding + filter;
  if (full > kMaxExtent) {
    return TooLarge(index, "the output before pads");
  }
  if (Status status = SetTransposedOutput(attributes, index, full, &axis); !status.ok()) {
    return status;
  }
  return axis;
}

template <typename Given>
using AxisRule = Result<Axis> (*)(const Given&, int, AxisSizes, int);

template <typename Given>
Result<Axes>
ResolveBy(const Given& attributes, const Dims& D, const Dims& K, AxisRule<Given> rule) {
  if (Status status = CheckArguments(attributes, D, K); !status.ok()) {
    return status;
  }
  Axes axes;
  for (int i = 0; i < D.size(); ++i) {
    Result<Axis> axis = rule(attributes, i, {.D = D[i], .K = K[i]}, D.size());
    if (!axis.ok()) {
      return axis.status();
    }
    axes[i] = *axis;
  }
  return axes;
}

/// One of the sizes of each axis.
Result<Dims> SizesOf(const Result<Axes>& axes, int rank, std::int64_t Axis::*size) {
  if (!axes.ok()) {
    return axes.status();
  }
  Dims sizes;
  for (int i = 0; i < rank; ++i) {
    sizes.push_back((*axes)[i].*size);
  }
  return sizes;
}

}  // namespace

Result<Axes> ResolveAxes(const Attributes& attributes, const Dims& D, const Dims& K) {
  return ResolveBy(attributes, D, K, ConvolutionAxis);
}

Result<Axes> ResolveAxes(const TransposedAttributes& attributes, const Dims& D, const Dims& K) {
  return ResolveBy(attributes, D, K, TransposedAxis);
}

Result<Dims> OutputSpatial(const Attributes& attributes, const Dims& D, const Dims& K) {
  return SizesOf(ResolveAxes(attributes, D, K), D.size(), &Axis::y);
}

Result<Dims>
TransposedOutputSpatial(const TransposedAttributes& attributes, const Dims& D, const Dims& K) {
  return SizesOf(ResolveAxes(attributes, D, K), D.size(), &Axis::x);
}

}  // namespace gradsmith::conv
