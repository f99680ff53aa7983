#include "core/window.h"

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
