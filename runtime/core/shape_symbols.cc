#include "core/shape_symbols.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/attribute_value.h"
#include "core/shape_text.h"
#include "core/tiles.h"

namespace gradsmith::internal {

struct ShapeSymbols::Many {
  explicit Many(std::size_t size)
      : values(size), bound(std::make_unique<bool[]>(size)), origins(size), lengths(size) {}
  std::vector<Dims> values;
  std::unique_ptr<bool[]> bound;
  std::vector<std::string_view> origins;
  std::vector<std::int8_t> lengths;
};

ShapeSymbols::ShapeSymbols(const OpSchema& op, const void* attributes)
    : op_(op), attributes_(attributes) {
  const std::size_t size = op.symbols.size();
  if (size > kCapacity) {
    many_ = std::make_unique<Many>(size);
    values_ = many_->values;
    bound_ = {many_->bound.get(), size};
    origin_ = many_->origins;
    lengths_ = many_->lengths;
  }
}

ShapeSymbols::~ShapeSymbols() = default;

Status ShapeSymbols::Bind(const TensorSpec& tensor, const Dims& dims, const Ranks& ranks) {
  const auto [least, most] = ranks.range;
  if (dims.too_long() || dims.size() < least || dims.size() > most) {
    return InvalidArgument(
        ShapeText(tensor, dims) + ", rank " +
        (dims.too_long() ? "over 8" : std::to_string(dims.size())) + "; expected rank " +
        RangeText(least, most) + ": " + std::string(tensor.shape_text) + RankConditions(tensor));
  }
  const int spare = dims.size() - least;  // dims of the one list whose length is not known
  int axis = 0;
  for (const DimSpec& spec : tensor.shape) {
    if (!IsThere(spec)) {
      continue;
    }
    Status status;
    if (IsList(spec)) {
      const RankRange lengths = ListLengths(spec.symbol);
      const int length = lengths.minimum + (lengths.minimum < lengths.maximum ? spare : 0);
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
  if (!bound_[symbol]) {
    Set(symbol, Dims(std::span(dims.begin() + first, static_cast<std::size_t>(length))),
        tensor.name);
    return {};
  }
  const Dims& bound = values_[symbol];
  for (int i = 0; i < length; ++i) {
    if (dims[first + i] != bound[i]) {
      return Mismatch(
          tensor, dims, first + i, std::to_string(bound[i]) + " (" + Describe(symbol) + ")");
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
        Describe(spec.symbol) + " is no multiple of " + given + ", and " + ShapeText(tensor, dims) +
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

void ShapeSymbols::Set(int symbol, const Dims& value, std::string_view origin) {
  values_[symbol] = value;
  bound_[symbol] = true;
  origin_[symbol] = origin;
  if (std::int8_t& length = lengths_[LengthRoot(symbol)];
      length == 0 && op_.symbols[symbol].is_list) {
    length = static_cast<std::int8_t>(value.size() + 1);
  }
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

Status ShapeSymbols::Mismatch(
    const TensorSpec& tensor,
    const Dims& dims,
    int axis,
    const std::string& expected) const {
  return InvalidArgument(
      ShapeText(tensor, dims) + ", " + std::to_string(dims[axis]) + " at dimension " +
      std::to_string(axis) + "; expected " + expected + ": " + std::string(tensor.shape_text));
}

}  // namespace gradsmith::internal
