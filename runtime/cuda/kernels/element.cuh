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

/// The element types by the library's DataType as a number; a truth value is a byte that is not 0.
/// Made of the table in codegen/gradsmith_codegen/data_types.py by `pytest tests/codegen
/// --refresh`.
#define GRADSMITH_FLOATING_TYPES_OF_KERNELS(X) \
  X(0, float)                                  \
  X(1, double)                                 \
  X(2, __half)                                 \
  X(3, __nv_bfloat16)
#define GRADSMITH_INTEGER_TYPES_OF_KERNELS(X) \
  X(4, std::int32_t)                          \
  X(5, std::int64_t)                          \
  X(6, std::uint8_t)                          \
  X(7, std::uint32_t)                         \
  X(8, std::uint8_t)
inline constexpr int kTypeOfTruthValues = 8;

/// Loads an element of a type that is known at run time only.
template <typename To = double>
__device__ __forceinline__ To LoadElement(const void* data, int type, std::int64_t offset) {
  switch (type) {
#define GRADSMITH_LOAD(number, element) \
  case number:                          \
    return Convert<To>(static_cast<const element*>(data)[offset]);
    GRADSMITH_FLOATING_TYPES_OF_KERNELS(GRADSMITH_LOAD)
#undef GRADSMITH_LOAD
  }
  __builtin_unreachable();  // the host has checked that the type is floating
}

/// Loads an element of a type that is not floating.
__device__ __forceinline__ std::int64_t
LoadInteger(const void* data, int type, std::int64_t offset) {
  switch (type) {
#define GRADSMITH_LOAD(number, element) \
  case number:                          \
    return static_cast<const element*>(data)[offset];
    GRADSMITH_INTEGER_TYPES_OF_KERNELS(GRADSMITH_LOAD)
#undef GRADSMITH_LOAD
  }
  __builtin_unreachable();  // the host has checked that the type is not floating
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_KERNELS_ELEMENT_CUH_
