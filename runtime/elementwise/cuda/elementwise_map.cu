#include "elementwise/functors.h"
#include "patterns/cuda/map.cuh"

using namespace gradsmith::elementwise;

GRADSMITH_MAP_KERNELS(Sigmoid, SigmoidMap)
GRADSMITH_MAP_KERNELS(SigmoidGrad, SigmoidGradMap)
GRADSMITH_MAP_KERNELS(LeakyRelu, LeakyReluMap)
GRADSMITH_MAP_KERNELS(LeakyReluGrad, LeakyReluGradMap)
