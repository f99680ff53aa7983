#include "core/attribute_check.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "core/attribute_value.h"
#include "core/text.h"

namespace gradsmith::internal {

namespace {

std::string LimitText(double value) {
  return std::nearbyint(value) == value && std::abs(value) < 1e15
             ? std::to_string(static_cast<std::int64_t>(value))
             : NumberText(value);
}

/// What was expected in the place of a number.
std::string BoundsText(const AttributeSpec& spec, double value) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  const bool has_minimum = spec.minimum > -kLargest;
  const bool has_maximum = spec.maximum < kLargest;
  if (has_minimum && has_maximum) {
    return LimitText(spec.minimum) + " to " + LimitText(spec.maximum);
  }
  if (has_minimum || has_maximum) {
    const double other = has_minimum ? spec.maximum : spec.minimum;
    return (has_minimum ? "at least " + LimitText(spec.minimum)
                        : "at most " + LimitText(spec.maximum)) +
           (std::isinf(value) && !std::isinf(other) ? " and finite" : "");
  }
  return std::isinf(spec.minimum) || std::isinf(spec.maximum) ? "a number" : "a finite number";
}

template <typename Number>
bool InRange(const AttributeSpec& spec, Number value) {
  return static_cast<double>(value) >= spec.minimum && static_cast<double>(value) <= spec.maximum;
}

template <typename Number>
Status CheckNumber(const AttributeSpec& spec, Number value) {
  return InRange(spec, value)
             ? Status()
             : InvalidArgument(
                   "attribute " + std::string(spec.name) + " is " + ValueInError(value) +
                   "; expected " + BoundsText(spec, static_cast<double>(value)));
}

template <typename Number>
Status CheckList(const AttributeSpec& spec, const BasicList<Number>& list) {
  if (list.too_long()) {
    return InvalidArgument(
        "attribute " + std::string(spec.name) + " is " + ToString(list) + "; expected at most " +
        std::to_string(IntList::kCapacity) + " values");
  }
  for (const Number value : list) {
    if (!InRange(spec, value)) {
      return InvalidArgument(
          "attribute " + std::string(spec.name) + " is " + ToString(list) + ", with " +
          ValueInError(value) + "; expected each " + BoundsText(spec, static_cast<double>(value)));
    }
  }
  return {};
}

Status CheckEnum(const AttributeSpec& spec, std::uint8_t value) {
  return value < spec.choices.size()
             ? Status()
             : InvalidArgument(
                   "attribute " + std::string(spec.name) + " is the enumerator " +
                   std::to_string(value) + "; expected one below " +
                   std::to_string(spec.choices.size()));
}

/// CheckValue checks a value where it is there.
template <typename T, typename Check>
Status CheckValue(const AttributeSpec& spec, const void* attributes, Check check) {
  const T* value = FindAttribute<T>(spec, attributes);
  return value == nullptr ? Status() : check(spec, *value);
}

Status CheckAttribute(const AttributeSpec& spec, const void* attributes) {
  switch (spec.kind) {
    case AttributeKind::kInt:
      return CheckValue<std::int64_t>(spec, attributes, &CheckNumber<std::int64_t>);
    case AttributeKind::kFloat:
      return CheckValue<double>(spec, attributes, &CheckNumber<double>);
    case AttributeKind::kInts:
      return CheckValue<IntList>(spec, attributes, &CheckList<std::int64_t>);
    case AttributeKind::kFloats:
      return CheckValue<FloatList>(spec, attributes, &CheckList<double>);
    case AttributeKind::kEnum:
      return CheckEnum(spec, AttributeAt<std::uint8_t>(spec, attributes));
    case AttributeKind::kBool:
    case AttributeKind::kString:
      return {};
  }
  return Internal("attribute " + std::string(spec.name) + " has an unknown kind");
}

}  // namespace

Status ValidateAttributes(const OpSchema& op, const void* attributes) {
  for (const AttributeSpec& spec : op.attributes) {
    if (Status status = CheckAttribute(spec, attributes); !status.ok()) {
      return status;
    }
  }
  return {};
}

}  // namespace gradsmith::internal
