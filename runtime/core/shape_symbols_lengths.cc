/// How many dims tensors and lists of dims have, for ShapeSymbols.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/attribute_value.h"
#include "core/shape_symbols.h"
#include "core/shape_text.h"
#include "core/stub.h"
#include "core/text.h"

namespace gradsmith::internal {

namespace {

/// ListValue is the value of a list attribute, of whatever numbers: its length and its text.
struct ListValue {
  int size = 0;
  const IntList* integers = nullptr;
  const FloatList* reals = nullptr;

  [[nodiscard]] std::string text() const {
    return integers != nullptr ? ToString(*integers) : ToString(*reals);
  }
};

/// ListValueOf returns the value of a list attribute; size 0 where it is absent.
ListValue ListValueOf(const AttributeSpec& spec, const void* attributes) {
  if (spec.kind == AttributeKind::kFloats) {
    const auto* list = FindAttribute<FloatList>(spec, attributes);
    return list == nullptr ? ListValue() : ListValue{.size = list->size(), .reals = list};
  }
  const auto* list = FindAttribute<IntList>(spec, attributes);
  return list == nullptr ? ListValue() : ListValue{.size = list->size(), .integers = list};
}

/// ConditionValue returns what decides whether a dim is there: the number of an enum's value, or 1
/// for true.
int ConditionValue(const AttributeSpec& spec, const void* attributes) {
  return spec.kind == AttributeKind::kEnum ? AttributeAt<std::uint8_t>(spec, attributes)
                                           : static_cast<int>(AttributeAt<bool>(spec, attributes));
}

std::string ConditionText(const AttributeSpec& spec, const void* attributes) {
  const int value = ConditionValue(spec, attributes);
  if (spec.kind == AttributeKind::kEnum) {
    return std::string(spec.choices[static_cast<std::size_t>(value)]);
  }
  return value != 0 ? "true" : "false";
}

}  // namespace

bool ShapeSymbols::HasConditionOf(const DimSpec& spec) const {
  return ConditionValue(op_.attributes[spec.condition], attributes_) == spec.condition_value;
}

int ShapeSymbols::LengthRoot(int symbol) const {
  while (op_.symbols[symbol].length_of >= 0) {
    symbol = op_.symbols[symbol].length_of;
  }
  return symbol;
}

Status ShapeSymbols::SetAxes(std::span<const ConstTensorRef> inputs) {
  inputs_ = inputs;
  for (const AttributeSpec& spec : op_.attributes) {
    if (spec.axis_of < 0) {
      continue;
    }
    const Dims& dims = inputs[static_cast<std::size_t>(spec.axis_of)].dims;
    const auto axis = AttributeAt<std::int64_t>(spec, attributes_);
    const int rank = dims.size();
    if (axis < -rank || axis >= rank) {
      const std::string range =
          rank == 0 ? "a tensor that has axes"
                    : std::to_string(-rank) + " to " + std::to_string(rank - 1) + ", an axis of it";
      return InvalidArgument(
          "attribute " + std::string(spec.name) + " is " + std::to_string(axis) + ", and " +
          ShapeText(op_.inputs[static_cast<std::size_t>(spec.axis_of)].name, dims) + "; expected " +
          range);
    }
  }
  return {};
}

int ShapeSymbols::BoundAlike(int symbol) const {
  for (int i = 0; i < static_cast<int>(op_.symbols.size()) && !bound_[symbol]; ++i) {
    if (bound_[i] && op_.symbols[i].is_list && LengthRoot(i) == LengthRoot(symbol)) {
      return i;
    }
  }
  return symbol;
}

ShapeSymbols::RankRange ShapeSymbols::ListLengths(int symbol) const {
  const int length = ExpectedListLength(symbol);
  return length < 0 ? LengthsOf(symbol) : RankRange{length, length};
}

ShapeSymbols::RankRange ShapeSymbols::LengthsOf(int symbol) const {
  const SymbolSpec& root = op_.symbols[LengthRoot(symbol)];
  const bool is_other =
      root.length_if >= 0 && AttributeAt<bool>(op_.attributes[root.length_if], attributes_);
  return is_other ? RankRange{root.min_length_if, root.max_length_if}
                  : RankRange{root.min_length, root.max_length};
}

int ShapeSymbols::ExpectedListLength(int symbol) const {
  const int root = LengthRoot(symbol);
  if (const int axis = op_.symbols[root].length_axis; axis >= 0) {
    const AttributeSpec& spec = op_.attributes[axis];
    const int rank = inputs_[static_cast<std::size_t>(spec.axis_of)].rank();
    return static_cast<int>(AxisFromStart(AttributeAt<std::int64_t>(spec, attributes_), rank));
  }
  return bound_[symbol] ? values_[symbol].size() : lengths_[root] - 1;
}

ShapeSymbols::Ranks ShapeSymbols::RanksOf(const TensorSpec& tensor) const {
  RankRange range{0, 0};
  int unknown = 0;  // lists
  bool can_bind = true;
  for (const DimSpec& spec : tensor.shape) {
    if (!IsThere(spec)) {
      continue;
    }
    const RankRange lengths = IsList(spec) ? ListLengths(spec.symbol) : RankRange{1, 1};
    range.minimum += lengths.minimum;
    range.maximum += lengths.maximum;
    unknown += lengths.minimum < lengths.maximum ? 1 : 0;
    can_bind = can_bind && (spec.kind != DimSpec::Kind::kCeil || bound_[spec.symbol]);
  }
  range.maximum = std::max(range.minimum, std::min(range.maximum, kMaxRank));
  return {range, can_bind && unknown <= 1};
}

std::string ShapeSymbols::RankConditions(const TensorSpec& tensor) const {
  std::string text;
  const auto tell = [&](int attribute, const std::string& value) {
    const std::string told = std::string(op_.attributes[attribute].name) + " = " + value;
    if (text.find(told) == std::string::npos) {
      text += (text.empty() ? " with " : ", ") + told;
    }
  };
  for (const DimSpec& spec : tensor.shape) {
    if (spec.condition >= 0) {
      tell(spec.condition, ConditionText(op_.attributes[spec.condition], attributes_));
    }
    if (!IsList(spec)) {
      continue;
    }
    const SymbolSpec& root = op_.symbols[LengthRoot(spec.symbol)];
    if (root.length_axis >= 0) {
      const AttributeSpec& axis = op_.attributes[root.length_axis];
      const std::string value = std::to_string(AttributeAt<std::int64_t>(axis, attributes_));
      tell(root.length_axis, value + " of " + std::string(op_.inputs[axis.axis_of].name));
    }
    if (root.length_if >= 0) {
      tell(root.length_if, ConditionText(op_.attributes[root.length_if], attributes_));
    }
  }
  return text;
}

Status ShapeSymbols::CheckAttributeLengths() {
  lengths_wait_ = false;
  for (const AttributeSpec& spec : op_.attributes) {
    if (spec.length_of < 0) {
      continue;
    }
    const ListValue list = ListValueOf(spec, attributes_);
    if (list.size == 0) {
      continue;
    }
    const int length = ExpectedListLength(spec.length_of);
    lengths_wait_ = lengths_wait_ || length < 0;
    if (length < 0 || list.size == spec.length_factor * length) {
      continue;
    }
    const std::string_view symbol = op_.symbols[spec.length_of].name;
    return InvalidArgument(
        "attribute " + std::string(spec.name) + " is " + list.text() + ", " +
        Counted(list.size, "value") + "; expected " + std::to_string(spec.length_factor * length) +
        ": " + (spec.length_factor == 1 ? "one" : std::to_string(spec.length_factor)) +
        " for each dim of " + std::string(symbol) + " (" + Describe(BoundAlike(spec.length_of)) +
        ")");
  }
  return {};
}

}  // namespace gradsmith::internal
