#include "core/shape_rules.h"

#include <string>

namespace gradsmith::internal {

std::string RuleText(Wide number) {
  if (FitsInt64(number)) {
    return std::to_string(static_cast<std::int64_t>(number));
  }
  return number > 0 ? "more than 2^63" : "less than -2^63";
}

std::string RuleText(const IntList& list) {
  return ToString(list);
}

std::string RuleText(AutoPad auto_pad) {
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

}  // namespace gradsmith::internal
