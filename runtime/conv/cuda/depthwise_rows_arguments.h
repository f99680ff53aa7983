#ifndef GRADSMITH_CONV_CUDA_DEPTHWISE_ROWS_ARGUMENTS_H_
#define GRADSMITH_CONV_CUDA_DEPTHWISE_ROWS_ARGUMENTS_H_

#include <cstdint>

#include "conv/cuda/depthwise_config.h"
#include "cuda/divisor.h"

/// What conv/cuda/depthwise_rows.cc passes to the kernels of
/// conv/cuda/kernels/conv_depthwise_rows.cu and conv_depthwise_rows_filter.cu, by value. All
/// compile this file: plain C++17.
namespace gradsmith::conv::depthwise_rows {

/// Threads of a block. Few, so that blocks are at different stages: some load while others compute.
constexpr int kThreads = 128;
/// Tiles that a thread sums for the filter's gradient, so that its sums are worth adding up.
constexpr int kTilesOfThread = 4;

using depthwise::CenterOf;
using depthwise::KernelConfig;

/// The tile of a thread: `rows` rows of a run of `columns` neighbouring elements of the result, or
/// of dY for the filter's gradient.
struct Tile {
  int rows;
  int columns;
};

/// TileOf returns the tile for elements of so many bytes: what it reads of a row, apart from
/// what surrounds it, is 16 bytes, and its rows are as many as registers allow.
constexpr Tile TileOf(KernelConfig config, int element_bytes) {
  const bool is_large =
      (config.side > 4 && config.step > 1) || (config.side > 3 && element_bytes > 4);
  const bool shrinks = config.step > 1 && !config.spreads;
  return {is_large && !config.spreads ? 2 : 4, 16 / element_bytes / (shrinks ? config.step : 1)};
}

/// A tensor of dense rows. A row is read or written by pieces of `piece` elements: a power of two
/// that divides the width, all strides and the address.
struct Planes {
  std::int64_t batch_stride;
  std::int64_t channel_stride;
  int row_stride;
  int height;
  int width;
  int piece;
};

/// `from` is x or dY, whose rows are combined, `to` the result, or dY for the filter's gradient,
/// whose rows are in tiles. A plane has `strips` of tiles, and these `runs` of them side by side.
struct Arguments {
  cuda::Divisor runs;
  cuda::Divisor strips;
  cuda::Divisor channels;
  std::uint32_t tiles;  // of all; for the filter's gradient, of a channel
  Planes from;
  Planes to;
  /// Where the first tile begins in `to`, and the rows and columns that it meets in `from`, those
  /// before it apart.
  int to_row;
  int to_column;
  int from_row;
  int from_column;
  /// The taps are taken in reverse: backward data by single steps.
  bool reversed;
  /// Through shared memory: the strips of a block and of all planes, and the elements of `from`.
  std::uint32_t strips_of_block;
  std::uint32_t all_strips;
  std::int64_t from_elements;
};

}  // namespace gradsmith::conv::depthwise_rows

#endif  // GRADSMITH_CONV_CUDA_DEPTHWISE_ROWS_ARGUMENTS_H_
