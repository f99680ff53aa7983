#ifndef GRADSMITH_PATTERNS_RUN_ROWS_H_
#define GRADSMITH_PATTERNS_RUN_ROWS_H_

#include <span>

#include "cuda/op_task.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"
#include "patterns/named_dims.h"
#include "patterns/rows_passes.h"

/// How an operator whose formulas reduce is run: by the pattern `rows`, whose operands are
/// arguments of the operator.
namespace gradsmith::internal {

/// RowsCall is a call as the registration stub knows it.
struct RowsCall {
  NamedDims dims;
  RowsPasses passes;
  std::span<const double> scalars;
};

/// RunRowsOnCpu computes rows on the context's threads.
Status RunRowsOnCpu(
    const Context& context,
    const RowsCall& call,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs);

/// RunRowsOnCuda computes rows with the operator's kernels, which are in `op.image`, and of whose
/// passes `op.rows` tells; in a build without CUDA it returns an error.
Status RunRowsOnCuda(
    const Context& context,
    const cuda::OpInfo& op,
    const RowsCall& call,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs);

}  // namespace gradsmith::internal

#endif  // GRADSMITH_PATTERNS_RUN_ROWS_H_
