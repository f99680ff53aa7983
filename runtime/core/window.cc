#include "core/window.h"

#include <algorithm>
#include <string>

namespace gradsmith::internal {

namespace {

Status CheckLength(const WindowList& rule, int expected) {
  const IntList& list = rule.list;
  if (list.empty() || (list.size() == expected && !list.too_long())) {
    return {};
  }
  return InvalidArgument(
      "attribute " + std::string(rule.name) + " has " + std::to_string(list.size()) +
      (list.too_long() ? " or more" : "") + " entries; expected " + std::to_string(expected));
}

Status CheckMinimum(const WindowList& rule) {
  for (int i = 0; i < rule.list.size(); ++i) {
    if (rule.list[i] < rule.minimum) {
      return InvalidArgument(
          "attribute " + std::string(rule.name) + "[" + std::to_string(i) + "] is " +
          std::to_string(rule.list[i]) + "; expected " + std::to_string(rule.minimum) + " or more");
    }
  }
  return {};
}

std::string_view Name(AutoPad auto_pad) {
  switch (auto_pad) {
    case AutoPad::NOTSET:
      return "NOTSET";
    case AutoPad::SAME_UPPER:
      return "SAME_UPPER";
    case AutoPad::SAME_LOWER:
      return "SAME_LOWER";
    case AutoPad::VALID:
      return "VALID";
  }
  return "unknown";
}

/// How many windows begin at a distance of stride from each other where the last may begin at
/// `room`, or with ceil_mode less than a stride behind. Room may be negative.
Wide WindowsWithin(Wide room, std::int64_t stride, bool ceil_mode) {
  if (room >= 0) {
    return ((room + (ceil_mode ? stride - 1 : 0)) / stride) + 1;
  }
  return ceil_mode && -room < stride ? 1 : 0;
}

}  // namespace

void SplitPads(Wide total, bool odd_at_end, std::int64_t* pad_begin, std::int64_t* pad_end) {
  const auto pads = static_cast<std::int64_t>(std::max<Wide>(total, 0));
  const std::int64_t half = pads / 2;
  *pad_begin = odd_at_end ? half : pads - half;
  *pad_end = pads - *pad_begin;
}

bool IsSame(AutoPad auto_pad) {
  return auto_pad == AutoPad::SAME_UPPER || auto_pad == AutoPad::SAME_LOWER;
}

WindowFault PlaceWindows(AutoPad auto_pad, bool ceil_mode, WindowAxis* axis) {
  const Wide span = WindowSpan(axis->size, axis->dilation);
  if (span > kMaxExtent) {
    return WindowFault::kWindowTooLarge;
  }
  if (IsSame(auto_pad)) {
    axis->output = static_cast<std::int64_t>((Wide{axis->input} + axis->stride - 1) / axis->stride);
    const Wide total = (Wide{axis->output - 1} * axis->stride) + span - axis->input;
    SplitPads(
        axis->output == 0 ? 0 : total, auto_pad == AutoPad::SAME_UPPER, &axis->pad_begin,
        &axis->pad_end);
    return WindowFault::kNone;
  }
  const Wide padded = Wide{axis->input} + axis->pad_begin + axis->pad_end;
  if (padded > kMaxExtent) {
    return WindowFault::kInputTooLarge;
  }
  const bool rounds_up = ceil_mode && auto_pad == AutoPad::NOTSET;
  Wide output = WindowsWithin(padded - span, axis->stride, rounds_up);
  if (rounds_up) {
    const Wide begins = Wide{axis->input} + axis->pad_begin;
    output = std::min(output, (begins + axis->stride - 1) / axis->stride);
  }
  axis->output = static_cast<std::int64_t>(output);
  return output == 0 && axis->input != 0 ? WindowFault::kDoesNotReach : WindowFault::kNone;
}

Status CheckWindowLists(std::span<const WindowList> lists, int rank) {
  for (const WindowList& rule : lists) {
    if (Status status = CheckLength(rule, rule.factor * rank); !status.ok()) {
      return status;
    }
    if (Status status = CheckMinimum(rule); !status.ok()) {
      return status;
    }
  }
  return {};
}

Status CheckPadSources(AutoPad auto_pad, const IntList& pads) {
  const bool has_pads = std::ranges::any_of(pads, [](std::int64_t pad) { return pad != 0; });
  if (auto_pad == AutoPad::NOTSET || !has_pads) {
    return {};
  }
  return InvalidArgument(
      "attribute pads is " + ToString(pads) + "; expected none, or zeros, where auto_pad is " +
      std::string(Name(auto_pad)));
}

}  // namespace gradsmith::internal
