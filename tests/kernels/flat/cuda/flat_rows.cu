#include "flat/functors.h"
#include "patterns/cuda/rows.cuh"

using namespace gradsmith::flat;

GRADSMITH_ROWS_KERNELS_OF_FLAT(Gate, GateRows, f32, float, float)
GRADSMITH_ROWS_KERNELS_OF_FLAT(Gate, GateRows, f64, double, double)
GRADSMITH_ROWS_KERNELS_OF_FLAT(Gate, GateRows, f16, __half, __half)
GRADSMITH_ROWS_KERNELS_OF_FLAT(Gate, GateRows, f16_f32, __half, float)
GRADSMITH_ROWS_KERNELS_OF_FLAT(Gate, GateRows, f32_f16, float, __half)
