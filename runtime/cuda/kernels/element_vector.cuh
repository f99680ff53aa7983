#ifndef GRADSMITH_CUDA_KERNELS_ELEMENT_VECTOR_CUH_
#define GRADSMITH_CUDA_KERNELS_ELEMENT_VECTOR_CUH_

#include <cstdint>
#include <cstring>

#include "cuda/kernels/element.cuh"
#include "cuda/kernels/tensor_ops.h"

/// Sixteen bytes of elements, and offsets in grids.
namespace gradsmith::cuda {

#define GRADSMITH_FOR_ELEMENT_TYPES(X) \
  X(f32, float)                        \
  X(f64, double)                       \
  X(f16, __half)                       \
  X(bf16, __nv_bfloat16)

template <typename T>
inline constexpr int kVectorLength = static_cast<int>(16 / sizeof(T));

template <typename T>
struct alignas(16) Vector {
  T values[kVectorLength<T>];
};

/// `from` is aligned to 16 bytes.
template <typename T>
__device__ __forceinline__ Vector<T> LoadVector(const T* from) {
  const uint4 bits = *reinterpret_cast<const uint4*>(from);
  Vector<T> vector;
  memcpy(&vector, &bits, sizeof(bits));
  return vector;
}

template <typename T>
__device__ __forceinline__ void StoreVector(T* to, const Vector<T>& vector) {
  uint4 bits;
  memcpy(&bits, &vector, sizeof(bits));
  *reinterpret_cast<uint4*>(to) = bits;
}

template <typename T>
__device__ __forceinline__ Vector<T> ZeroVector() {
  const uint4 bits = {0, 0, 0, 0};
  Vector<T> vector;
  memcpy(&vector, &bits, sizeof(bits));
  return vector;
}

/// The type that moves so many bytes at once.
template <int kBytes>
struct WordOf;
template <>
struct WordOf<1> {
  using Type = unsigned char;
};
template <>
struct WordOf<2> {
  using Type = unsigned short;  // NOLINT(google-runtime-int): CUDA's own functions take it
};
template <>
struct WordOf<4> {
  using Type = unsigned int;
};
template <>
struct WordOf<8> {
  using Type = uint2;
};
template <>
struct WordOf<16> {
  using Type = uint4;
};

/// `from` is aligned to kCount elements.
template <int kCount, typename T>
__device__ __forceinline__ void LoadAtOnce(const T* from, T* to) {
  using Word = typename WordOf<kCount* static_cast<int>(sizeof(T))>::Type;
  const Word word = *reinterpret_cast<const Word*>(from);
  memcpy(to, &word, sizeof(word));
}

/// `to` is aligned to kCount elements.
template <int kCount, typename T>
__device__ __forceinline__ void StoreAtOnce(const T* from, T* to) {
  using Word = typename WordOf<kCount* static_cast<int>(sizeof(T))>::Type;
  Word word;
  memcpy(&word, from, sizeof(word));
  // A plain store: but written as an assignment, the compiler may take it apart.
  __stwb(reinterpret_cast<Word*>(to), word);
}

struct Division {
  std::int64_t quotient;
  std::int64_t remainder;
};

/// Neither number is negative. 32-bit division is several times faster.
__device__ __forceinline__ Division Divide(std::int64_t number, std::int64_t divisor) {
  if (((number | divisor) >> 32) == 0) {
    const auto small = static_cast<std::uint32_t>(number);
    const auto by = static_cast<std::uint32_t>(divisor);
    const std::uint32_t quotient = small / by;
    return {quotient, small - quotient * by};
  }
  const std::int64_t quotient = number / divisor;
  return {quotient, number - quotient * divisor};
}

struct Offsets {
  std::int64_t to;
  std::int64_t from;
};

/// The offsets of the index-th element of a grid, last dim fastest.
__device__ __forceinline__ Offsets OffsetsAt(const PairGrid& grid, std::int64_t index) {
  Offsets offsets = {0, 0};
#pragma unroll
  for (int axis = kMaxGridRank - 1; axis > 0; --axis) {
    if (axis < grid.rank) {
      const Division division = Divide(index, grid.dims[axis]);
      offsets.to += division.remainder * grid.to_strides[axis];
      offsets.from += division.remainder * grid.from_strides[axis];
      index = division.quotient;
    }
  }
  offsets.to += index * grid.to_strides[0];
  offsets.from += index * grid.from_strides[0];
  return offsets;
}

/// Calls visit(indices, valid) so that the launch's threads together visit every index below
/// `count` once, neighbours by neighbours, each thread kElementBatch at a time.
template <typename Visitor>
__device__ __forceinline__ void ForEachBatch(std::int64_t count, const Visitor& visit) {
  constexpr std::int64_t kPerBlock = kElementThreads * kElementBatch;
  const std::int64_t step = kPerBlock * gridDim.x;
  for (std::int64_t begin = kPerBlock * blockIdx.x; begin < count; begin += step) {
    std::int64_t indices[kElementBatch];
    bool valid[kElementBatch];
#pragma unroll
    for (int i = 0; i < kElementBatch; ++i) {
      indices[i] = begin + i * kElementThreads + threadIdx.x;
      valid[i] = indices[i] < count;
    }
    visit(indices, valid);
  }
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_KERNELS_ELEMENT_VECTOR_CUH_
