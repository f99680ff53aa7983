#ifndef GRADSMITH_CONV_CUDA_DEPTHWISE_BANDS_ARGUMENTS_H_
#define GRADSMITH_CONV_CUDA_DEPTHWISE_BANDS_ARGUMENTS_H_

#include <cstdint>

#include "cuda/divisor.h"

/// What conv/cuda/depthwise_bands.cc passes to the kernels of
/// conv/cuda/kernels/conv_depthwise_bands.cu and conv_depthwise_bands_filter.cu, by value. All
/// compile this file: plain C++17.
namespace gradsmith::conv::depthwise_bands {

/// Neighbouring results of a row of products: a window of what they meet in the source is a row of
/// the other factor. A product has so many windows.
constexpr int kWindow = 8;
constexpr int kWindows = 16;
/// The bytes of a window that a product takes: a block of 16 elements of half or bf16, or of 8 of
/// float.
constexpr int kBlockBytes = 32;
constexpr int kVectorBytes = 16;

/// Rows of results of a strip, all of which a warp sums at a time: of images, and where a filter
/// has a single row.
constexpr int kStripRows = 8;
/// Tiles of windows that a warp sums at a time where a strip has one row.
constexpr int kTilesOfRow = 2;
/// For the filter's gradient a warp sums so many blocks of a window at a time where a filter has
/// one row.
constexpr int kBlocksOfRow = 2;

/// Threads of a block, at most.
constexpr int kMostThreads = 128;
constexpr int kMostFilterThreads = 512;
/// What a block may have of shared memory on every GPU with tensor cores.
constexpr int kMostSharedBytes = 76 * 1024;

/// A tensor whose rows are dense.
struct Planes {
  std::int64_t image_stride;
  std::int64_t channel_stride;
  int row_stride;
  int height;
  int width;
  /// A power of two of elements: rows of a tile all begin as far from a multiple of as many.
  int unit;
};

/// How what a block reads of a tensor lies in shared memory. Rows are `pitch` bytes apart, and
/// those of the next strip further by `skew`, so that windows that follow each other are in
/// different banks. `unit` elements are copied at a time.
struct Room {
  int pitch;
  int skew;
  /// 2^shift rows from one strip to the next.
  int shift;
  int plane_pitch;
  int unit;
  /// Elements alone are copied 2^bits of a row at a time.
  int bits;
  cuda::Divisor units;  // of a row
  cuda::Divisor rows;
  int copies;  // of all of its planes
  int bytes;
};

/// A work of a block is `planes` images of a channel, of each of which it has `strips` of rows by
/// `windows` side by side. There are `works` of a channel: `across` of a row, `down` a plane. Where
/// taps are dilated down, rows are those of one of as many classes, as far apart.
struct Arguments {
  /// What the filter is multiplied with; the result, or dY for the filter's gradient.
  Planes from;
  Planes to;
  Room from_room;
  Room to_room;  // of dY alone
  int channels;
  int images;
  int taps_down;
  int taps_across;
  int step_down;
  int step_across;
  int dilation_down;
  int dilation_across;
  /// The taps are taken in reverse: backward data.
  bool reversed;
  /// The row and column of the first result's first tap.
  int first_row;
  int first_column;
  /// How many blocks of terms a window has.
  int blocks;
  /// How far apart copies of a row of a filter are, in elements; half and bf16 have two copies.
  int band_pitch;
  /// How many zeros precede the taps of a row, for results of a window that it does not reach.
  int zeros;
  int planes;
  cuda::Divisor strips;
  cuda::Divisor windows;
  cuda::Divisor across;
  cuda::Divisor down;
  cuda::Divisor classes;
  int works;
  /// How many sets of taps and blocks a warp sums for the filter's gradient.
  int items;
};

}  // namespace gradsmith::conv::depthwise_bands

#endif  // GRADSMITH_CONV_CUDA_DEPTHWISE_BANDS_ARGUMENTS_H_
