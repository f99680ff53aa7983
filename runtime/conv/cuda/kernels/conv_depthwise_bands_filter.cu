#include "conv/cuda/depthwise_bands_arguments.h"
#include "conv/cuda/kernels/depthwise_bands_filter.cuh"

namespace {

using gradsmith::conv::depthwise_bands::kBlocksOfRow;
using gradsmith::conv::depthwise_bands::Tf32;
using Half = gradsmith::conv::depthwise_bands::Narrow<gradsmith::cuda::Half>;
using Bfloat16 = gradsmith::conv::depthwise_bands::Narrow<gradsmith::cuda::Bfloat16>;

}  // namespace

GRADSMITH_DEPTHWISE_BANDS_FILTER(Half, half, 1, kBlocksOfRow)
GRADSMITH_DEPTHWISE_BANDS_FILTER(Half, half, 8, 1)
GRADSMITH_DEPTHWISE_BANDS_FILTER(Bfloat16, bf16, 1, kBlocksOfRow)
GRADSMITH_DEPTHWISE_BANDS_FILTER(Bfloat16, bf16, 8, 1)
GRADSMITH_DEPTHWISE_BANDS_FILTER(Tf32, tf32, 1, kBlocksOfRow)
GRADSMITH_DEPTHWISE_BANDS_FILTER(Tf32, tf32, 8, 1)
