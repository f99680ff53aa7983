#ifndef GRADSMITH_CONV_CUDA_KERNELS_TERMS_CUH_
#define GRADSMITH_CONV_CUDA_KERNELS_TERMS_CUH_

#include <cstdint>

#include "cuda/kernels/narrow_math.cuh"
#include "cuda/kernels/ptx.cuh"
#include "cuda/kernels/tf32.cuh"

/// How tensor cores' operands lie in registers of 32 bits: `kEach` terms in each, for kernels that
/// serve half, bf16 and TF32 alike.
namespace gradsmith::conv {

/// NarrowTerms are cuda::Half's or cuda::Bfloat16's.
template <typename Math>
struct NarrowTerms : Math {
  static constexpr int kEach = 2;

  __device__ static __forceinline__ std::uint32_t Rounded(std::uint32_t bits) { return bits; }
  __device__ static __forceinline__ float SumOf(std::uint32_t bits) {
    const float2 pair = Math::Unpack(bits);
    return pair.x + pair.y;
  }
};

/// Tf32Terms are float's, which are rounded to TF32.
struct Tf32Terms {
  using T = float;
  static constexpr int kEach = 1;

  __device__ static __forceinline__ void
  AddProduct(const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], float (&sums)[4]) {
    cuda::AddProductOfTf32(a, b, sums);
  }
  __device__ static __forceinline__ std::uint32_t Rounded(std::uint32_t bits) {
    return __float_as_uint(cuda::BeforeCutOff(__uint_as_float(bits)));
  }
  __device__ static __forceinline__ float SumOf(std::uint32_t bits) {
    return __uint_as_float(bits);
  }
};

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_KERNELS_TERMS_CUH_
