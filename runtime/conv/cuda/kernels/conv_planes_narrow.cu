#include "conv/cuda/kernels/planes_filter.cuh"
#include "conv/cuda/kernels/planes_forward.cuh"

namespace {

using Half = gradsmith::conv::planes::Narrow<gradsmith::cuda::Half>;
using Bfloat16 = gradsmith::conv::planes::Narrow<gradsmith::cuda::Bfloat16>;

}  // namespace

GRADSMITH_PLANES_FORWARD(Half, half, 24)
GRADSMITH_PLANES_FORWARD(Half, half, 48)
GRADSMITH_PLANES_FORWARD(Half, half, 88)

GRADSMITH_PLANES_FILTER(Half, half, 32)
GRADSMITH_PLANES_FILTER(Half, half, 48)
GRADSMITH_PLANES_FILTER(Half, half, 80)
GRADSMITH_PLANES_FILTER(Half, half, 152)

GRADSMITH_PLANES_FORWARD(Bfloat16, bf16, 24)
GRADSMITH_PLANES_FORWARD(Bfloat16, bf16, 48)
GRADSMITH_PLANES_FORWARD(Bfloat16, bf16, 88)

GRADSMITH_PLANES_FILTER(Bfloat16, bf16, 32)
GRADSMITH_PLANES_FILTER(Bfloat16, bf16, 48)
GRADSMITH_PLANES_FILTER(Bfloat16, bf16, 80)
GRADSMITH_PLANES_FILTER(Bfloat16, bf16, 152)
