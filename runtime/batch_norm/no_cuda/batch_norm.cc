#include "batch_norm/kernels.h"
#include "core/no_cuda/no_cuda.h"

/// The CUDA kernels of a build without them.
namespace gradsmith::batch_norm {

Status BatchNormalization::RunCuda(
    const Context& /*context*/,
    const Attributes& /*attributes*/,
    const Inputs& /*inputs*/,
    const Outputs& /*outputs*/) {
  return internal::NoCuda();
}

Status BatchNormalizationGrad::RunCuda(
    const Context& /*context*/,
    const Attributes& /*attributes*/,
    const Inputs& /*inputs*/,
    const Outputs& /*outputs*/) {
  return internal::NoCuda();
}

Status BatchNormalizationRelu::RunCuda(
    const Context& /*context*/,
    const Attributes& /*attributes*/,
    const Inputs& /*inputs*/,
    const Outputs& /*outputs*/) {
  return internal::NoCuda();
}

Status BatchNormalizationReluGrad::RunCuda(
    const Context& /*context*/,
    const Attributes& /*attributes*/,
    const Inputs& /*inputs*/,
    const Outputs& /*outputs*/) {
  return internal::NoCuda();
}

}  // namespace gradsmith::batch_norm
