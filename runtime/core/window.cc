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

}  // namespace gradsmith::internal
