#ifndef GRADSMITH_CORE_SHAPE_SYMBOLS_H_
#define GRADSMITH_CORE_SHAPE_SYMBOLS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "gradsmith/schema.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

namespace gradsmith::internal {

/// ShapeSymbols binds the symbols of an op's shapes (`N`, `*D`, ...) to dims, tensor by tensor, and
/// remembers which tensor bound each, for messages. One call's worth of state; allocates only to
/// say what is wrong, and where an op that is spelled out has more symbols than others may.
class ShapeSymbols {
 public:
  static constexpr int kCapacity = 16;

  ShapeSymbols(const OpSchema& op, const void* attributes);

  ~ShapeSymbols();
  ShapeSymbols(const ShapeSymbols&) = delete;
  ShapeSymbols& operator=(const ShapeSymbols&) = delete;
  ShapeSymbols(ShapeSymbols&&) = delete;
  ShapeSymbols& operator=(ShapeSymbols&&) = delete;

  /// SetAxes checks the attributes that are axes of an input, whose dims they go by. The inputs
  /// outlive this.
  Status SetAxes(std::span<const ConstTensorRef> inputs);

  /// RankRange is how many dims a tensor or a list may have.
  struct RankRange {
    int minimum;
    int maximum;
  };

  /// Ranks is how many dims a tensor may have by what is bound.
  struct Ranks {
    RankRange range;
    /// Whether what the tensor needs is known: all its lists of dims but one have a length that an
    /// attribute, the schema or a tensor bound before sets, and so is each N of its ceil(N / 32),
    /// where N may be a list of dims.
    bool can_bind;
  };
  [[nodiscard]] Ranks RanksOf(const TensorSpec& tensor) const;

  /// Bind matches `dims` with the tensor's declared shape: free symbols take their dims, bound ones
  /// must agree. The tensor must be one that can be bound, and `ranks` what RanksOf returns now. Of
  /// one that holds a shape, `dims` are what it holds.
  Status Bind(const TensorSpec& tensor, const Dims& dims, const Ranks& ranks);

  /// CheckPromises compares list attributes with the list symbols that set their lengths, scalars
  /// with the attributes that they must be multiples of, and lists with those that they broadcast
  /// to. What is not bound yet waits for the next call, which does nothing where nothing waits:
  /// call it before what relies on these, and once all is bound.
  Status CheckPromises();

  /// ApplyAttributes takes the dims that attributes give; a symbol that a tensor bound already must
  /// agree.
  Status ApplyAttributes();

  /// ApplyRules computes the symbols that are sums or have a shape rule; one that a tensor bound
  /// already must agree.
  Status ApplyRules();

  /// Expand returns the tensor's dims by what is bound, or an error that names the symbol that is
  /// not.
  [[nodiscard]] Result<Dims> Expand(const TensorSpec& tensor) const;

 private:
  /// IsList returns whether an entry of a shape is a list of dims.
  [[nodiscard]] bool IsList(const DimSpec& spec) const {
    return spec.kind == DimSpec::Kind::kSymbol && op_.symbols[spec.symbol].is_list;
  }
  /// IsThere returns whether an entry of a shape is there with these attributes.
  [[nodiscard]] bool IsThere(const DimSpec& spec) const {
    return spec.condition < 0 || HasConditionOf(spec);
  }
  [[nodiscard]] bool HasConditionOf(const DimSpec& spec) const;
  /// LengthsOf returns how many dims the schema allows a list.
  [[nodiscard]] RankRange LengthsOf(int symbol) const;
  /// RankConditions returns the attributes on which the tensor's rank hangs, as " with axis = 1 of
  /// Y, coerced = true"; nothing where there are none.
  [[nodiscard]] std::string RankConditions(const TensorSpec& tensor) const;
  /// LengthRoot returns the symbol that the lengths of this and others hang on.
  [[nodiscard]] int LengthRoot(int symbol) const;
  /// ExpectedListLength returns the length that an axis or a bound symbol of the same root sets, or
  /// -1.
  [[nodiscard]] int ExpectedListLength(int symbol) const;
  /// ListLengths returns how many dims a list may have by what is bound.
  [[nodiscard]] RankRange ListLengths(int symbol) const;
  /// BoundAlike returns the symbol where it is bound; otherwise one of the same length that is.
  [[nodiscard]] int BoundAlike(int symbol) const;
  Status BindList(const TensorSpec& tensor, const Dims& dims, int first, int length, int symbol);
  Status BindScalar(const TensorSpec& tensor, const Dims& dims, int axis, const DimSpec& spec);
  Status BindQuotient(const TensorSpec& tensor, const Dims& dims, int axis, const DimSpec& spec);
  [[nodiscard]] Status
  CheckCeil(const TensorSpec& tensor, const Dims& dims, int axis, const DimSpec& spec) const;
  /// CheckAttributeLengths is the part of CheckPromises that is of attributes.
  Status CheckAttributeLengths();
  /// CheckDims is the part of CheckPromises that is of scalars and lists.
  Status CheckDims();
  Status CheckMultiple(int symbol);
  Status CheckBroadcast(int symbol);
  /// ApplyAttribute binds a symbol to the dims that an attribute gives, or compares them.
  Status ApplyAttribute(int symbol);
  Status ApplyNumber(int symbol, const AttributeSpec& attribute);
  /// ApplySum binds a symbol to the sum of others, or compares it.
  Status ApplySum(int symbol);
  /// ApplyRule binds a symbol to what its shape rule computes, or compares it.
  Status ApplyRule(int symbol);
  /// TermsText says what a sum is made of: "P[0] = 2 from X[0], P[1] = 3 from X[1]".
  [[nodiscard]] std::string TermsText(const SymbolSpec& sum) const;
  /// SymbolsOfEach returns how far apart the symbols are that a sum is made of.
  [[nodiscard]] int SymbolsOfEach() const;
  /// UnboundText says what can bind a symbol that nothing binds.
  [[nodiscard]] std::string UnboundText(const TensorSpec& tensor, int symbol) const;
  void Set(int symbol, const Dims& value, std::string_view origin);
  [[nodiscard]] std::int64_t Divisor(const DimSpec& spec) const;
  /// Describe returns "N = 2 from X".
  [[nodiscard]] std::string Describe(int symbol) const;
  /// RuleText returns "conv::OutputSpatial(D, K), D = [5, 5] from X, K = [3, 3] from W".
  [[nodiscard]] std::string RuleText(const SymbolSpec& symbol) const;
  /// DescribeRule says what a symbol's shape rule worked on: "conv::OutputSpatial(D, K) with D =
  /// [5] from X, K = [3] from W".
  [[nodiscard]] std::string DescribeRule(int symbol) const;
  [[nodiscard]] Status
  Mismatch(const TensorSpec& tensor, const Dims& dims, int axis, const std::string& expected) const;

  const OpSchema& op_;
  const void* attributes_;
  std::array<Dims, kCapacity> few_values_{};
  std::array<bool, kCapacity> few_bound_{};
  std::array<std::string_view, kCapacity> few_origins_{};
  std::array<std::int8_t, kCapacity> few_lengths_{};
  /// What stands in the place of these where there are more.
  struct Many;
  std::unique_ptr<Many> many_;
  std::span<Dims> values_ = few_values_;
  std::span<bool> bound_ = few_bound_;
  std::span<std::string_view> origin_ = few_origins_;
  /// The length of the first list that was bound, plus one, for each root that LengthRoot returns;
  /// 0 where none was bound.
  std::span<std::int8_t> lengths_ = few_lengths_;
  /// The inputs that attributes are axes of.
  std::span<const ConstTensorRef> inputs_;
  /// Whether lengths of attributes, and multiples and lists that broadcast, are still to be
  /// checked.
  bool lengths_wait_ = true;
  bool dims_wait_ = true;
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_SHAPE_SYMBOLS_H_
