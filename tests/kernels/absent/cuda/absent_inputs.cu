#include "absent/functors.h"
#include "patterns/cuda/map_sums.cuh"
#include "patterns/cuda/rows.cuh"

using namespace gradsmith::absent;

GRADSMITH_MAP_SUM_KERNELS_OF(AbsentMap, AbsentMap, f32, float)
GRADSMITH_MAP_SUM_KERNELS_OF(AbsentMap, AbsentMap, f16, __half)
GRADSMITH_ROWS_KERNELS_OF_COLUMNS(AbsentRows, AbsentRows, f32, float, float)
GRADSMITH_ROWS_KERNELS_OF_COLUMNS(AbsentRows, AbsentRows, f64, double, double)
GRADSMITH_ROWS_KERNELS_OF(AbsentTotals, AbsentTotals, f32, float)
GRADSMITH_ROWS_KERNELS_OF(AbsentTotals, AbsentTotals, f16, __half)
