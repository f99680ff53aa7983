#include "core/shape_rules.h"

#include <string>

namespace gradsmith::internal {

std::string RuleText(Extent number) {
  return std::to_string(number.number);
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
