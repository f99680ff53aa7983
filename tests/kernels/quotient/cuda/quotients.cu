#include "patterns/cuda/kernel_math.cuh"
#include "patterns/cuda/map.cuh"
#include "quotient/functors.h"

using DeviceQuotient = gradsmith::quotient::QuotientMap<gradsmith::formula::Device>;

GRADSMITH_MAP_BROADCAST_KERNELS_OF(Quotient, DeviceQuotient, f32, float)
GRADSMITH_MAP_BROADCAST_KERNELS_OF(Quotient, DeviceQuotient, f64, double)
