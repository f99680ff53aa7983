#ifndef GRADSMITH_CUDA_KERNELS_INDICES_CUH_
#define GRADSMITH_CUDA_KERNELS_INDICES_CUH_

#include <cstdint>

#include "cuda/divisor.h"

namespace gradsmith::cuda {

/// A thread's place in its warp.
__device__ __forceinline__ int Lane() {
  return static_cast<int>(threadIdx.x) % 32;
}

/// Whether an index is one of [0, count).
__device__ __forceinline__ bool IsWithin(int index, int count) {
  return static_cast<unsigned int>(index) < static_cast<unsigned int>(count);
}

/// The quotient; `*number` becomes the remainder.
__device__ __forceinline__ int DivideBy(const Divisor& by, int* number) {
  const auto quotient = static_cast<int>(Divide(static_cast<std::uint32_t>(*number), by));
  *number -= quotient * static_cast<int>(by.divisor);
  return quotient;
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_KERNELS_INDICES_CUH_
