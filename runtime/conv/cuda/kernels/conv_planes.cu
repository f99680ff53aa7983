#include "conv/cuda/kernels/planes_filter.cuh"
#include "conv/cuda/kernels/planes_forward.cuh"

namespace {

using gradsmith::conv::planes::Tf32;

}  // namespace

GRADSMITH_PLANES_FORWARD(Tf32, tf32, 32)
GRADSMITH_PLANES_FORWARD(Tf32, tf32, 48)
GRADSMITH_PLANES_FORWARD(Tf32, tf32, 80)
GRADSMITH_PLANES_FORWARD(Tf32, tf32, 152)

GRADSMITH_PLANES_FILTER(Tf32, tf32, 32)
GRADSMITH_PLANES_FILTER(Tf32, tf32, 48)
GRADSMITH_PLANES_FILTER(Tf32, tf32, 80)
GRADSMITH_PLANES_FILTER(Tf32, tf32, 152)
