#ifndef GRADSMITH_PATTERNS_CUDA_KEPT_CUH_
#define GRADSMITH_PATTERNS_CUDA_KEPT_CUH_

#include <cstdint>
#include <cstring>

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

/// Keeps the compiler from computing before a loop what is made of a word within it.
template <typename Word>
__device__ __forceinline__ Word TakenHere(Word word) {
  if constexpr (sizeof(Word) < sizeof(unsigned)) {
    unsigned wide = word;
    asm volatile("" : "+r"(wide));
    return static_cast<Word>(wide);
  } else {
    unsigned parts[sizeof(Word) / sizeof(unsigned)];
    memcpy(parts, &word, sizeof(word));
#pragma unroll
    for (unsigned& part : parts) {
      asm volatile("" : "+r"(part));
    }
    memcpy(&word, parts, sizeof(word));
    return word;
  }
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_KEPT_CUH_
