#include "patterns/cuda/map.cuh"
#include "patterns/cuda/rows.cuh"
#include "words/functors.h"

using namespace gradsmith::words;

GRADSMITH_MAP_KERNELS_OF(AnglesMap, AnglesMap, f32, float)
GRADSMITH_MAP_KERNELS_OF(AnglesMap, AnglesMap, f64, double)
GRADSMITH_MAP_KERNELS_OF(AnglesMap, AnglesMap, short, gradsmith::cuda::ShortFloat)
GRADSMITH_ROWS_KERNELS_OF(IgnoringRows, IgnoringRows, f32, float)
GRADSMITH_ROWS_KERNELS_OF(RefusingRows, RefusingRows, f32, float)
GRADSMITH_ROWS_KERNELS_OF(RefusingRows, RefusingRows, f64, double)
GRADSMITH_ROWS_KERNELS_OF(RefusingRows, RefusingRows, f16, __half)
