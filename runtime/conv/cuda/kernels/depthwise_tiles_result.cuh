#ifndef GRADSMITH_CONV_CUDA_KERNELS_DEPTHWISE_TILES_RESULT_CUH_
#define GRADSMITH_CONV_CUDA_KERNELS_DEPTHWISE_TILES_RESULT_CUH_

#include "conv/cuda/kernels/depthwise_tiles.cuh"

/// Tiles of y or dX.
namespace gradsmith::conv::depthwise_tiles {

/// The filters of a block's channels as (tap, channel), turned around where backward data is
/// computed as forward is.
template <int kTaps, typename T>
__device__ __forceinline__ void
LoadFilters(const T* from, bool reversed, int channels, Accumulator<T>* filters) {
  // Each warp takes one tap at a time: what lanes write is in different banks.
  const int channel = static_cast<int>(threadIdx.x) % kChannels;
  if (channel < channels) {
    for (int tap = static_cast<int>(threadIdx.x) / kChannels; tap < kTaps;
         tap += static_cast<int>(blockDim.x) / kChannels) {
      filters[(reversed ? kTaps - 1 - tap : tap) * kChannels + channel] =
          Convert<Accumulator<T>>(from[channel * kTaps + tap]);
    }
  }
}

/// Adds what a row of pixels gives to a row of the tile by a row of taps.
template <typename G, int kSide, typename A>
__device__ __forceinline__ void
AddRow(const A (&values)[G::kColumns][2], const A* filters, A (&sums)[G::kToColumns][2]) {
#pragma unroll
  for (int tap = 0; tap < kSide; ++tap) {
    const A first = filters[tap * kChannels];
    const A second = filters[tap * kChannels + 1];
#pragma unroll
    for (int to = 0; to < G::kToColumns; ++to) {
#pragma unroll
      for (int from = 0; from < G::kColumns; ++from) {
        if (G::TapOf(to, from) == tap) {
          sums[to][0] += values[from][0] * first;
          sums[to][1] += values[from][1] * second;
        }
      }
    }
  }
}

/// Writes a tile's sums, or adds them to what is there.
template <bool kIsWhole, typename G, typename T>
__device__ __forceinline__ void StoreTile(
    const Pixels& image,
    int row,
    int column,
    T* tile,
    Accumulator<T> (&sums)[G::kToRows][G::kToColumns][2],
    bool accumulate) {
  if (accumulate) {
    ForEachPixel<kIsWhole, G>(image, row, column, tile, [&](int i, int j, const T* at) {
      unsigned int words[kPairWords<T>];
      LoadPair(at, words);
      Accumulator<T> before[2];
      Unpack(words, before, T());
      sums[i][j][0] += before[0];
      sums[i][j][1] += before[1];
    });
  }
  ForEachPixel<kIsWhole, G>(image, row, column, tile, [&](int i, int j, T* at) {
    unsigned int words[kPairWords<T>];
    Pack(sums[i][j], words, T());
    cuda::StoreAtOnce<kPairWords<T>>(words, reinterpret_cast<unsigned int*>(at));
  });
}

/// The same of the tile at (row, column), where `to` is at its image and channels.
template <typename G, typename T>
__device__ __forceinline__ void StoreTileAt(
    const Pixels& image,
    int row,
    int column,
    T* to,
    Accumulator<T> (&sums)[G::kToRows][G::kToColumns][2],
    bool accumulate) {
  T* tile = to + (row * image.row_stride + column * image.column_stride);
  if (IsWhole<G>(image, row, column)) {
    StoreTile<true, G>(image, row, column, tile, sums, accumulate);
  } else {
    StoreTile<false, G>(image, row, column, tile, sums, accumulate);
  }
}

}  // namespace gradsmith::conv::depthwise_tiles

#endif  // GRADSMITH_CONV_CUDA_KERNELS_DEPTHWISE_TILES_RESULT_CUH_
