#ifndef GRADSMITH_CUDA_KERNELS_INDICES_CUH_
#define GRADSMITH_CUDA_KERNELS_INDICES_CUH_

namespace gradsmith::cuda {

/// Whether an index is one of [0, count).
__device__ __forceinline__ bool IsWithin(int index, int count) {
  return static_cast<unsigned int>(index) < static_cast<unsigned int>(count);
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_KERNELS_INDICES_CUH_
