#ifndef GRADSMITH_CUDA_KERNELS_NARROW_MATH_CUH_
#define GRADSMITH_CUDA_KERNELS_NARROW_MATH_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>

#include "cuda/kernels/ptx.cuh"

/// Half and bf16 as kernels on tensor cores take them: pairs in 32 bits.
namespace gradsmith::cuda {

struct Half {
  using T = __half;
  static constexpr std::uint32_t kOnes = 0x3C003C00U;

  __device__ static void
  AddProduct(const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], float (&sums)[4]) {
    AddProductOfHalf(a, b, sums);
  }
  __device__ static void
  AddHalfProduct(const std::uint32_t (&a)[2], std::uint32_t b, float (&sums)[4]) {
    AddHalfProductOfHalf(a, b, sums);
  }
  __device__ static std::uint32_t Pack(float first, float second) {
    return BitsOf(__floats2half2_rn(first, second));
  }
  __device__ static float2 Unpack(std::uint32_t bits) {
    __half2 pair;
    memcpy(&pair, &bits, sizeof(bits));
    return __half22float2(pair);
  }

  template <typename Pair>
  __device__ static std::uint32_t BitsOf(const Pair& pair) {
    std::uint32_t bits = 0;
    memcpy(&bits, &pair, sizeof(bits));
    return bits;
  }
};

struct Bfloat16 {
  using T = __nv_bfloat16;
  static constexpr std::uint32_t kOnes = 0x3F803F80U;

  __device__ static void
  AddProduct(const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], float (&sums)[4]) {
    AddProductOfBfloat16(a, b, sums);
  }
  __device__ static void
  AddHalfProduct(const std::uint32_t (&a)[2], std::uint32_t b, float (&sums)[4]) {
    AddHalfProductOfBfloat16(a, b, sums);
  }
  __device__ static std::uint32_t Pack(float first, float second) {
    return Half::BitsOf(__floats2bfloat162_rn(first, second));
  }
  __device__ static float2 Unpack(std::uint32_t bits) {
    return {__uint_as_float(bits << 16U), __uint_as_float(bits & 0xFFFF0000U)};
  }
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_KERNELS_NARROW_MATH_CUH_
