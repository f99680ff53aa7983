#ifndef GRADSMITH_PATTERNS_NAMED_DIMS_H_
#define GRADSMITH_PATTERNS_NAMED_DIMS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "gradsmith/tensor.h"
#include "patterns/rows.h"

/// How the tensors of an operator that has formulas are handed to a kernel pattern where the
/// formulas name dims.
namespace gradsmith::internal {

/// NamedOperand says which argument an operand of the pattern is.
struct NamedOperand {
  /// Its number among the operator's inputs, or among its outputs.
  int argument = 0;
  /// The entries of its shape: the number of each one's name in NamedDims, or kUnnamed for a dim
  /// of 1.
  IntList names;
};

inline constexpr std::int64_t kUnnamed = -1;

/// SplitDim says which dim of an argument is two to formulas.
struct SplitDim {
  /// The argument's number among the operator's inputs, or among its outputs.
  int argument = 0;
  bool is_output = false;
  /// Less than 0 where it is counted from the last.
  int dim = 0;
  /// How many the first of the two has.
  std::int64_t first = 1;
};

constexpr SplitDim SplitInput(int argument, int dim, std::int64_t first) {
  return {.argument = argument, .dim = dim, .first = first};
}
constexpr SplitDim SplitOutput(int argument, int dim, std::int64_t first) {
  return {.argument = argument, .is_output = true, .dim = dim, .first = first};
}

/// SplitArguments are a call's arguments as formulas see them to which some dims are two.
class SplitArguments {
 public:
  /// What counts from the first dim is split from the last such dim to the first.
  SplitArguments(
      std::span<const ConstTensorRef> inputs,
      std::span<const TensorRef> outputs,
      std::span<const SplitDim> splits);

  [[nodiscard]] std::span<const ConstTensorRef> inputs() const { return inputs_; }
  [[nodiscard]] std::span<const TensorRef> outputs() const { return outputs_; }

 private:
  std::vector<ConstTensorRef> inputs_;
  std::vector<TensorRef> outputs_;
};

/// NamedDims are the dims of a call's largest tensor, of which each name has one or, if it is a
/// list symbol, several or none. Names are numbers, and sets of them have bit i set for name i.
class NamedDims {
 public:
  /// The length of the one name that has what others leave of the dims.
  static constexpr std::int64_t kRest = -1;

  /// `lengths` are how many dims each name has.
  NamedDims(const Dims& dims, std::span<const std::int64_t> lengths);

  /// How many dims each name has.
  [[nodiscard]] const IntList& lengths() const { return lengths_; }
  /// Axes returns the places of the names' dims in a tensor that has those of `whole`.
  [[nodiscard]] RowsAxes Axes(unsigned names, unsigned whole) const;
  /// DimsOf returns the dims of a tensor that has those of the names, in their order.
  [[nodiscard]] Dims DimsOf(const IntList& names) const;
  /// Count returns the product of the names' dims.
  [[nodiscard]] std::int64_t Count(unsigned names) const;
  /// Spread returns the tensor with the dims of all these names, in order. Along those that it
  /// lacks it has strides of 0.
  [[nodiscard]] TensorRef Spread(const TensorRef& tensor, const IntList& own_names, unsigned names)
      const;

 private:
  [[nodiscard]] int names() const { return lengths_.size(); }

  Dims dims_;
  IntList lengths_;
  /// The place of each name's first dim.
  IntList begins_;
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_PATTERNS_NAMED_DIMS_H_
