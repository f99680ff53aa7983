#include "patterns/cuda/map_sums.cuh"
#include "prelu/functors.h"

using namespace gradsmith::prelu;

GRADSMITH_MAP_KERNELS(PRelu, PReluMap)
GRADSMITH_MAP_KERNELS(PReluGrad, PReluGradMap)
GRADSMITH_MAP_SUM_KERNELS(PReluGrad, PReluGradMap)
