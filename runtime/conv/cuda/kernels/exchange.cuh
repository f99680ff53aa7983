#ifndef GRADSMITH_CONV_CUDA_KERNELS_EXCHANGE_CUH_
#define GRADSMITH_CONV_CUDA_KERNELS_EXCHANGE_CUH_

#include <cstdint>

#include "cuda/kernels/indices.cuh"

/// What lanes of a warp exchange.
namespace gradsmith::cuda {

/// Four lanes' words: word i of lane k becomes word k of lane i. All of a warp take part.
__device__ __forceinline__ void TransposeAmongFour(std::uint32_t (&words)[4]) {
#pragma unroll
  for (int distance = 1; distance < 4; distance *= 2) {
    const bool is_second = (Lane() & distance) != 0;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      // Of a pair of words a lane keeps the one at its own place, and gives away the other.
      const int low = distance == 1 ? 2 * i : i;
      const int high = low + distance;
      const std::uint32_t given = is_second ? words[low] : words[high];
      const std::uint32_t got = __shfl_xor_sync(0xFFFFFFFFU, given, distance);
      words[low] = is_second ? got : words[low];
      words[high] = is_second ? words[high] : got;
    }
  }
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CONV_CUDA_KERNELS_EXCHANGE_CUH_
