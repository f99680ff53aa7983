#ifndef GRADSMITH_CONV_CUDA_DEPTHWISE_LINES_ARGUMENTS_H_
#define GRADSMITH_CONV_CUDA_DEPTHWISE_LINES_ARGUMENTS_H_

#include <cstdint>

#include "cuda/divisor.h"

/// What conv/cuda/depthwise_lines.cc passes to the kernels of
/// conv/cuda/kernels/conv_depthwise_lines.cu and conv_depthwise_lines_filter.cu, by value. All
/// compile this file: plain C++17.
///
/// A line is a row of a plane in shared memory, in the type that is summed in; or, by steps or
/// dilation along the last axis, one of its phases: every `phase_step`-th column. Lines are cut
/// into runs of so many vectors of 16 bytes as a thread computes, with an empty vector after each:
/// threads side by side read other banks.
namespace gradsmith::conv::depthwise_lines {

/// Threads of a block, at most.
constexpr int kThreads = 256;
constexpr int kVectorBytes = 16;
/// Lines of a block: with a few sums of its warps, what a block has on every GPU.
constexpr int kMostSharedBytes = 48 * 1024 - 256;
/// Vectors of a run: many, or few where most of a long run would be empty.
constexpr int kLongRun = 4;
constexpr int kShortRun = 2;

/// A tensor of dense rows: planes of each channel, `depth` of them, of rows. A row is read or
/// written by pieces of `piece` elements: a power of two that divides the width, all strides and
/// the address.
struct Planes {
  std::int64_t batch_stride;
  std::int64_t channel_stride;
  std::int64_t depth_stride;
  std::int64_t row_stride;
  int depth;
  int height;
  int width;
  int piece;
};

/// What of a tensor a block has in shared memory: `rows` rows of each plane, `phases` lines of
/// each row, `positions` elements of each line. Pitches are in elements of shared memory.
struct Lines {
  Planes planes;
  cuda::Divisor rows;
  cuda::Divisor phases;
  int positions;
  int phase_step;
  int phase_pitch;
  int row_pitch;
  int plane_pitch;
  /// So many threads copy a row, and so many rows are copied at the same time.
  cuda::Divisor lanes;
  int rows_at_once;
};

/// The taps of a filter. Of `phases` lines of each row of taps, by steps along the last axis, the
/// first has the most taps. The first `shift` places of a line are empty, so that what the others
/// meet is aligned as in memory; in reverse, also one more of lines that have fewer taps.
struct Taps {
  cuda::Divisor rows;
  cuda::Divisor columns;
  cuda::Divisor phases;
  int most;
  int shift;
  bool reversed;
};

/// Which rows meet: row `r` of the result, by single steps or where it is the small tensor (y), and
/// tap row `i` meet row r * step + first + i * dilation. Where the result is the large one (x), row
/// q * step + a and tap row a + i * step meet row q + first - i * dilation.
struct Rows {
  cuda::Divisor step;
  int first;
  int dilation;
  bool is_data;
};

/// Which planes meet: plane `d` of the result, or of y for the filter's gradient, and tap plane `i`
/// meet plane d * step - pad + i * dilation; where the result is x, those of y of which this is d.
struct Depths {
  cuda::Divisor step;
  int taps;
  int pad;
  int dilation;
  bool is_data;
};

/// For forward and backward data: `from` is combined to `to`. A block has `runs` runs of each of
/// the result's lines, and as many planes as images times channels, at the
/// same depth: planes of `from` are copied one after the other.
struct Arguments {
  Lines from;
  Lines to;
  Taps taps;
  Rows rows;
  Depths depths;
  /// The columns that the first positions of the first phase are.
  int from_column;
  int to_column;
  int to_row;
  cuda::Divisor runs;
  /// The rows of a filter's taps in all of its planes.
  cuda::Divisor filter_rows;
  /// How far apart lines, rows, planes and filters of taps are in shared memory.
  int tap_phase_pitch;
  int tap_row_pitch;
  int tap_plane_pitch;
  int filter_pitch;
  /// The byte of shared memory at which lines of `from` begin.
  int from_begin;
  int images_of_block;
  int channels_of_block;
  int batch;
  int channels;
  /// How blocks are counted: phases fastest, images slowest.
  cuda::Divisor phase_tiles;
  cuda::Divisor run_tiles;
  cuda::Divisor row_tiles;
  cuda::Divisor depth_tiles;
  cuda::Divisor channel_tiles;
};

/// FilterArguments is what kernels of the filter's gradient are given. A thread sums a run of taps
/// over a share of a tile's positions: a segment of every `groups`-th line of dY.
struct FilterArguments {
  Lines x;
  Lines y;
  Taps taps;
  Rows rows;
  Depths depths;
  int x_column;
  /// Runs of a line of taps; items are these of all lines of a block's taps, of which there are
  /// `tap_rows_of_block` rows of a plane; or all rows of all planes.
  cuda::Divisor runs;
  cuda::Divisor items;
  int tap_rows_of_block;
  /// The tap planes of a block, which shared memory has as many planes of x for: plane d of x is in
  /// place d modulo these, `x_pitch` apart.
  cuda::Divisor ring;
  int x_pitch;
  cuda::Divisor segments;
  int segment;
  int groups;
  int y_begin;
  int images_of_tile;
  int batch;
  cuda::Divisor channels;
  cuda::Divisor tap_tiles;
  cuda::Divisor tap_depth_tiles;
  /// The tiles of a channel, the depth fastest, phases next, and those of a slice.
  cuda::Divisor phase_tiles;
  cuda::Divisor run_tiles;
  cuda::Divisor row_tiles;
  cuda::Divisor depth_tiles;
  std::uint32_t tiles;
  std::uint32_t tiles_of_slice;
};

}  // namespace gradsmith::conv::depthwise_lines

#endif  // GRADSMITH_CONV_CUDA_DEPTHWISE_LINES_ARGUMENTS_H_
