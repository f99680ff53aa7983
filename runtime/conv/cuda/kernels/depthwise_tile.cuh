#ifndef GRADSMITH_CONV_CUDA_KERNELS_DEPTHWISE_TILE_CUH_
#define GRADSMITH_CONV_CUDA_KERNELS_DEPTHWISE_TILE_CUH_

#include <cstring>

#include "conv/cuda/depthwise_config.h"
#include "cuda/kernels/element.cuh"

/// Tiles of results of depthwise convolutions: what they meet, and elements as words.
namespace gradsmith::conv::depthwise {

/// What of x a tile of y meets, or of y a tile of x (spreads): `kRows` rows of `kMain` elements
/// that neighbouring tiles do not share, kBefore rows and elements before and kAfter elements
/// after.
template <int kSide, int kStep, bool kSpreads, int kTileRows, int kTileColumns>
struct Geometry {
  static constexpr int kToRows = kTileRows;
  static constexpr int kToColumns = kTileColumns;
  static constexpr int kCenter = CenterOf(kSide);
  /// Whether the result has fewer positions than the source, or more. Steps of one leave as many.
  static constexpr bool kShrinks = kStep > 1 && !kSpreads;
  static constexpr bool kGrows = kStep > 1 && kSpreads;
  static constexpr int kBefore = kGrows ? (kSide - 1 - kCenter) / kStep : kCenter;
  static constexpr int kAfter = kGrows ? (kCenter + 1) / kStep : kSide - kStep - kCenter;
  static constexpr int kMainRows = kGrows ? kToRows / kStep : kToRows * (kShrinks ? kStep : 1);
  static constexpr int kMain = kGrows ? kToColumns / kStep : kToColumns * (kShrinks ? kStep : 1);
  static constexpr int kRows = kBefore + kMainRows + kAfter;
  static constexpr int kColumns = kBefore + kMain + kAfter;

  /// The tap that joins a row (or column) of the tile and one of what it meets; there may be none.
  static __device__ __forceinline__ constexpr int TapOf(int to, int from) {
    return kGrows ? to + kCenter - kStep * (from - kBefore) : from - to * kStep;
  }
  static __device__ __forceinline__ constexpr bool IsTap(int tap) {
    return tap >= 0 && tap < kSide;
  }
};

/// Words of memory as what is computed with; the last argument tells of which type they are.
template <int kWords>
__device__ __forceinline__ void Unpack(const unsigned int (&words)[kWords], float* to, float) {
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    to[i] = __uint_as_float(words[i]);
  }
}

template <int kWords>
__device__ __forceinline__ void Unpack(const unsigned int (&words)[kWords], double* to, double) {
#pragma unroll
  for (int i = 0; i < kWords / 2; ++i) {
    to[i] = __hiloint2double(static_cast<int>(words[2 * i + 1]), static_cast<int>(words[2 * i]));
  }
}

template <int kWords>
__device__ __forceinline__ void Unpack(const unsigned int (&words)[kWords], float* to, __half) {
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    __half2 pair;
    memcpy(&pair, &words[i], sizeof(pair));
    const float2 values = __half22float2(pair);
    to[2 * i] = values.x;
    to[2 * i + 1] = values.y;
  }
}

template <int kWords>
__device__ __forceinline__ void
Unpack(const unsigned int (&words)[kWords], float* to, __nv_bfloat16) {
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    to[2 * i] = __uint_as_float(words[i] << 16);
    to[2 * i + 1] = __uint_as_float(words[i] & 0xFFFF0000U);
  }
}

/// The other way, rounded to the type.
template <int kWords>
__device__ __forceinline__ void Pack(const float* from, unsigned int (&words)[kWords], float) {
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    words[i] = __float_as_uint(from[i]);
  }
}

template <int kWords>
__device__ __forceinline__ void Pack(const double* from, unsigned int (&words)[kWords], double) {
#pragma unroll
  for (int i = 0; i < kWords / 2; ++i) {
    words[2 * i] = static_cast<unsigned int>(__double2loint(from[i]));
    words[2 * i + 1] = static_cast<unsigned int>(__double2hiint(from[i]));
  }
}

template <int kWords>
__device__ __forceinline__ void Pack(const float* from, unsigned int (&words)[kWords], __half) {
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    const __half2 pair = __floats2half2_rn(from[2 * i], from[2 * i + 1]);
    memcpy(&words[i], &pair, sizeof(pair));
  }
}

template <int kWords>
__device__ __forceinline__ void
Pack(const float* from, unsigned int (&words)[kWords], __nv_bfloat16) {
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(from[2 * i], from[2 * i + 1]);
    memcpy(&words[i], &pair, sizeof(pair));
  }
}

}  // namespace gradsmith::conv::depthwise

#endif  // GRADSMITH_CONV_CUDA_KERNELS_DEPTHWISE_TILE_CUH_
