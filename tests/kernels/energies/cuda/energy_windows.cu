#include "energies/functors.h"
#include "patterns/cuda/windows.cuh"

using namespace gradsmith::energies;

GRADSMITH_REDUCE_WINDOWS_KERNELS(EnergyPool, EnergyPoolWindow)
GRADSMITH_GATHER_WINDOWS_KERNELS_BY_ELEMENTS(EnergyPoolGrad, EnergyPoolGradWindows)
