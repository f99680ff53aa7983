#ifndef GRADSMITH_CONV_CUDA_KERNELS_TURNS_CUH_
#define GRADSMITH_CONV_CUDA_KERNELS_TURNS_CUH_

#include "cuda/kernels/ptx.cuh"

namespace gradsmith::cuda {

/// Calls `use` with each turn's number, between barriers for the kThreads threads of a block, which
/// come here at different places of the code.
template <int kThreads, typename Use>
__device__ __forceinline__ void TakeTurns(int turns, const Use& use) {
  for (int turn = 0; turn < turns; ++turn) {
    SynchronizeBlock<kThreads>();
    use(turn);
  }
  SynchronizeBlock<kThreads>();
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CONV_CUDA_KERNELS_TURNS_CUH_
