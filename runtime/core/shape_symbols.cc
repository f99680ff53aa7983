#include "core/shape_symbols.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/broadcast.h"
#include "core/stub.h"
#include "core/text.h"
#include "core/tiles.h"

namespace gradsmith::internal {

namespace {

std::string Quote(std::string_view name, const Dims& dims) {
  return std::string(name) + " has shape " + ToString(dims);
}

std::string Quote(const TensorSpec& tensor, const Dims& dims) {
  if (tensor.shape_of.empty()) {
    return Quote(tensor.name, dims);
  }
  return std::string(tensor.name) + " gives " + std::string(tensor.shape_of) + " the shape " +
         ToString(dims);
}

bool IsList(const OpSchema& op, const DimSpec& spec) {
  return spec.kind == DimSpec::Kind::kSymbol && op.symbols[spec.symbol].is_list;
}

std::string RangeText(int minimum, int maximum) {
  return minimum == maximum ? std::to_string(minimum)
                            : std::to_string(minimum) + " to " + std::to_string(maximum);
}

/// How long a list attribute is, of whatever numbers, and its text.
struct ListForm {
  int size = 0;
  const IntList* integers = nullptr;
  const FloatList* reals = nullptr;

  [[nodiscard]] std::string text() const {
    return integers != nullptr ? ToString(*integers) : ToString(*reals);
  }
};

/// The form of a list attribute; size 0 where it is absent.
ListForm FormOf(const AttributeSpec& spec, const void* attributes) {
  if (spec.kind == AttributeKind::kFloats) {
    const auto* list = FindAttribute<FloatList>(spec, attributes);
    return list == nullptr ? ListForm() : ListForm{.size = list->size(), .reals = list};
  }
  const auto* list = FindAttribute<IntList>(spec, attributes);
  return list == nullptr ? ListForm() : ListForm{.size = list->size(), .integers = list};
}

/// What decides whether a dim is there: the number of an enum's value, or 1 for true.
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

struct ShapeSymbols::Many {
  explicit Many(std::size_t size)
      : values(size), bound(std::make_unique<bool[]>(size)), origins(size) {}
  std::vector<Dims> values;
  std::unique_ptr<bool[]> bound;
  std::vector<std::string_view> origins;
};

ShapeSymbols::ShapeSymbols(const OpSchema& op, const void* attributes)
    : op_(op), attributes_(attributes) {
  const std::size_t size = op.symbols.size();
  if (size > kCapacity) {
    many_ = std::make_unique<Many>(size);
    values_ = many_->values;
    bound_ = {many_->bound.get(), size};
    origin_ = many_->origins;
  }
}

ShapeSymbols::~ShapeSymbols() = default;

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
          Quote(op_.inputs[static_cast<std::size_t>(spec.axis_of)].name, dims) + "; expected " +
          range);
    }
  }
  return {};
}

bool ShapeSymbols::CanBind(const TensorSpec& tensor) const {
  int unknown = 0;
  for (const DimSpec& spec : tensor.shape) {
    if (!IsThere(spec)) {
      continue;
    }
    unknown += IsList(op_, spec) && KnownListLength(spec.symbol) < 0 ? 1 : 0;
    if (spec.kind == DimSpec::Kind::kCeil && !bound_[spec.symbol]) {
      return false;
    }
  }
  return unknown <= 1;
}

bool ShapeSymbols::IsThere(const DimSpec& spec) const {
  return spec.condition < 0 ||
         ConditionValue(op_.attributes[spec.condition], attributes_) == spec.condition_value;
}

int ShapeSymbols::BoundAlike(int symbol) const {
  for (int i = 0; i < static_cast<int>(op_.symbols.size()) && !bound_[symbol]; ++i) {
    if (bound_[i] && op_.symbols[i].is_list && LengthRoot(i) == LengthRoot(symbol)) {
      return i;
    }
  }
  return symbol;
}

int ShapeSymbols::KnownListLength(int symbol) const {
  const int length = ExpectedListLength(symbol);
  const RankRange allowed = LengthsOf(symbol);
  return length < 0 && allowed.minimum == allowed.maximum ? allowed.minimum : length;
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
  if (bound_[symbol]) {
    return values_[symbol].size();
  }
  // A length that each tensor of a list has of its own is that of symbols of the same place alone.
  const bool is_of_each = op_.symbols[root].of_each;
  const int count = is_of_each ? SymbolsOfEach() : static_cast<int>(op_.symbols.size());
  const int first = is_of_each ? root / count * count : 0;
  for (int i = first; i < first + count; ++i) {
    if (bound_[i] && op_.symbols[i].is_list && LengthRoot(i) == root) {
      return values_[i].size();
    }
  }
  return -1;
}

ShapeSymbols::RankRange ShapeSymbols::Ranks(const TensorSpec& tensor) const {
  RankRange range{0, 0};
  for (const DimSpec& spec : tensor.shape) {
    if (!IsThere(spec)) {
      continue;
    }
    if (!IsList(op_, spec)) {
      ++range.minimum;
      ++range.maximum;
      continue;
    }
    const int length = ExpectedListLength(spec.symbol);
    const RankRange allowed = length >= 0 ? RankRange{length, length} : LengthsOf(spec.symbol);
    range.minimum += allowed.minimum;
    range.maximum += allowed.maximum;
  }
  range.maximum = std::max(range.minimum, std::min(range.maximum, kMaxRank));
  return range;
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
    if (!IsList(op_, spec)) {
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

Status ShapeSymbols::Bind(const TensorSpec& tensor, const Dims& dims) {
  const RankRange ranks = Ranks(tensor);
  if (dims.too_long() || dims.size() < ranks.minimum || dims.size() > ranks.maximum) {
    return InvalidArgument(
        Quote(tensor, dims) + ", rank " +
        (dims.too_long() ? "over 8" : std::to_string(dims.size())) + "; expected rank " +
        RangeText(ranks.minimum, ranks.maximum) + ": " + std::string(tensor.shape_text) +
        RankConditions(tensor));
  }
  int rest = dims.size();  // the dims of the one list whose length is not known
  for (const DimSpec& spec : tensor.shape) {
    if (!IsThere(spec)) {
      continue;
    }
    rest -= IsList(op_, spec) ? std::max(0, KnownListLength(spec.symbol)) : 1;
  }
  int axis = 0;
  for (const DimSpec& spec : tensor.shape) {
    if (!IsThere(spec)) {
      continue;
    }
    Status status;
    if (IsList(op_, spec)) {
      const int known = KnownListLength(spec.symbol);
      const int length = known < 0 ? rest : known;
      status = BindList(tensor, dims, axis, length, spec.symbol);
      axis += length;
    } else if (spec.kind == DimSpec::Kind::kQuotient) {
      status = BindQuotient(tensor, dims, axis++, spec);
    } else if (spec.kind == DimSpec::Kind::kCeil) {
      status = CheckCeil(tensor, dims, axis++, spec);
    } else {
      status = BindScalar(tensor, dims, axis++, spec);
    }
    if (!status.ok()) {
      return status;
    }
  }
  return {};
}

Status ShapeSymbols::BindList(
    const TensorSpec& tensor,
    const Dims& dims,
    int first,
    int length,
    int symbol) {
  Dims value;
  for (int i = 0; i < length; ++i) {
    value.push_back(dims[first + i]);
  }
  if (!bound_[symbol]) {
    Set(symbol, value, tensor.name);
    return {};
  }
  for (int i = 0; i < length; ++i) {
    if (value[i] != values_[symbol][i]) {
      return Mismatch(
          tensor, dims, first + i,
          std::to_string(values_[symbol][i]) + " (" + Describe(symbol) + ")");
    }
  }
  return {};
}

Status ShapeSymbols::BindScalar(
    const TensorSpec& tensor,
    const Dims& dims,
    int axis,
    const DimSpec& spec) {
  if (spec.kind == DimSpec::Kind::kConstant) {
    return dims[axis] == spec.constant
               ? Status()
               : Mismatch(tensor, dims, axis, std::to_string(spec.constant));
  }
  if (!bound_[spec.symbol]) {
    Set(spec.symbol, Dims{dims[axis]}, tensor.name);
    return {};
  }
  const std::int64_t expected = values_[spec.symbol][0];
  return dims[axis] == expected
             ? Status()
             : Mismatch(
                   tensor, dims, axis,
                   std::to_string(expected) + " (" + Describe(spec.symbol) + ")");
}

Status ShapeSymbols::BindQuotient(
    const TensorSpec& tensor,
    const Dims& dims,
    int axis,
    const DimSpec& spec) {
  const std::int64_t divisor = Divisor(spec);
  std::int64_t product = 0;
  if (__builtin_mul_overflow(dims[axis], divisor, &product)) {
    return Mismatch(
        tensor, dims, axis,
        "a dim whose product with " + std::string(op_.attributes[spec.divisor].name) +
            " fits 63 bits");
  }
  if (!bound_[spec.symbol]) {
    Set(spec.symbol, Dims{product}, tensor.name);
    return {};
  }
  const std::int64_t dividend = values_[spec.symbol][0];
  if (product == dividend) {
    return {};
  }
  const std::string given =
      std::string(op_.attributes[spec.divisor].name) + " = " + std::to_string(divisor);
  if (dividend % divisor != 0) {
    return InvalidArgument(
        Describe(spec.symbol) + " is no multiple of " + given + ", and " + Quote(tensor, dims) +
        "; expected " + std::string(tensor.shape_text));
  }
  return Mismatch(
      tensor, dims, axis,
      std::to_string(dividend / divisor) + " (" + Describe(spec.symbol) + ", " + given + ")");
}

Status ShapeSymbols::CheckCeil(
    const TensorSpec& tensor,
    const Dims& dims,
    int axis,
    const DimSpec& spec) const {
  const std::int64_t expected = CeilDivide(NumElements(values_[spec.symbol]), spec.constant);
  return dims[axis] == expected
             ? Status()
             : Mismatch(
                   tensor, dims, axis,
                   std::to_string(expected) + " (" + Describe(spec.symbol) + ", of which each " +
                       std::to_string(spec.constant) + " share one)");
}

Status ShapeSymbols::CheckMultiple(int symbol) const {
  const int attribute = op_.symbols[symbol].multiple_of;
  if (attribute < 0 || !bound_[symbol]) {
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

Status ShapeSymbols::CheckBroadcast(int symbol) const {
  const int target = op_.symbols[symbol].broadcast_to;
  if (target < 0 || !bound_[symbol] || !bound_[target]) {
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
  if (spec.given_by < 0) {
    return {};
  }
  const AttributeSpec& attribute = op_.attributes[spec.given_by];
  if (!spec.is_list) {
    return ApplyNumber(symbol, attribute);
  }
  const auto* given = FindAttribute<IntList>(attribute, attributes_);
  if (given == nullptr || given->empty()) {
    return {};
  }
  const int length = ExpectedListLength(symbol);
  const auto [least, most] = length >= 0 ? RankRange{length, length} : LengthsOf(symbol);
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

std::string ShapeSymbols::UnboundText(const TensorSpec& tensor, int symbol) const {
  const SymbolSpec& spec = op_.symbols[symbol];
  std::string text = std::string(tensor.name) +
                     " has a shape that the inputs given do not set: nothing binds " +
                     std::string(spec.name);
  if (spec.from_outputs) {
    text += spec.given_by < 0
                ? "; expected the output itself"
                : "; expected attribute " + std::string(op_.attributes[spec.given_by].name) +
                      ", or the output itself";
  }
  return text;
}

Status ShapeSymbols::ApplyRules() {
  for (int i = 0; i < static_cast<int>(op_.symbols.size()); ++i) {
    Status status = CheckMultiple(i);
    if (status.ok()) {
      status = CheckBroadcast(i);
    }
    if (status.ok()) {
      status = ApplyAttribute(i);
    }
    if (status.ok()) {
      status = ApplySum(i);
    }
    if (status.ok()) {
      status = ApplyRule(i);
    }
    if (!status.ok()) {
      return status;
    }
  }
  return {};
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
      Quote(binder->name, dims) + ", " + Describe(symbol) + "; expected " + std::to_string(sum) +
      " by " + std::string(spec.rule_name) + ", " + TermsText(spec));
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

Result<Dims> ShapeSymbols::Expand(const TensorSpec& tensor) const {
  Dims dims;
  for (const DimSpec& spec : tensor.shape) {
    if (!IsThere(spec)) {
      continue;
    }
    if (spec.kind == DimSpec::Kind::kConstant) {
      dims.push_back(spec.constant);
      continue;
    }
    if (!bound_[spec.symbol]) {
      return InvalidArgument(UnboundText(tensor, spec.symbol));
    }
    if (spec.kind == DimSpec::Kind::kCeil) {
      dims.push_back(CeilDivide(NumElements(values_[spec.symbol]), spec.constant));
      continue;
    }
    const std::int64_t divisor = spec.kind == DimSpec::Kind::kQuotient ? Divisor(spec) : 1;
    for (const std::int64_t dim : values_[spec.symbol]) {
      dims.push_back(dim / divisor);
    }
  }
  if (dims.too_long()) {
    return InvalidArgument(
        std::string(tensor.name) +
        " would have more than 8 dims; expected at most 8: " + std::string(tensor.shape_text));
  }
  return dims;
}

Status ShapeSymbols::CheckAttributeLengths() const {
  for (const AttributeSpec& spec : op_.attributes) {
    if (spec.length_of < 0) {
      continue;
    }
    const ListForm list = FormOf(spec, attributes_);
    const int length = ExpectedListLength(spec.length_of);
    if (list.size == 0 || length < 0 || list.size == spec.length_factor * length) {
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

void ShapeSymbols::Set(int symbol, const Dims& value, std::string_view origin) {
  values_[symbol] = value;
  bound_[symbol] = true;
  origin_[symbol] = origin;
}

std::int64_t ShapeSymbols::Divisor(const DimSpec& spec) const {
  return AttributeAt<std::int64_t>(op_.attributes[spec.divisor], attributes_);
}

std::string ShapeSymbols::Describe(int symbol) const {
  const SymbolSpec& spec = op_.symbols[symbol];
  return std::string(spec.name) + " = " +
         (spec.is_list ? ToString(values_[symbol]) : std::to_string(values_[symbol][0])) +
         " from " + std::string(origin_[symbol]);
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

Status ShapeSymbols::Mismatch(
    const TensorSpec& tensor,
    const Dims& dims,
    int axis,
    const std::string& expected) const {
  return InvalidArgument(
      Quote(tensor, dims) + ", " + std::to_string(dims[axis]) + " at dimension " +
      std::to_string(axis) + "; expected " + expected + ": " + std::string(tensor.shape_text));
}

}  // namespace gradsmith::internal
