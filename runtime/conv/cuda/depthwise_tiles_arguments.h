#ifndef GRADSMITH_CONV_CUDA_DEPTHWISE_TILES_ARGUMENTS_H_
#define GRADSMITH_CONV_CUDA_DEPTHWISE_TILES_ARGUMENTS_H_

#include <cstdint>

#include "conv/cuda/depthwise_config.h"
#include "cuda/divisor.h"

/// What conv/cuda/depthwise_tiles.cc passes to the kernels of
/// conv/cuda/kernels/conv_depthwise_tiles*.cu, by value. All compile this file: plain C++17.
namespace gradsmith::conv::depthwise_tiles {

using depthwise::CenterOf;
using depthwise::KernelConfig;

/// Neighbouring channels of a block, two of which are a thread's.
constexpr int kChannels = 32;
constexpr int kPairs = kChannels / 2;
/// Shared memory of a block, at most: what every GPU gives without being asked.
constexpr int kMostShared = 48 * 1024;

// NOLINTBEGIN(cppcoreguidelines-macro-usage)
#ifdef __CUDACC__
#define GRADSMITH_BOTH_SIDES __device__ __host__
#else
#define GRADSMITH_BOTH_SIDES
#endif
// NOLINTEND(cppcoreguidelines-macro-usage)

/// What a kernel computes: y or dX, the filter's gradient, or in one pass dX and that.
enum class Work : unsigned char { kResult, kFilter, kBoth };

/// The tile of a thread: `rows` by `columns` pixels of the result, or of dY for the filter's
/// gradient.
struct Tile {
  int rows;
  int columns;
};

/// TileOf returns the tile of a configuration: as large as registers allow, where it is worth them.
/// A tap is read from shared memory once for a row of a tile; seven columns are a whole part of the
/// sizes that images are halved to.
GRADSMITH_BOTH_SIDES constexpr Tile
TileOf(const KernelConfig& config, Work work, int element_bytes) {
  const bool sums_taps = work != Work::kResult;
  if (config.step > 1 || (config.side > 3 && sums_taps) ||
      (config.side == 3 && element_bytes > 2)) {
    return {4, 4};
  }
  return config.side > 3 ? Tile{2, 7} : Tile{4, 7};
}

/// MostTiles returns how many tiles a block has at most. Where taps are few, a block computes for
/// so short a time that several are better, of which one copies while another computes.
GRADSMITH_BOTH_SIDES constexpr int MostTiles(const KernelConfig& config, Work work) {
  return config.side > 3 && work == Work::kResult ? 16 : 8;
}

/// BlocksAtOnce returns how many blocks of so many tiles a multiprocessor has registers for.
GRADSMITH_BOTH_SIDES constexpr int BlocksAtOnce(const KernelConfig& config, Work work) {
  switch (work) {
    case Work::kResult:
      return config.side > 3 ? 3 : 5;
    case Work::kFilter:
      return 5 - ((config.side - 2) / 2);
    case Work::kBoth:
      break;
  }
  return config.side > 5 ? 2 : 3;
}

/// SlotOf returns where a block keeps the column-th of the pixels that it reads of a row. Two tiles
/// of a warp begin `main` columns apart: pixels of 64 bytes leave one out after as many, where
/// these are even, or else both would be in the same banks.
GRADSMITH_BOTH_SIDES constexpr int SlotOf(int column, int main, int element_bytes) {
  return element_bytes == 2 && main % 2 == 0 ? column + column / main : column;
}

#undef GRADSMITH_BOTH_SIDES

/// A tensor whose channels are dense, in elements. What is read is aligned to 16 bytes.
struct Pixels {
  std::int64_t batch_stride;
  int row_stride;
  int column_stride;
  int height;
  int width;
};

/// `from` is x or dY, whose pixels are combined, `to` the result, or dY for the filter's gradient
/// alone, which is in tiles. A block has kChannels channels of `tiles_down` by `tiles_across` tiles
/// of an image, which is `down` by `across` blocks.
struct Arguments {
  int channels;
  cuda::Divisor groups;
  cuda::Divisor across;
  cuda::Divisor down;
  cuda::Divisor tiles_across;
  int tiles_down;
  /// The pixels that a block reads, and the slots of a row of them.
  cuda::Divisor columns_read;
  int rows_read;
  int pitch;
  /// How far a pixel that a thread copies is from the next, in rows and in columns, the latter
  /// fewer than a row has.
  int step_down;
  int step_across;
  Pixels from;
  Pixels to;
  /// Where the first tile begins in `to`, and the rows and columns that it meets in `from`, those
  /// before it apart.
  int to_row;
  int to_column;
  int from_row;
  int from_column;
  /// The taps are taken in reverse: backward data by single steps.
  bool reversed;
  /// How many blocks all images have for the filter's gradient, of which every slices-th is of a
  /// slice.
  std::uint32_t blocks_of_group;
  std::uint32_t slices;
};

}  // namespace gradsmith::conv::depthwise_tiles

#endif  // GRADSMITH_CONV_CUDA_DEPTHWISE_TILES_ARGUMENTS_H_
