#include "patterns/run_map.h"

#include "core/no_cuda/no_cuda.h"

namespace gradsmith::internal {

Status RunMapOnCuda(
    const Context& /*context*/,
    const cuda::OpInfo& /*op*/,
    std::span<const double> /*scalars*/,
    std::span<const ConstTensorRef> /*inputs*/,
    std::span<const TensorRef> /*outputs*/) {
  return NoCuda();
}

Status RunMapWithSumsOnCuda(
    const Context& /*context*/,
    const cuda::OpInfo& /*op*/,
    std::span<const double> /*scalars*/,
    std::span<const ConstTensorRef> /*inputs*/,
    std::span<const TensorRef> /*outputs*/) {
  return NoCuda();
}

}  // namespace gradsmith::internal
