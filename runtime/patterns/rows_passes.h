#ifndef GRADSMITH_PATTERNS_ROWS_PASSES_H_
#define GRADSMITH_PATTERNS_ROWS_PASSES_H_

#include <cstddef>
#include <span>

#include "core/inline_vector.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"
#include "patterns/named_dims.h"
#include "patterns/rows.h"
#include "patterns/rows_task.h"

/// Operators whose formulas one pass of the pattern `rows` does not compute: several do, and leave
/// what later ones need in temporaries.
namespace gradsmith::internal {

/// The most inputs and outputs, and the most temporaries, of such an operator. The generator
/// refuses others.
inline constexpr int kMaxRowsArguments = 16;
inline constexpr int kMaxRowsTemporaries = 8;

/// RowsPass is one pass over memory.
struct RowsPass {
  RowsCounts counts;
  /// The names of the dims of the largest tensor that it reads, as a set.
  unsigned whole = 0;
  /// The names of the dims that make a row, as a set.
  unsigned of_row = 0;
  /// The operands in the pattern's order, of which those behind the operator's are temporaries.
  std::span<const NamedOperand> operands;
  /// Computes the pass on the context's threads.
  Status (*run)(
      const Context& context,
      std::span<const TensorRef> tensors,
      const RowsAxes& axes,
      std::span<const double> scalars) = nullptr;
};

/// RunRowsPass is RowsPass::run of a functor.
template <typename Functor>
Status RunRowsPass(
    const Context& context,
    std::span<const TensorRef> tensors,
    const RowsAxes& axes,
    std::span<const double> scalars) {
  constexpr std::size_t kOperands = RowsPlaces<Functor>::kEnd;
  return RunRowsOf<Functor>(context, tensors.template first<kOperands>(), axes, scalars);
}

/// RowsPassOf returns the pass of a functor.
template <typename Functor>
constexpr RowsPass
RowsPassOf(unsigned whole, unsigned of_row, std::span<const NamedOperand> operands) {
  return {
      .counts = CountsOf<Functor>(),
      .whole = whole,
      .of_row = of_row,
      .operands = operands,
      .run = &RunRowsPass<Functor>};
}

/// RowsPasses are all of an operator's, in their order.
struct RowsPasses {
  /// How many inputs and outputs the operator has.
  int inputs = 0;
  int outputs = 0;
  std::span<const RowsPass> passes;
  /// The names of the dims of each temporary. They are of float, and of double in calls that have
  /// doubles.
  std::span<const IntList> temporaries;
};

/// PassOperands are a call's operands as each of the passes is given them. They allocate nothing.
class PassOperands {
 public:
  using Tensors = InlineVector<TensorRef, kMaxRowsTensors>;

  PassOperands(
      const RowsPasses& passes,
      const NamedDims& dims,
      std::span<const ConstTensorRef> inputs,
      std::span<const TensorRef> outputs);

  /// The bytes that all temporaries take.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  /// Where each temporary begins, in bytes.
  [[nodiscard]] std::size_t offset(int temporary) const { return offsets_[temporary]; }
  /// Gives the temporaries memory of `bytes` bytes.
  void Place(void* memory);

  /// Whether a pass gives an output that is wanted, or what a later one needs for such.
  [[nodiscard]] bool IsWanted(std::size_t pass) const { return is_wanted_[static_cast<int>(pass)]; }
  /// Spread returns a pass's operands, which have the dims that the pattern expects; strides are 0
  /// along dims that an argument lacks.
  [[nodiscard]] Tensors Spread(std::size_t pass) const;
  [[nodiscard]] RowsAxes Axes(std::size_t pass) const {
    return dims_.Axes(passes_.passes[pass].of_row, passes_.passes[pass].whole);
  }

 private:
  using Arguments = InlineVector<TensorRef, kMaxRowsArguments + kMaxRowsTemporaries>;

  void FindWanted();

  RowsPasses passes_;
  NamedDims dims_;
  /// The call's inputs, behind which the temporaries lie.
  Arguments inputs_;
  Arguments outputs_;
  InlineVector<std::size_t, kMaxRowsTemporaries> offsets_;
  std::size_t bytes_ = 0;
  /// Each pass gives an output or leaves a temporary.
  InlineVector<bool, kMaxRowsArguments + kMaxRowsTemporaries> is_wanted_;
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_PATTERNS_ROWS_PASSES_H_
