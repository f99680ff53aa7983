#include "conv/axes.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "conv/shape_rules.h"
#include "core/window.h"

namespace gradsmith::conv {
namespace {

using internal::kMaxExtent;
using internal::WindowFault;
using internal::WindowList;

Status AxisError(int axis, const std::string& what) {
  return InvalidArgument("spatial axis " + std::to_string(axis) + ": " + what);
}

Status TooLarge(int axis, std::string_view what) {
  return AxisError(axis, std::string(what) + " passes 2^62 positions; expected at most 2^62");
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

Status CheckFilter(const Dims& D, const Dims& K) {
  if (D.size() < 1 || D.size() > kMaxSpatialRank || K.size() != D.size()) {
    return InvalidArgument(
        "X has " + std::to_string(D.size()) + " spatial axes and W has " +
        std::to_string(K.size()) + "; expected the same number, from 1 to 3");
  }
  for (int axis = 0; axis < K.size(); ++axis) {
    if (D[axis] < 0 || std::max(D[axis], K[axis]) > kMaxExtent) {
      return AxisError(
          axis, "X has " + std::to_string(D[axis]) + " and W has " + std::to_string(K[axis]) +
                    " positions; expected at most 2^62");
    }
  }
  return {};
}

template <typename Given>
Status CheckArguments(const Given& attributes, const Dims& D, const Dims& K) {
  if (Status status = CheckFilter(D, K); !status.ok()) {
    return status;
  }
  return CheckLists(attributes, D.size());
}

Status SetAxis(const rules::OutputSpatial& rule, Axis* axis) {
  WindowFault fault = WindowFault::kNone;
  const internal::WindowAxis windows =
      internal::PlaceWindows(rule, rule.attributes.auto_pad, &fault);
  if (fault == WindowFault::kWindowTooLarge) {
    return TooLarge(rule.axis, "the filter, with dilations,");
  }
  if (fault == WindowFault::kInputTooLarge) {
    return TooLarge(rule.axis, "the input, with pads,");
  }
  if (!rule.Holds()) {
    return internal::FaultOf<rules::OutputSpatial>(rule.axis, rule.attributes, rule.D, rule.K);
  }
  *axis = {
      .x = windows.input,
      .w = windows.size,
      .y = windows.output,
      .stride = windows.stride,
      .dilation = windows.dilation,
      .pad_begin = windows.pad_begin,
      .pad_end = windows.pad_end};
  return {};
}

/// The rule's size is that of the output, which is x.
Status SetAxis(const rules::TransposedOutputSpatial& rule, Axis* axis) {
  if (rule.span > kMaxExtent) {
    return TooLarge(rule.axis, "the filter, with dilations,");
  }
  if (rule.full > kMaxExtent) {
    return TooLarge(rule.axis, "the output before pads");
  }
  if (!rule.Holds()) {
    return internal::FaultOf<rules::TransposedOutputSpatial>(
        rule.axis, rule.attributes, rule.D, rule.K);
  }
  if (rule.value > kMaxExtent) {
    return TooLarge(rule.axis, "the output");
  }
  *axis = {
      .x = rule.value.number,
      .w = rule.size.number,
      .y = rule.D[rule.axis],
      .stride = rule.stride.number,
      .dilation = rule.dilation.number,
      .pad_begin = rule.pad_begin.number,
      .pad_end = rule.pad_end.number};
  if (axis->y != 0 && (rule.sized || rule.same)) {
    const internal::SplitPads pads(
        rule.full - rule.value, rule.attributes.auto_pad == AutoPad::SAME_UPPER);
    axis->pad_begin = pads.begin;
    axis->pad_end = pads.end;
  }
  return {};
}

template <typename Rule, typename Given>
Result<Axes> ResolveBy(const Given& attributes, const Dims& D, const Dims& K) {
  if (Status status = CheckArguments(attributes, D, K); !status.ok()) {
    return status;
  }
  Axes axes;
  for (int i = 0; i < D.size(); ++i) {
    if (Status status = SetAxis(Rule{attributes, D, K, i}, &axes[i]); !status.ok()) {
      return status;
    }
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
  return ResolveBy<rules::OutputSpatial>(attributes, D, K);
}

Result<Axes> ResolveAxes(const TransposedAttributes& attributes, const Dims& D, const Dims& K) {
  return ResolveBy<rules::TransposedOutputSpatial>(attributes, D, K);
}

Result<Dims> OutputSpatial(const Attributes& attributes, const Dims& D, const Dims& K) {
  return SizesOf(ResolveAxes(attributes, D, K), D.size(), &Axis::y);
}

Result<Dims>
TransposedOutputSpatial(const TransposedAttributes& attributes, const Dims& D, const Dims& K) {
  return SizesOf(ResolveAxes(attributes, D, K), D.size(), &Axis::x);
}

}  // namespace gradsmith::conv
