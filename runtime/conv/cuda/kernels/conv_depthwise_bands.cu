#include "conv/cuda/kernels/depthwise_bands_result.cuh"

namespace {

using Half = gradsmith::conv::depthwise_bands::Narrow<gradsmith::cuda::Half>;
using Bfloat16 = gradsmith::conv::depthwise_bands::Narrow<gradsmith::cuda::Bfloat16>;
using Tf32 = gradsmith::conv::depthwise_bands::Tf32;

}  // namespace

GRADSMITH_DEPTHWISE_BANDS(Half, half, 1, 2, 8)
GRADSMITH_DEPTHWISE_BANDS(Half, half, 8, 1, 4)
GRADSMITH_DEPTHWISE_BANDS(Bfloat16, bf16, 1, 2, 8)
GRADSMITH_DEPTHWISE_BANDS(Bfloat16, bf16, 8, 1, 4)
GRADSMITH_DEPTHWISE_BANDS(Tf32, tf32, 1, 2, 8)
GRADSMITH_DEPTHWISE_BANDS(Tf32, tf32, 8, 1, 4)
