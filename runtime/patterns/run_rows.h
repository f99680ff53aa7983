#ifndef GRADSMITH_PATTERNS_RUN_ROWS_H_
#define GRADSMITH_PATTERNS_RUN_ROWS_H_

#include <array>
#include <cstddef>
#include <span>

#include "cuda/op_task.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"
#include "patterns/named_dims.h"
#include "patterns/rows.h"

/// How an operator whose formulas reduce is run: by the pattern `rows`, whose operands are
/// arguments of the operator.
namespace gradsmith::internal {

/// RowsCall is a call as the registration stub knows it, or a part of one: a pass over memory,
/// which gives some of the outputs. One of whose outputs none is wanted does nothing.
struct RowsCall {
  NamedDims dims;
  /// The names of the dims that make a row, as a set.
  unsigned of_row = 0;
  /// In the pattern's order.
  std::span<const NamedOperand> operands;
  std::span<const double> scalars;
};

/// RunRowsOnCpu computes rows on the context's threads.
template <typename Functor>
Status RunRowsOnCpu(
    const Context& context,
    const RowsCall& call,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  std::array<TensorRef, RowsPlaces<Functor>::kEnd> tensors;
  const bool is_wanted = SpreadOperands(
      call.dims, call.of_row, CountsOf<Functor>(), call.operands, inputs, outputs, tensors);
  return is_wanted ? RunRowsOf<Functor>(context, tensors, call.dims.Axes(call.of_row), call.scalars)
                   : Status();
}

/// RunRowsOnCuda computes rows with the operator's kernels, which are in `op.image`, and of whose
/// functor `op.rows` tells; in a build without CUDA it returns an error.
Status RunRowsOnCuda(
    const Context& context,
    const cuda::OpInfo& op,
    const RowsCall& call,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs);

}  // namespace gradsmith::internal

#endif  // GRADSMITH_PATTERNS_RUN_ROWS_H_
