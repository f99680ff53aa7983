#ifndef GRADSMITH_CONV_CUDA_FEW_CHANNELS_ARGUMENTS_H_
#define GRADSMITH_CONV_CUDA_FEW_CHANNELS_ARGUMENTS_H_

#include "cuda/divisor.h"

/// What conv/cuda/few_channels.cc passes to the kernels of cuda/kernels/conv_few_channels_*.cu, by
/// value. Both compile this file: plain C++17.
namespace gradsmith::conv::few_channels {

constexpr int kElementBytes = 2;
constexpr int kChunkBytes = 16;
constexpr int kVector = kChunkBytes / kElementBytes;
/// Along each axis of a plane.
constexpr int kTaps = 3;
/// Of a plane's tile that the taps reach beyond a result's.
constexpr int kMargin = kTaps - 1;
/// Positions that a product takes.
constexpr int kTile = 16;
constexpr int kMostSharedBytes = 227 << 10;

/// A kernel's room for channels.
struct Form {
  int y_channels;
  int x_channels;
};

/// The bytes of a position in shared memory: an odd number of chunks, so that neighbouring
/// positions' are in different banks.
constexpr int PitchBytes(int channels) {
  return (channels / kVector | 1) * kChunkBytes;
}

/// The bytes of a row as it lies in memory, whose begin need not be aligned.
constexpr int RawRowBytes(int columns, int channels) {
  return columns * channels * kElementBytes + 2 * kChunkBytes;
}

constexpr int TileBytes(int rows, int columns, int channels) {
  return rows * columns * PitchBytes(channels);
}

/// Behind the last row is room for what is read along with it.
constexpr int RawBytes(int rows, int columns, int channels) {
  return rows * RawRowBytes(columns, channels) + 2 * kChunkBytes;
}

// --- the filter's gradient ----------------------------------------------------------------------

constexpr int kFilterForms = 6;
constexpr Form kFilterFormAt[kFilterForms] = {{16, 16}, {32, 32}, {64, 32},
                                              {32, 64}, {72, 40}, {64, 64}};
/// Rows of y that a block multiplies at a time.
constexpr int kFilterRows = 8;

/// Sixteens of channels of y, each of which three warps multiply, one for each column of taps.
constexpr int SixteensOf(Form form) {
  return (form.y_channels + kTile - 1) / kTile;
}

/// Groups of such warps, which take turns with tiles.
constexpr int TurnsOf(Form form) {
  return SixteensOf(form) == 1 ? 4 : SixteensOf(form) == 2 ? 2 : 1;
}

constexpr int FilterThreadsOf(Form form) {
  return 32 * kTaps * SixteensOf(form) * TurnsOf(form);
}

/// With what is under way: where channels fill chunks another tile, where they do not rows as they
/// lie in memory.
constexpr int FilterSharedBytes(Form form, int tiles, bool are_chunks) {
  const int columns = tiles * kTile;
  const int x_rows = kFilterRows + kMargin;
  const int x_columns = columns + kMargin;
  const int tile = TileBytes(kFilterRows, columns, form.y_channels) +
                   TileBytes(x_rows, x_columns, form.x_channels);
  const int raw = RawBytes(kFilterRows, columns, form.y_channels) +
                  RawBytes(x_rows, x_columns, form.x_channels);
  return tile + (are_chunks ? tile : raw);
}

/// Tiles in a row: what shared memory has room for.
constexpr int FilterTilesOf(Form form) {
  int tiles = 4;
  while (FilterSharedBytes(form, tiles, true) > kMostSharedBytes ||
         FilterSharedBytes(form, tiles, false) > kMostSharedBytes) {
    --tiles;
  }
  return tiles;
}

// --- the gradient of x --------------------------------------------------------------------------

constexpr int kDataForms = 5;
constexpr Form kDataFormAt[kDataForms] = {{16, 16}, {32, 32}, {64, 32}, {32, 64}, {72, 40}};
constexpr int kDataWarps = 8;
constexpr int kDataThreads = 32 * kDataWarps;
/// A tile of x: a warp computes 16 columns of kRowsOfWarp rows.
constexpr int kDataColumns = 2 * kTile;
constexpr int kRowsOfWarp = 4;
constexpr int kDataRows = kDataWarps / 2 * kRowsOfWarp;

constexpr int FilterPositions(Form form) {
  return form.y_channels * kTaps * kTaps;
}

/// The filter, and tiles as above.
constexpr int DataSharedBytes(Form form, bool are_chunks) {
  const int rows = kDataRows + kMargin;
  const int columns = kDataColumns + kMargin;
  const int tile = TileBytes(rows, columns, form.y_channels);
  return TileBytes(1, FilterPositions(form), form.x_channels) + tile +
         (are_chunks ? tile : RawBytes(rows, columns, form.y_channels));
}

/// Work is what a block does at a time: a tile of a plane.
struct Arguments {
  int y_channels;
  int x_channels;
  /// Of a plane of x and of y.
  int height;
  int width;
  /// Along the axis before these: planes of an image, and taps.
  cuda::Divisor depth;
  int depth_taps;
  /// Columns of a tile, and how many tiles there are in a plane, across and down.
  int columns;
  cuda::Divisor strips;
  cuda::Divisor bands;
  int works;
  /// All of them.
  int planes;
  /// Columns that are copied of the tensor without and of that with a margin.
  cuda::Divisor plain_columns;
  cuda::Divisor margin_columns;
  /// FilterPositions, for the gradient of x.
  cuda::Divisor filter_positions;
};

}  // namespace gradsmith::conv::few_channels

#endif  // GRADSMITH_CONV_CUDA_FEW_CHANNELS_ARGUMENTS_H_
