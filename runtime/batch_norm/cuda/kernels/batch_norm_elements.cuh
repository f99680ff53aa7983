#ifndef GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_ELEMENTS_CUH_
#define GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_ELEMENTS_CUH_

#include <cstdint>
#include <cstring>

#include "batch_norm/cuda/arguments.h"
#include "cuda/kernels/element.cuh"

/// Elements and parameters of batch normalization, as they are loaded and stored.
namespace gradsmith::batch_norm::own {
namespace {

using cuda::Accumulator;
using cuda::Convert;
using cuda::LoadElement;

template <typename T>
constexpr int kVector = kVectorBytes / static_cast<int>(sizeof(T));

__device__ std::int64_t Max(std::int64_t a, std::int64_t b) {
  return a > b ? a : b;
}
__device__ std::int64_t Min(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}

/// V elements as they lie in memory: converted where they are used, so that no load waits for the
/// one before.
template <typename T, int V>
struct alignas(V * sizeof(T)) Pack {
  T values[V];
};

/// How elements of one place lie.
enum class Access {
  kVector,         ///< one behind the other from a multiple of a vector's bytes on, V of them
  kMostlyVectors,  ///< one behind the other, and seldom not the former
  kElements        ///< anywhere
};

/// Whether `count` of V elements are loaded and stored as one vector.
template <Access kAccess, int V, typename T>
__device__ __forceinline__ bool IsVector(const T* data, std::int64_t stride, int count) {
  if constexpr (kAccess == Access::kVector) {
    static_assert(V == kVector<T>);
    return true;
  } else {
    return kAccess == Access::kMostlyVectors && V == kVector<T> && count == V && stride == 1 &&
           reinterpret_cast<std::uintptr_t>(data) % kVectorBytes == 0;
  }
}

template <typename T, int V>
__device__ __forceinline__ void
LoadEach(const T* from, std::int64_t stride, int count, Pack<T, V>* to) {
#pragma unroll
  for (int i = 0; i < V; ++i) {
    to->values[i] = i < count ? from[i * stride] : Convert<T>(0.F);
  }
}

/// Out of line: what happens seldom must cost the rest neither registers nor code.
template <typename T, int V>
__device__ __noinline__ Pack<T, V> LoadApart(const T* from, int count) {
  Pack<T, V> to;
  LoadEach(from, 1, count, &to);
  return to;
}

/// The first `count` of V elements; the others are zero.
template <Access kAccess, typename T, int V>
__device__ __forceinline__ void
Load(const T* from, std::int64_t stride, int count, Pack<T, V>* to) {
  if (IsVector<kAccess, V>(from, stride, count)) {
    const uint4 packed = *reinterpret_cast<const uint4*>(from);
    memcpy(to, &packed, V * sizeof(T));
  } else if (V > 1 && kAccess == Access::kMostlyVectors) {
    *to = LoadApart<T, V>(from, count);
  } else {
    LoadEach(from, stride, count, to);
  }
}

template <typename T, int V>
__device__ __forceinline__ void
StoreEach(const Pack<T, V>& from, std::int64_t stride, int count, T* to) {
#pragma unroll
  for (int i = 0; i < V; ++i) {
    if (i < count) {
      to[i * stride] = from.values[i];
    }
  }
}

template <typename T, int V>
__device__ __noinline__ void StoreApart(Pack<T, V> from, int count, T* to) {
  StoreEach(from, 1, count, to);
}

/// What is stored must not take the place of what the map has yet to read.
template <Access kAccess, typename T, int V>
__device__ __forceinline__ void
Store(const Pack<T, V>& from, std::int64_t stride, int count, T* to) {
  if (IsVector<kAccess, V>(to, stride, count)) {
    uint4 packed;
    memcpy(&packed, &from, V * sizeof(T));
    __stcs(reinterpret_cast<uint4*>(to), packed);
  } else if (V > 1 && kAccess == Access::kMostlyVectors) {
    StoreApart(from, count, to);
  } else {
    StoreEach(from, stride, count, to);
  }
}

__device__ double LoadParameter(const Parameter& parameter, std::int64_t channel) {
  return LoadElement(parameter.data, parameter.type, channel * parameter.stride);
}

__device__ void StoreParameter(const Parameter& parameter, std::int64_t channel, double value) {
  if (!parameter.present) {
    return;
  }
  const double sum = parameter.accumulate ? LoadParameter(parameter, channel) + value : value;
  const std::int64_t offset = channel * parameter.stride;
  switch (parameter.type) {
    case kFloat:
      static_cast<float*>(parameter.data)[offset] = Convert<float>(sum);
      break;
    case kDouble:
      static_cast<double*>(parameter.data)[offset] = sum;
      break;
    case kHalf:
      static_cast<__half*>(parameter.data)[offset] = Convert<__half>(sum);
      break;
    default:
      static_cast<__nv_bfloat16*>(parameter.data)[offset] = Convert<__nv_bfloat16>(sum);
      break;
  }
}

}  // namespace
}  // namespace gradsmith::batch_norm::own

#endif  // GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_ELEMENTS_CUH_
