#include "core/no_cuda/no_cuda.h"
#include "prelu/kernels.h"

/// The CUDA kernels of a build without them.
namespace gradsmith::prelu {

Status PRelu::RunCuda(
    const Context& /*context*/,
    const Attributes& /*attributes*/,
    const Inputs& /*inputs*/,
    const Outputs& /*outputs*/) {
  return internal::NoCuda();
}

Status PReluGrad::RunCuda(
    const Context& /*context*/,
    const Attributes& /*attributes*/,
    const Inputs& /*inputs*/,
    const Outputs& /*outputs*/) {
  return internal::NoCuda();
}

}  // namespace gradsmith::prelu
