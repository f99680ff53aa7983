#ifndef GRADSMITH_CONV_CUDA_KERNELS_DEPTHWISE_TILES_CUH_
#define GRADSMITH_CONV_CUDA_KERNELS_DEPTHWISE_TILES_CUH_

#include "conv/cuda/depthwise_tiles_arguments.h"
#include "conv/cuda/kernels/depthwise_tile.cuh"
#include "cuda/kernels/element_vector.cuh"
#include "cuda/kernels/indices.cuh"
#include "cuda/kernels/ptx.cuh"

/// Tiles of pixels whose channels are dense: a block copies what its tiles meet to shared memory.
namespace gradsmith::conv::depthwise_tiles {

using cuda::Accumulator;
using cuda::Convert;
using cuda::DivideBy;
using cuda::IsWithin;
using depthwise::Geometry;
using depthwise::Pack;
using depthwise::Unpack;

template <int kSide, int kStep, bool kSpreads, Work kWork, typename T>
using TileGeometry = Geometry<
    kSide,
    kStep,
    kSpreads,
    TileOf({kSide, kStep, kSpreads}, kWork, sizeof(T)).rows,
    TileOf({kSide, kStep, kSpreads}, kWork, sizeof(T)).columns>;

/// A kernel's launch bounds.
#define GRADSMITH_DEPTHWISE_TILES_BOUNDS(config, work)                                   \
  gradsmith::conv::depthwise_tiles::kPairs* gradsmith::conv::depthwise_tiles::MostTiles( \
      config, gradsmith::conv::depthwise_tiles::work),                                   \
      gradsmith::conv::depthwise_tiles::BlocksAtOnce(                                    \
          config, gradsmith::conv::depthwise_tiles::work)

/// A thread's tile within its block, and its channels within the block's.
struct Place {
  int across;
  int down;
  int channel;
  bool is_active;
};

__device__ __forceinline__ Place PlaceOf(const Arguments& p, int channels) {
  int across = static_cast<int>(threadIdx.x) / kPairs;
  const int down = DivideBy(p.tiles_across, &across);
  const int channel = 2 * (static_cast<int>(threadIdx.x) % kPairs);
  return {across, down, channel, down < p.tiles_down && channel < channels};
}

/// A block's image, and its tiles within it.
struct Block {
  std::int64_t image;
  int first_down;
  int first_across;
};

__device__ __forceinline__ Block BlockOf(const Arguments& p, std::uint32_t index) {
  int across = static_cast<int>(index);
  int down = DivideBy(p.across, &across);
  const int image = DivideBy(p.down, &down);
  return {image, down * p.tiles_down, across * static_cast<int>(p.tiles_across.divisor)};
}

/// Begins to copy what a block's tiles meet: pixels from (row, column) of `from` on, which is at
/// the block's image and its first channel. Zeros come from outside and from beyond the channels.
template <int kMain, typename T>
__device__ __forceinline__ void BeginToLoad(
    const Arguments& p,
    const T* from,
    int row,
    int column,
    int channels,
    T* pixels) {
  constexpr int kBytes = static_cast<int>(sizeof(T));
  constexpr int kChunks = kChannels * kBytes / 16;
  constexpr int kOfChunk = 16 / kBytes;
  // A block's threads are a multiple of the chunks.
  const int chunk = static_cast<int>(threadIdx.x) % kChunks;
  const auto columns = static_cast<int>(p.columns_read.divisor);
  int across = static_cast<int>(threadIdx.x) / kChunks;
  int down = DivideBy(p.columns_read, &across);
  const bool has_channels = chunk * kOfChunk < channels;
  const unsigned to = cuda::SharedAddress(pixels) + chunk * 16;
  int offset = (row + down) * p.from.row_stride + (column + across) * p.from.column_stride;
  from += chunk * kOfChunk;
#pragma unroll 2
  while (down < p.rows_read) {
    const bool exists = has_channels && IsWithin(row + down, p.from.height) &&
                        IsWithin(column + across, p.from.width);
    const int slot = down * p.pitch + SlotOf(across, kMain, kBytes);
    cuda::BeginCopy(to + slot * (kChunks * 16), from + offset, exists);
    down += p.step_down;
    across += p.step_across;
    offset += p.step_down * p.from.row_stride + p.step_across * p.from.column_stride;
    if (across >= columns) {
      across -= columns;
      ++down;
      offset += p.from.row_stride - columns * p.from.column_stride;
    }
  }
}

/// The same for the block's tiles. `from` is where a tensor begins, and `first_channel` the block's.
template <typename G, typename T>
__device__ __forceinline__ void BeginToLoadBlock(
    const Arguments& p,
    const T* from,
    const Block& block,
    int first_channel,
    int channels,
    T* pixels) {
  BeginToLoad<G::kMain>(
      p, from + (block.image * p.from.batch_stride + first_channel),
      block.first_down * G::kMainRows + p.from_row - G::kBefore,
      block.first_across * G::kMain + p.from_column - G::kBefore, channels, pixels);
  cuda::EndOfCopies();
}

/// Whether all of a tile at (row, column) is within an image.
template <typename G>
__device__ __forceinline__ bool IsWhole(const Pixels& image, int row, int column) {
  return row >= 0 && column >= 0 && row + G::kToRows <= image.height &&
         column + G::kToColumns <= image.width;
}

/// Calls visit(row, column, at) for the tile's pixels that are within the image. `tile` is where
/// its first pixel is, or would be.
template <bool kIsWhole, typename G, typename T, typename Visitor>
__device__ __forceinline__ void
ForEachPixel(const Pixels& image, int row, int column, T* tile, const Visitor& visit) {
#pragma unroll
  for (int i = 0; i < G::kToRows; ++i) {
#pragma unroll
    for (int j = 0; j < G::kToColumns; ++j) {
      if (kIsWhole || (IsWithin(row + i, image.height) && IsWithin(column + j, image.width))) {
        visit(i, j, tile + (i * image.row_stride + j * image.column_stride));
      }
    }
  }
}

/// Two channels of a pixel as words.
template <typename T>
inline constexpr int kPairWords = static_cast<int>(sizeof(T)) / 2;

template <typename T>
__device__ __forceinline__ void LoadPair(const T* from, unsigned int (&words)[kPairWords<T>]) {
  cuda::LoadAtOnce<kPairWords<T>>(reinterpret_cast<const unsigned int*>(from), words);
}

/// A row of the pixels that a tile meets, as what is computed with. `from` is at the first.
template <typename G, typename T>
__device__ __forceinline__ void LoadRow(const T* from, Accumulator<T> (&values)[G::kColumns][2]) {
#pragma unroll
  for (int i = 0; i < G::kColumns; ++i) {
    unsigned int words[kPairWords<T>];
    LoadPair(from + SlotOf(i, G::kMain, sizeof(T)) * kChannels, words);
    Unpack(words, values[i], T());
  }
}

/// The slot of a tile's first pixel.
template <typename G, typename T>
__device__ __forceinline__ int FirstSlot(const Arguments& p, const Place& place) {
  return place.down * G::kMainRows * p.pitch + SlotOf(place.across * G::kMain, G::kMain, sizeof(T));
}

}  // namespace gradsmith::conv::depthwise_tiles

#endif  // GRADSMITH_CONV_CUDA_KERNELS_DEPTHWISE_TILES_CUH_
