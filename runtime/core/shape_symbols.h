#ifndef GRADSMITH_CORE_SHAPE_SYMBOLS_H_
#define GRADSMITH_CORE_SHAPE_SYMBOLS_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "gradsmith/schema.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

namespace gradsmith::internal {

/// ShapeSymbols binds the symbols of an op's shapes (`N`, `*D`, ...) to dims, tensor by tensor, and
/// remembers which tensor bound each, for messages. One call's worth of state; allocates only to
/// say what is wrong.
class ShapeSymbols {
 public:
  static constexpr int kCapacity = 16;

  ShapeSymbols(const OpSchema& op, const void* attributes) : op_(op), attributes_(attributes) {}

  /// Bind matches `dims` with the tensor's declared shape: free symbols take their dims, bound ones
  /// must agree.
  Status Bind(const TensorSpec& tensor, const Dims& dims);

  /// ApplyRules checks the scalars that must be multiples of an attribute, and computes the symbols
  /// that have a shape rule; one that a tensor bound already must agree.
  Status ApplyRules();

  /// Expand returns the tensor's dims by what is bound, or an error that names the symbol that is
  /// not.
  [[nodiscard]] Result<Dims> Expand(const TensorSpec& tensor) const;

  /// CheckAttributeLengths compares list attributes with the list symbols that set their lengths.
  [[nodiscard]] Status CheckAttributeLengths() const;

 private:
  struct RankRange {
    int minimum;
    int maximum;
  };

  [[nodiscard]] RankRange Ranks(const TensorSpec& tensor) const;
  /// The symbol that the lengths of this and others hang on.
  [[nodiscard]] int LengthRoot(int symbol) const;
  /// The length that a bound symbol of the same root sets, or -1.
  [[nodiscard]] int ExpectedListLength(int symbol) const;
  Status BindList(const TensorSpec& tensor, const Dims& dims, int first, int length, int symbol);
  Status BindScalar(const TensorSpec& tensor, const Dims& dims, int axis, const DimSpec& spec);
  Status BindQuotient(const TensorSpec& tensor, const Dims& dims, int axis, const DimSpec& spec);
  [[nodiscard]] Status CheckMultiple(int symbol) const;
  void Set(int symbol, const Dims& value, std::string_view origin);
  [[nodiscard]] std::int64_t Divisor(const DimSpec& spec) const;
  /// "N = 2 from X".
  [[nodiscard]] std::string Describe(int symbol) const;
  /// "conv::OutputSpatial(D, K), D = [5, 5] from X, K = [3, 3] from W".
  [[nodiscard]] std::string RuleText(const SymbolSpec& symbol) const;
  /// What a symbol's shape rule worked on: "conv::OutputSpatial(D, K) with D = [5] from X, K = [3]
  /// from W".
  [[nodiscard]] std::string DescribeRule(int symbol) const;
  [[nodiscard]] Status
  Mismatch(const TensorSpec& tensor, const Dims& dims, int axis, const std::string& expected) const;

  const OpSchema& op_;
  const void* attributes_;
  std::array<Dims, kCapacity> values_{};
  std::array<bool, kCapacity> bound_{};
  std::array<std::string_view, kCapacity> origin_{};
};

/// AttributeAt returns the attribute's field in the op's attributes struct.
template <typename T>
const T& AttributeAt(const AttributeSpec& spec, const void* attributes) {
  return *reinterpret_cast<const T*>(static_cast<const std::byte*>(attributes) + spec.offset);
}

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_SHAPE_SYMBOLS_H_
