#include "conv/kernels.h"
#include "core/no_cuda/no_cuda.h"

/// The CUDA kernels of a build without them.
namespace gradsmith::conv {

Status Conv::RunCuda(
    const Context& /*context*/,
    const Attributes& /*attributes*/,
    const Inputs& /*inputs*/,
    const Outputs& /*outputs*/) {
  return internal::NoCuda();
}

Status ConvGrad::RunCuda(
    const Context& /*context*/,
    const Attributes& /*attributes*/,
    const Inputs& /*inputs*/,
    const Outputs& /*outputs*/) {
  return internal::NoCuda();
}

Status ConvTranspose::RunCuda(
    const Context& /*context*/,
    const Attributes& /*attributes*/,
    const Inputs& /*inputs*/,
    const Outputs& /*outputs*/) {
  return internal::NoCuda();
}

Status ConvTransposeGrad::RunCuda(
    const Context& /*context*/,
    const Attributes& /*attributes*/,
    const Inputs& /*inputs*/,
    const Outputs& /*outputs*/) {
  return internal::NoCuda();
}

}  // namespace gradsmith::conv
