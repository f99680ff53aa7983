#include "core/no_cuda/no_cuda.h"
#include "layer_norm/kernels.h"

/// The CUDA kernels of a build without them.
namespace gradsmith::layer_norm {

Status LayerNormalization::RunCuda(
    const Context& /*context*/,
    const Attributes& /*attributes*/,
    const Inputs& /*inputs*/,
    const Outputs& /*outputs*/) {
  return internal::NoCuda();
}

Status LayerNormalizationGrad::RunCuda(
    const Context& /*context*/,
    const Attributes& /*attributes*/,
    const Inputs& /*inputs*/,
    const Outputs& /*outputs*/) {
  return internal::NoCuda();
}

Status SimplifiedLayerNormalization::RunCuda(
    const Context& /*context*/,
    const Attributes& /*attributes*/,
    const Inputs& /*inputs*/,
    const Outputs& /*outputs*/) {
  return internal::NoCuda();
}

Status SimplifiedLayerNormalizationGrad::RunCuda(
    const Context& /*context*/,
    const Attributes& /*attributes*/,
    const Inputs& /*inputs*/,
    const Outputs& /*outputs*/) {
  return internal::NoCuda();
}

}  // namespace gradsmith::layer_norm
