#ifndef GRADSMITH_PATTERNS_RUN_ROWS_H_
#define GRADSMITH_PATTERNS_RUN_ROWS_H_

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "cuda/op_task.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"
#include "patterns/named_dims.h"
#include "patterns/rows.h"
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

/// RunPassOnCpu computes one pass, if it is wanted.
template <typename Functor>
Status RunPassOnCpu(
    const Context& context,
    const PassOperands& operands,
    std::size_t pass,
    std::span<const double> scalars) {
  if (!operands.IsWanted(pass)) {
    return {};
  }
  const std::vector<TensorRef> tensors = operands.Spread(pass);
  const std::span<const TensorRef, RowsPlaces<Functor>::kEnd> spread(tensors);
  return RunRowsOf<Functor>(context, spread, operands.Axes(pass), scalars);
}

/// RunRowsOnCpu computes rows on the context's threads, one pass for each functor.
template <typename... Functors>
Status RunRowsOnCpu(
    const Context& context,
    const RowsCall& call,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  PassOperands operands(call.passes, call.dims, inputs, outputs);
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(operands.bytes());
  operands.Place(memory.get());
  Status status;
  std::size_t pass = 0;
  const auto run = [&]<typename Functor>() {
    status = RunPassOnCpu<Functor>(context, operands, pass++, call.scalars);
    return status.ok();
  };
  (void)(run.template operator()<Functors>() && ...);
  return status;
}

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
