#ifndef GRADSMITH_CONV_CUDA_WINDOW_ARGUMENTS_H_
#define GRADSMITH_CONV_CUDA_WINDOW_ARGUMENTS_H_

#include <cstdint>

#include "cuda/divisor.h"

/// What conv/cuda/window.cc passes to the kernels of conv/cuda/kernels/conv_window*.cu, by value.
/// All compile this file: plain C++17.
namespace gradsmith::conv::window {

/// A 1-D convolution is 2-D of height 1.
constexpr int kRank = 2;
/// Channels are copied and multiplied by chunks of so many bytes.
constexpr int kChunkBytes = 16;
/// Columns of the result that are computed together, neighbours in memory.
constexpr int kColumns = 8;
/// Blocks of columns that a warp computes at once.
constexpr int kBlocksOfSet = 2;
/// Positions of a block of rows, and blocks of rows that a warp computes at once.
constexpr int kRows = 16;
constexpr int kRowBlocks = 4;
constexpr int kThreads = 128;
/// Blocks of threads that a multiprocessor is to have room for.
constexpr int kBlocksOfSm = 4;
/// The threads of a block that computes a backward filter.
constexpr int kFilterThreads = 256;
/// Blocks of 16 rows, each some chunks, that a warp has the sums of, by its kernel.
constexpr int kFilterRowBlocks[] = {5, 9, 13};
constexpr int FilterBlocksOfSm(int row_blocks, int element_bytes) {
  return (row_blocks > 5 ? 2 : 3) - (element_bytes > 2 ? 1 : 0);
}
constexpr int kMostChunks = 256;
constexpr int kMostBlocks = 32;

/// What a block of columns meets of the source, from its position and its first chunk on.
struct Chunk {
  std::int16_t offset[kRank];
  std::int16_t place;
};

/// Columns of the result: channels of one of a cell's positions from `channel` on, or, where
/// positions are merged, the channels of all positions of the cell's row `first[0]`.
struct ColumnBlock {
  std::int16_t first[kRank];
  std::int16_t channel;
  /// The first chunk of a pixel of the source, within the slab.
  std::int16_t chunk;
  /// Of the result, that have such a position.
  int cells[kRank];
};

/// A tile of cells, the window of the source that it meets, and how many tiles there are.
struct Tiling {
  int tile[kRank];
  cuda::Divisor tile_columns;
  cuda::Divisor tiles[kRank];
  int count;  ///< of all images
  cuda::Divisor window_columns;
  int window_pixels;
  cuda::Divisor slab_chunks;
  int pixel_bytes;   ///< in shared memory
  int window_bytes;  ///< of all that a tile reads
  /// There is memory for two tiles: one is copied while the other is multiplied.
  bool is_double;
};

/// Forward (source x, result y) and backward data (source y, result x). The result is computed by
/// cells: backward a cell has `stride` positions along an axis. A slab is a part of the channels
/// that needs nothing of the others; where columns are merged, a part of the source's channels,
/// whose products are added to those of the others.
struct CorrelateArguments {
  Tiling tiling;
  int source_sizes[kRank];
  int source_pitch;  ///< elements of a pixel
  int result_sizes[kRank];
  int result_pitch;
  int cell_sizes[kRank];
  int source_step[kRank];  ///< from a cell to the next
  int origin[kRank];       ///< of the window of cell 0
  int slab_source;         ///< channels
  int slab_result;
  int group_source;
  int group_result;
  int tile_rows;  ///< the tile's positions, and more that exist nowhere
  int blocks;     ///< of columns, of a slab
  int sets;
  int chunks;
  int steps;  ///< two chunks each
  bool is_merged;
  /// All blocks of a set are neighbours in memory.
  bool is_adjacent;
  /// How a position's offset becomes a filter's tap: (first + pad + factor * offset) / dilation.
  bool is_backward;
  int pad[kRank];
  int factor[kRank];
  int dilation[kRank];
  int filter_sizes[kRank];
  ColumnBlock columns[kMostBlocks];
  Chunk table[kMostChunks];
};

/// Backward filter. A warp has a block of y's channels and every `splits`-th block of positions;
/// its rows are the chunks of x that these meet.
struct FilterArguments {
  Tiling tiling;
  int x_sizes[kRank];
  int x_pitch;
  int y_sizes[kRank];
  int y_pitch;
  int stride[kRank];
  int origin[kRank];
  int slab_x;  ///< channels
  int slab_y;
  cuda::Divisor y_slab_chunks;
  int y_pixel_bytes;  ///< in shared memory
  int group_x;
  int group_y;
  int blocks;  ///< of y's channels, of a slab
  int splits;
  int block_chunks;  ///< of x, at a tap
  int chunks;
  int filter_taps;
  int filter_elements;  ///< of the whole filter
  Chunk table[kMostChunks];
};

/// A pixel's bytes in shared memory: an odd number of chunks spreads neighbours over all banks.
constexpr int PixelBytes(int chunks) {
  return (chunks | 1) * kChunkBytes;
}

/// The bytes of a pixel for single reads of floats: chunks of four pixels are in different banks.
constexpr int FloatPixelBytes(int chunks) {
  return (((chunks + 5) / 8 * 8) + 2) * kChunkBytes;
}

/// Registers of a step's columns: every lane has two of each block.
constexpr int kFragmentBytes = 32 * kBlocksOfSet * 2 * 4;

/// What is known of a tile's row before it is known which tile it is.
struct TileRow {
  int window;  ///< where it meets its first chunk, in bytes
  int result;  ///< its first position of the result, in elements from the tile's
  int cell[kRank];
};
constexpr int RowsOfTile(int positions) {
  constexpr int kMultiple = kRows * kRowBlocks;
  return (positions + kMultiple - 1) / kMultiple * kMultiple;
}

/// How much shared memory there is beside windows: for what lanes multiply by, for where chunks
/// are, and for the tile's rows.
constexpr int CorrelateSharedBytes(int sets, int steps, int positions) {
  return (sets * steps * kFragmentBytes) + (kMostChunks * static_cast<int>(sizeof(int))) +
         (RowsOfTile(positions) * static_cast<int>(sizeof(TileRow)));
}

/// How much shared memory there is beside windows: for where the tile's positions are in them.
constexpr int FilterSharedBytes(int positions) {
  return positions * static_cast<int>(sizeof(int));
}

}  // namespace gradsmith::conv::window

#endif  // GRADSMITH_CONV_CUDA_WINDOW_ARGUMENTS_H_
