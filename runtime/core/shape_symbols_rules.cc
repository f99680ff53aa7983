/// What attributes, sums, shape rules and other symbols say of a symbol, for ShapeSymbols.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/attribute_value.h"
#include "core/broadcast.h"
#include "core/shape_symbols.h"
#include "core/shape_text.h"

namespace gradsmith::internal {

Status ShapeSymbols::CheckPromises() {
  if (lengths_wait_) {
    if (Status status = CheckAttributeLengths(); !status.ok()) {
      return status;
    }
  }
  return dims_wait_ ? CheckDims() : Status();
}

Status ShapeSymbols::CheckDims() {
  dims_wait_ = false;
  for (int i = 0; i < static_cast<int>(op_.symbols.size()); ++i) {
    const SymbolSpec& spec = op_.symbols[i];
    if (spec.multiple_of < 0 && spec.broadcast_to < 0) {
      continue;
    }
    Status status = CheckMultiple(i);
    if (status.ok()) {
      status = CheckBroadcast(i);
    }
    if (!status.ok()) {
      return status;
    }
  }
  return {};
}

Status ShapeSymbols::ApplyAttributes() {
  for (int i = 0; i < static_cast<int>(op_.symbols.size()); ++i) {
    if (op_.symbols[i].given_by < 0) {
      continue;
    }
    if (Status status = ApplyAttribute(i); !status.ok()) {
      return status;
    }
  }
  return {};
}

Status ShapeSymbols::ApplyRules() {
  for (int i = 0; i < static_cast<int>(op_.symbols.size()); ++i) {
    const SymbolSpec& spec = op_.symbols[i];
    if (spec.sum_of < 0 && spec.rule == nullptr) {
      continue;
    }
    Status status = ApplySum(i);
    if (status.ok()) {
      status = ApplyRule(i);
    }
    if (!status.ok()) {
      return status;
    }
  }
  return {};
}

Status ShapeSymbols::CheckMultiple(int symbol) {
  const int attribute = op_.symbols[symbol].multiple_of;
  if (attribute < 0) {
    return {};
  }
  if (!bound_[symbol]) {
    dims_wait_ = true;
    return {};
  }
  const AttributeSpec& spec = op_.attributes[attribute];
  const auto divisor = AttributeAt<std::int64_t>(spec, attributes_);
  if (values_[symbol][0] % divisor == 0) {
    return {};
  }
  return InvalidArgument(
      Describe(symbol) + " does not fit; expected a multiple of " + std::string(spec.name) + " = " +
      std::to_string(divisor));
}

Status ShapeSymbols::CheckBroadcast(int symbol) {
  const int target = op_.symbols[symbol].broadcast_to;
  if (target < 0) {
    return {};
  }
  if (!bound_[symbol] || !bound_[target]) {
    dims_wait_ = true;
    return {};
  }
  return BroadcastsTo(values_[symbol], values_[target])
             ? Status()
             : InvalidArgument(
                   Describe(symbol) + " does not broadcast to " + Describe(target) +
                   "; expected each of its dims 1 or equal to that of " +
                   std::string(op_.symbols[target].name) + ", counted from the last");
}

Status ShapeSymbols::ApplyAttribute(int symbol) {
  const SymbolSpec& spec = op_.symbols[symbol];
  const AttributeSpec& attribute = op_.attributes[spec.given_by];
  if (!spec.is_list) {
    return ApplyNumber(symbol, attribute);
  }
  const auto* given = FindAttribute<IntList>(attribute, attributes_);
  if (given == nullptr || given->empty()) {
    return {};
  }
  const auto [least, most] = ListLengths(symbol);
  const std::string is = "attribute " + std::string(attribute.name) + " is " + ToString(*given);
  if (given->size() < least || given->size() > most) {
    return InvalidArgument(
        is + "; expected " + RangeText(least, most) + " dims: those of " + std::string(spec.name));
  }
  if (std::any_of(given->begin(), given->end(), [](std::int64_t dim) { return dim < 0; })) {
    return InvalidArgument(is + "; expected dims, each 0 or more");
  }
  if (!bound_[symbol]) {
    Set(symbol, *given, attribute.name);
    return {};
  }
  return values_[symbol] == *given ? Status()
                                   : InvalidArgument(is + "; expected " + Describe(symbol));
}

Status ShapeSymbols::ApplyNumber(int symbol, const AttributeSpec& attribute) {
  const auto given = AttributeAt<std::int64_t>(attribute, attributes_);
  if (!bound_[symbol]) {
    Set(symbol, Dims{given}, attribute.name);
    return {};
  }
  return values_[symbol][0] == given
             ? Status()
             : InvalidArgument(
                   Describe(symbol) + "; expected " + std::to_string(given) + ", as attribute " +
                   std::string(attribute.name) + " is");
}

Status ShapeSymbols::ApplySum(int symbol) {
  const SymbolSpec& spec = op_.symbols[symbol];
  if (spec.sum_of < 0) {
    return {};
  }
  std::int64_t sum = 0;
  for (std::size_t i = spec.sum_of; i < op_.symbols.size(); i += SymbolsOfEach()) {
    if (__builtin_add_overflow(sum, values_[i][0], &sum)) {
      return InvalidArgument(TermsText(spec) + ", whose sum does not fit; expected less than 2^63");
    }
  }
  if (!bound_[symbol]) {
    Set(symbol, Dims{sum}, spec.rule_name);
    return {};
  }
  if (values_[symbol][0] == sum) {
    return {};
  }
  const auto binder = std::find_if(op_.inputs.begin(), op_.inputs.end(), [&](const auto& input) {
    return input.name == origin_[symbol];
  });
  const Dims& dims = inputs_[static_cast<std::size_t>(binder - op_.inputs.begin())].dims;
  return InvalidArgument(
      ShapeText(binder->name, dims) + ", " + Describe(symbol) + "; expected " +
      std::to_string(sum) + " by " + std::string(spec.rule_name) + ", " + TermsText(spec));
}

int ShapeSymbols::SymbolsOfEach() const {
  return static_cast<int>(op_.symbols.size()) / op_.list_length;
}

std::string ShapeSymbols::TermsText(const SymbolSpec& sum) const {
  constexpr int kShown = 8;
  std::string text;
  for (int place = 0; place < std::min<int>(op_.list_length, kShown); ++place) {
    text += (place == 0 ? "" : ", ") + Describe(sum.sum_of + place * SymbolsOfEach());
  }
  return text + (op_.list_length > kShown ? " and so on" : "");
}

Status ShapeSymbols::ApplyRule(int symbol) {
  const SymbolSpec& spec = op_.symbols[symbol];
  if (spec.rule == nullptr) {
    return {};
  }
  const Result<Dims> computed = spec.rule(attributes_, values_.first(op_.symbols.size()));
  if (!computed.ok()) {
    return computed.status().WithPrefix(DescribeRule(symbol) + ": ");
  }
  if (!bound_[symbol]) {
    Set(symbol, *computed, spec.rule_name);
    return {};
  }
  return values_[symbol] == *computed
             ? Status()
             : InvalidArgument(
                   std::string(origin_[symbol]) + " has " + std::string(spec.name) + " = " +
                   ToString(values_[symbol]) + "; expected " + ToString(*computed) + " by " +
                   RuleText(spec));
}

std::string ShapeSymbols::RuleText(const SymbolSpec& symbol) const {
  std::string text(symbol.rule_name);
  for (std::size_t i = 0; i < op_.symbols.size(); ++i) {
    if (bound_[i] && op_.symbols[i].is_list && op_.symbols[i].rule == nullptr) {
      text += ", " + Describe(static_cast<int>(i));
    }
  }
  return text;
}

std::string ShapeSymbols::DescribeRule(int symbol) const {
  std::string text(op_.symbols[symbol].rule_name);
  std::string_view separator = " with ";
  for (int i = 0; i < static_cast<int>(op_.symbols.size()); ++i) {
    if (i != symbol && bound_[i] && op_.symbols[i].is_list) {
      text += std::string(separator) + Describe(i);
      separator = ", ";
    }
  }
  return text;
}

}  // namespace gradsmith::internal
