#include "patterns/run_rows.h"

#include "core/no_cuda/no_cuda.h"

namespace gradsmith::internal {

Status RunRowsOnCuda(
    const Context& /*context*/,
    const cuda::OpInfo& /*op*/,
    const RowsCall& /*call*/,
    std::span<const ConstTensorRef> /*inputs*/,
    std::span<const TensorRef> /*outputs*/) {
  return NoCuda();
}

}  // namespace gradsmith::internal
