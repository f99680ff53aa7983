#include "patterns/cuda/map_sums.cuh"

/// What all maps with sums share: their pieces come together.
#define GRADSMITH_FINISH(suffix, T)                                              \
  extern "C" __global__ void __launch_bounds__(gradsmith::cuda::kMostMapThreads) \
      gradsmith_map_sum_finish_##suffix(                                         \
          const __grid_constant__ gradsmith::cuda::MapSumLaunch launch) {        \
    gradsmith::cuda::FinishMapSum<T>(launch);                                    \
  }
GRADSMITH_FOR_ELEMENT_TYPES(GRADSMITH_FINISH)
#undef GRADSMITH_FINISH
