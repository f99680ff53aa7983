#ifndef GRADSMITH_CONV_CUDA_KERNELS_DEPTHWISE_TILES_FILTER_CUH_
#define GRADSMITH_CONV_CUDA_KERNELS_DEPTHWISE_TILES_FILTER_CUH_

#include "conv/cuda/kernels/depthwise_tiles.cuh"

/// Sums over tiles: of the filter's gradient, and of dY's channels.
namespace gradsmith::conv::depthwise_tiles {

constexpr int kWarp = 32;
constexpr int kMostWarps = kPairs * MostTiles({3, 1, false}, Work::kFilter) / kWarp;

/// A tile of dY, or of x where dX is computed in the same pass, as it is in memory: 16-bit elements
/// remain in pairs, which takes half of the registers.
template <typename G, typename T>
struct InTiles {
  unsigned int words[G::kToRows][G::kToColumns][kPairWords<T>];

  /// Reads the tile at (row, column) of `from`, which is at the thread's image and channels. Zeros
  /// come from outside.
  __device__ __forceinline__ void
  Load(const Pixels& image, const T* from, int row, int column, bool is_active) {
    const T* tile = from + (row * image.row_stride + column * image.column_stride);
    const auto load = [&](int i, int j, const T* at) { LoadPair(at, words[i][j]); };
    if (is_active && IsWhole<G>(image, row, column)) {
      ForEachPixel<true, G>(image, row, column, tile, load);
      return;
    }
    memset(words, 0, sizeof(words));
    if (is_active) {
      ForEachPixel<false, G>(image, row, column, tile, load);
    }
  }
};

/// Adds up kCount sums of each channel over a block's tiles, always in the same order. The i-th of a
/// channel goes to partial[channel * stride + i], or the last to the first place.
template <bool kReversed = false, int kCount, typename A>
__device__ __forceinline__ void
SumOverTiles(const A (&sums)[kCount][2], int channels, int stride, A* partial) {
  __shared__ A of_warps[kMostWarps][kCount][kChannels];
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  const int lane = cuda::Lane();
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      // The other half of the warp has another tile of the same channels.
      const A other = __shfl_down_sync(0xFFFFFFFFU, sums[i][j], kPairs);
      if (lane < kPairs) {
        of_warps[warp][i][2 * lane + j] = sums[i][j] + other;
      }
    }
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kCount * kChannels;
       i += static_cast<int>(blockDim.x)) {
    const int channel = i % kChannels;
    A sum = 0;
    for (int other = 0; other < warps; ++other) {
      sum += of_warps[other][i / kChannels][channel];
    }
    if (channel < channels) {
      const int place = kReversed ? kCount - 1 - i / kChannels : i / kChannels;
      partial[channel * stride + place] = sum;
    }
  }
  __syncthreads();
}

}  // namespace gradsmith::conv::depthwise_tiles

#endif  // GRADSMITH_CONV_CUDA_KERNELS_DEPTHWISE_TILES_FILTER_CUH_
