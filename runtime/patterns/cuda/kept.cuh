#ifndef GRADSMITH_PATTERNS_CUDA_KEPT_CUH_
#define GRADSMITH_PATTERNS_CUDA_KEPT_CUH_

#include <cstdint>

namespace gradsmith::cuda {

/// Keeps the compiler from making a number anew wherever it is used: it stays in registers.
__device__ __forceinline__ std::int64_t Kept(std::int64_t number) {
  asm("" : "+l"(number));
  return number;
}
__device__ __forceinline__ unsigned Kept(unsigned number) {
  asm("" : "+r"(number));
  return number;
}
__device__ __forceinline__ int Kept(int number) {
  asm("" : "+r"(number));
  return number;
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_KEPT_CUH_
