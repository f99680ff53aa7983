#ifndef GRADSMITH_CONV_CUDA_KERNELS_WINDOW_CUH_
#define GRADSMITH_CONV_CUDA_KERNELS_WINDOW_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "conv/cuda/window_arguments.h"
#include "cuda/kernels/indices.cuh"
#include "cuda/kernels/ptx.cuh"
#include "cuda/kernels/tf32.cuh"

/// Matrix products on tensor cores of what lies in a window of an image in shared memory.
namespace gradsmith::conv::window {

using cuda::BeginCopy;
using cuda::DivideBy;
using cuda::EndOfCopies;
using cuda::IsWithin;
using cuda::Lane;
using cuda::LoadMatrices;
using cuda::LoadTransposed;
using cuda::SharedAddress;

/// Elements of a type are stored as T. A step multiplies two chunks: 16 numbers in half or bf16, 8
/// in TF32.
struct Half {
  using T = __half;
  static constexpr int kVector = 8;
};
struct Bfloat16 {
  using T = __nv_bfloat16;
  static constexpr int kVector = 8;
};
struct Tf32 {
  using T = float;
  static constexpr int kVector = 4;
};

/// Adds the product of 16 rows and 8 columns.
template <typename Math>
__device__ __forceinline__ void
AddProduct(const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], float (&sums)[4]) {
  if constexpr (std::is_same_v<Math, Half>) {
    cuda::AddProductOfHalf(a, b, sums);
  } else if constexpr (std::is_same_v<Math, Bfloat16>) {
    cuda::AddProductOfBfloat16(a, b, sums);
  } else {
    cuda::AddProductOfTf32(a, b, sums);
  }
}

__device__ __forceinline__ std::uint32_t AsTf32(float value) {
  return __float_as_uint(cuda::BeforeCutOff(value));
}

/// The pixels of an image in memory, `pitch` elements each.
template <typename T>
struct Image {
  const T* channels;
  int pitch;
  int sizes[kRank];
};

template <typename T>
__device__ __forceinline__ Image<T>
ImageOf(const T* channels, int pitch, const int (&sizes)[kRank], int image) {
  return {
      channels + image * (std::int64_t{sizes[0]} * sizes[1] * pitch), pitch, {sizes[0], sizes[1]}};
}

/// Begins to copy the pixels of a window that begins at `first` to shared memory.
template <int kThreadsOfBlock, typename T>
__device__ __forceinline__ void LoadWindow(
    const Image<T>& image,
    const int (&first)[kRank],
    int pixels,
    const cuda::Divisor& columns,
    const cuda::Divisor& chunks,
    int pixel_bytes,
    unsigned to) {
  constexpr int kVector = kChunkBytes / static_cast<int>(sizeof(T));
  const int pitch = image.pitch / kVector;
  const int count = pixels * static_cast<int>(chunks.divisor);
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreadsOfBlock) {
    int chunk = i;
    const int pixel = DivideBy(chunks, &chunk);
    int column = pixel;
    const int row = DivideBy(columns, &column) + first[0];
    column += first[1];
    const bool exists = IsWithin(row, image.sizes[0]) && IsWithin(column, image.sizes[1]);
    const int at = exists ? (row * image.sizes[1] + column) * pitch + chunk : 0;
    BeginCopy(
        to + pixel * pixel_bytes + chunk * kChunkBytes,
        reinterpret_cast<const uint4*>(image.channels) + at, exists);
  }
}

/// Where a tile is: its image, and its first cell.
struct TilePlace {
  int image;
  int first[kRank];
};

__device__ __forceinline__ TilePlace PlaceOf(const Tiling& tiling, int tile) {
  TilePlace place;
#pragma unroll
  for (int axis = kRank - 1; axis >= 0; --axis) {
    const int quotient = DivideBy(tiling.tiles[axis], &tile);
    place.first[axis] = tile * tiling.tile[axis];
    tile = quotient;
  }
  place.image = tile;
  return place;
}

/// Runs through a block's tiles: `load(place, memory)` begins to copy what a tile reads,
/// `multiply(place, memory)` uses it, while the next one's is on its way where there is room.
template <typename Load, typename Multiply>
__device__ __forceinline__ void
ForEachTile(const Tiling& tiling, unsigned memory, Load load, Multiply multiply) {
  const auto load_tile = [&](int tile, int stage) {
    if (tile < tiling.count) {
      load(PlaceOf(tiling, tile), memory + stage * tiling.window_bytes);
    }
    EndOfCopies();
  };
  const auto step = static_cast<int>(gridDim.x);
  const int ahead = tiling.is_double ? step : 0;
  int stage = 0;
  if (tiling.is_double) {
    load_tile(static_cast<int>(blockIdx.x), stage);
  }
  for (auto tile = static_cast<int>(blockIdx.x); tile < tiling.count; tile += step) {
    const int next = tiling.is_double ? 1 - stage : stage;
    load_tile(tile + ahead, next);
    if (!tiling.is_double) {
      EndOfCopies();  // a group of none: the tile's is not the last
    }
    cuda::WaitForCopies<1>();
    __syncthreads();  // the copies of all threads are there
    multiply(PlaceOf(tiling, tile), memory + stage * tiling.window_bytes);
    __syncthreads();  // what has been read may be overwritten
    stage = next;
  }
}

}  // namespace gradsmith::conv::window

#endif  // GRADSMITH_CONV_CUDA_KERNELS_WINDOW_CUH_
