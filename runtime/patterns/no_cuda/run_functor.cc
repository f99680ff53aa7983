#include "patterns/run_functor.h"

#include "core/no_cuda/no_cuda.h"

namespace gradsmith::internal {

Status RunFunctorOfRows(
    const Context& /*context*/,
    const FunctorCall& /*call*/,
    const cuda::RowsKernels& /*kernels*/,
    const RowsAxes& /*axes*/,
    std::span<const double> /*scalars*/) {
  return NoCuda();
}

Status RunFunctorOfWindows(
    const Context& /*context*/,
    const FunctorCall& /*call*/,
    const WindowsGeometry& /*windows*/,
    bool /*gathers*/) {
  return NoCuda();
}

}  // namespace gradsmith::internal
