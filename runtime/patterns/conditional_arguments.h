#ifndef GRADSMITH_PATTERNS_CONDITIONAL_ARGUMENTS_H_
#define GRADSMITH_PATTERNS_CONDITIONAL_ARGUMENTS_H_

#include <span>

#include "core/inline_vector.h"
#include "gradsmith/tensor.h"
#include "patterns/named_dims.h"
#include "patterns/rows_passes.h"

/// How the tensors of an operator that has formulas are handed to a kernel pattern where some dims
/// are there only with a certain value of an attribute, such as those of a loss for each sample.
namespace gradsmith::internal {

/// ConditionalArguments are a call's arguments as formulas see them: inputs have all their dims,
/// and an output that may have more dims or fewer is two, of which one is absent. They allocate
/// nothing.
class ConditionalArguments {
 public:
  /// The operator has so many inputs and outputs; absent ones may be missing at the end.
  ConditionalArguments(
      std::span<const ConstTensorRef> inputs,
      int input_count,
      std::span<const TensorRef> outputs,
      int output_count);

  /// Spread gives an input the dims of all these names. Those of `own_names` it has in this call;
  /// along the others it is the same.
  void Spread(int input, const NamedDims& dims, const IntList& own_names, unsigned names);

  /// Divide makes two of an output: the one in its place is there where `is_other` is false, and
  /// one behind all others where it is true.
  void Divide(int output, bool is_other);

  [[nodiscard]] std::span<const ConstTensorRef> inputs() const {
    return {inputs_.begin(), inputs_.end()};
  }
  [[nodiscard]] std::span<const TensorRef> outputs() const {
    return {outputs_.begin(), outputs_.end()};
  }

 private:
  InlineVector<ConstTensorRef, kMaxRowsArguments> inputs_;
  InlineVector<TensorRef, kMaxRowsArguments> outputs_;
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_PATTERNS_CONDITIONAL_ARGUMENTS_H_
