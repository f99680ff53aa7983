#include "patterns/cuda/windows.cuh"
#include "pool/functors.h"

using namespace gradsmith::pool;

GRADSMITH_REDUCE_WINDOWS_KERNELS(MaxPool, MaxPoolWindow)
GRADSMITH_REDUCE_WINDOWS_KERNELS(AveragePool, AveragePoolWindow)
GRADSMITH_GATHER_WINDOWS_KERNELS(MaxPoolGrad, MaxPoolGradWindows)
GRADSMITH_GATHER_WINDOWS_KERNELS(MaxPoolXYGrad, MaxPoolXYGradWindows)
GRADSMITH_GATHER_WINDOWS_KERNELS(AveragePoolGrad, AveragePoolGradWindows)
