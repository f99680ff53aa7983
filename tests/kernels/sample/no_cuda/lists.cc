#include "core/no_cuda/no_cuda.h"
#include "sample/kernels.h"

/// The CUDA kernels of a build without them.
namespace gradsmith::sample {

Status Descend::RunCuda(
    const Context& /*context*/,
    const Attributes& /*attributes*/,
    const Inputs& /*inputs*/,
    const Outputs& /*outputs*/) {
  return internal::NoCuda();
}

}  // namespace gradsmith::sample
