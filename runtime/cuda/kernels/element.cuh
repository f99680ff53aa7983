#ifndef GRADSMITH_CUDA_KERNELS_ELEMENT_CUH_
#define GRADSMITH_CUDA_KERNELS_ELEMENT_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

/// What every kernel needs of an element type. Half and bf16 are summed in float.
namespace gradsmith::cuda {

template <typename T>
struct AccumulatorOf {
  using Type = float;
};
template <>
struct AccumulatorOf<double> {
  using Type = double;
};
template <typename T>
using Accumulator = typename AccumulatorOf<T>::Type;

/// Rounds once, to nearest.
template <typename To, typename From>
__device__ __forceinline__ To Convert(From value) {
  if constexpr (sizeof(To) == 8 && sizeof(From) == 2) {
    return static_cast<double>(static_cast<float>(value));
  } else if constexpr (sizeof(To) == 2 && sizeof(From) == 2) {
    return static_cast<To>(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

/// Loads an element of a type that is known at run time only: the library's DataType as a number.
template <typename To = double>
__device__ __forceinline__ To LoadElement(const void* data, int type, std::int64_t offset) {
  switch (type) {
    case 0:
      return Convert<To>(static_cast<const float*>(data)[offset]);
    case 1:
      return Convert<To>(static_cast<const double*>(data)[offset]);
    case 2:
      return Convert<To>(static_cast<const __half*>(data)[offset]);
    default:
      return Convert<To>(static_cast<const __nv_bfloat16*>(data)[offset]);
  }
}

/// Loads an element of a type that is not floating.
__device__ __forceinline__ std::int64_t
LoadInteger(const void* data, int type, std::int64_t offset) {
  switch (type) {
    case 4:
      return static_cast<const std::int32_t*>(data)[offset];
    case 5:
      return static_cast<const std::int64_t*>(data)[offset];
    case 7:
      return static_cast<const std::uint32_t*>(data)[offset];
    default:
      return static_cast<const unsigned char*>(data)[offset];
  }
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_KERNELS_ELEMENT_CUH_
