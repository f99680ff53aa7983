#include "core/no_cuda/no_cuda.h"
#include "elementwise/kernels.h"

/// The CUDA kernels of a build without them.
namespace gradsmith::elementwise {

Status Sigmoid::RunCuda(
    const Context& /*context*/,
    const Attributes& /*attributes*/,
    const Inputs& /*inputs*/,
    const Outputs& /*outputs*/) {
  return internal::NoCuda();
}

Status SigmoidGrad::RunCuda(
    const Context& /*context*/,
    const Attributes& /*attributes*/,
    const Inputs& /*inputs*/,
    const Outputs& /*outputs*/) {
  return internal::NoCuda();
}

Status LeakyRelu::RunCuda(
    const Context& /*context*/,
    const Attributes& /*attributes*/,
    const Inputs& /*inputs*/,
    const Outputs& /*outputs*/) {
  return internal::NoCuda();
}

Status LeakyReluGrad::RunCuda(
    const Context& /*context*/,
    const Attributes& /*attributes*/,
    const Inputs& /*inputs*/,
    const Outputs& /*outputs*/) {
  return internal::NoCuda();
}

}  // namespace gradsmith::elementwise
