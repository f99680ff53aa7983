#ifndef GRADSMITH_CONV_CUDA_FEW_CHANNELS_ARGUMENTS_H_
#define GRADSMITH_CONV_CUDA_FEW_CHANNELS_ARGUMENTS_H_

#include "cuda/divisor.h"

/// What conv/cuda/few_channels.cc passes to the kernels of
/// conv/cuda/kernels/conv_few_channels_*.cu, by value. Both compile this file: plain C++17.
namespace gradsmith::conv::few_channels {

constexpr int kElementBytes = 2;
constexpr int kChunkBytes = 16;
constexpr int kVector = kChunkBytes / kElementBytes;
/// The taps of a filter along each axis of a plane.
constexpr int kTaps = 3;
constexpr int kTapsOfPlane = kTaps * kTaps;
constexpr int kTapsOfVolume = kTaps * kTapsOfPlane;
/// How far the taps of a plane's tile reach beyond a result's.
constexpr int kMargin = kTaps - 1;
/// Positions that a product takes.
constexpr int kTile = 16;
/// Rows of positions that a block multiplies at a time.
constexpr int kRows = 8;
constexpr int kRowsWithMargin = kRows + kMargin;
constexpr int kMostSharedBytes = 227 << 10;

/// A kernel's room for channels.
struct KernelConfig {
  int y_channels;
  int x_channels;
};

constexpr int kConfigs = 5;
constexpr KernelConfig kConfigAt[kConfigs] = {{16, 16}, {32, 32}, {64, 32}, {32, 64}, {72, 40}};

/// Room for so many elements in shared memory: an odd number of chunks, so that what lies side by
/// side is in different banks.
constexpr int OddChunks(int elements) {
  return (elements / kVector | 1) * kChunkBytes;
}

/// The bytes of a position in shared memory.
constexpr int PitchBytes(int channels) {
  return OddChunks(channels);
}

constexpr int TileBytes(int rows, int columns, int channels) {
  return rows * columns * PitchBytes(channels);
}

/// The bytes of a row as it lies in memory, whose begin need not be aligned, and of what is read
/// along with its end.
constexpr int RawRowBytes(int columns, int channels) {
  return columns * channels * kElementBytes + 3 * kChunkBytes;
}

/// Two tiles: one is copied while the other is multiplied. Where channels do not fill chunks, rows
/// as they lie in memory as well.
constexpr int BytesWithNext(int tile, int raw, bool are_chunks) {
  return 2 * tile + (are_chunks ? 0 : raw);
}

// --- the filter's gradient ----------------------------------------------------------------------

/// Sixteens of channels of y, each of which three warps multiply, one for each column of taps.
constexpr int SixteensOf(KernelConfig config) {
  return (config.y_channels + kTile - 1) / kTile;
}

/// Eights of channels of x that a warp multiplies: more would take too many registers.
constexpr int EightsOfWarp(KernelConfig config) {
  return config.x_channels <= 40 ? config.x_channels / kVector : config.x_channels / kVector / 2;
}

/// Groups of such warps, which take turns with tiles.
constexpr int TurnsOf(KernelConfig config) {
  const int warps =
      kTaps * SixteensOf(config) * (config.x_channels / kVector / EightsOfWarp(config));
  return warps > 6 ? 1 : 12 / warps;
}

constexpr int FilterWarpsOf(KernelConfig config) {
  return kTaps * SixteensOf(config) * (config.x_channels / kVector / EightsOfWarp(config)) *
         TurnsOf(config);
}

/// The warps that copy what the others multiply next: as many as leave these their registers.
constexpr int FilterCopyWarpsOf(KernelConfig config) {
  return SixteensOf(config) > 4 ? 5 : 4;
}

constexpr int FilterThreadsOf(KernelConfig config) {
  return 32 * (FilterWarpsOf(config) + FilterCopyWarpsOf(config));
}

constexpr int FilterSharedBytes(KernelConfig config, int tiles, bool are_chunks) {
  const int columns = tiles * kTile;
  return BytesWithNext(
      TileBytes(kRows, columns, config.y_channels) +
          TileBytes(kRowsWithMargin, columns + kMargin, config.x_channels),
      kRows * RawRowBytes(columns, config.y_channels) +
          kRowsWithMargin * RawRowBytes(columns + kMargin, config.x_channels),
      are_chunks);
}

/// Tiles in a row: what shared memory has room for.
constexpr int FilterTilesOf(KernelConfig config, bool are_chunks) {
  int tiles = 4;
  while (FilterSharedBytes(config, tiles, are_chunks) > kMostSharedBytes) {
    --tiles;
  }
  return tiles;
}

// --- the gradient of x --------------------------------------------------------------------------

constexpr int kDataColumns = 2 * kTile;
constexpr int kDataWarps = 8;

/// A kernel for the gradient of x, of images or of volumes.
struct DataKernel {
  KernelConfig config;
  bool are_chunks;
  bool is_volume;
};

/// Parts of the channels of y, of which one is in shared memory at a time: beside a volume's filter
/// there is no room for all.
constexpr int PartsOf(DataKernel kernel) {
  constexpr int kMostChannels = 32;
  return kernel.is_volume ? (kernel.config.y_channels + kMostChannels - 1) / kMostChannels : 1;
}

constexpr int PartChannelsOf(DataKernel kernel) {
  return kernel.config.y_channels / PartsOf(kernel);
}

/// Tiles of y that a tile of x is made of, one after the other.
constexpr int StepsOf(DataKernel kernel) {
  return kernel.is_volume ? kTaps * PartsOf(kernel) : 1;
}

/// The filter lies before the tiles. For each channel of y there is a position for each tap, and a
/// warp copies so many.
constexpr int kFilterColumns = 32;
constexpr int FilterRowsOf(KernelConfig config) {
  return (config.y_channels * kTapsOfPlane + kFilterColumns - 1) / kFilterColumns;
}

/// A filter of volumes has a row for each channel of y, without room between the taps.
constexpr int FilterBytesOf(DataKernel kernel) {
  const KernelConfig config = kernel.config;
  return kernel.is_volume ? config.y_channels * OddChunks(kTapsOfVolume * config.x_channels)
                          : TileBytes(FilterRowsOf(config), kFilterColumns, config.x_channels);
}

constexpr int DataSharedBytes(DataKernel kernel, int rows) {
  const int columns = kDataColumns + kMargin;
  return FilterBytesOf(kernel) +
         BytesWithNext(
             TileBytes(rows + kMargin, columns, PartChannelsOf(kernel)),
             (rows + kMargin) * RawRowBytes(columns, kernel.config.y_channels), kernel.are_chunks);
}

/// Rows of x that a block multiplies at a time: as many as shared memory and registers have room
/// for.
constexpr int DataRowsOf(DataKernel kernel) {
  int rows = kernel.config.x_channels <= 40 ? 2 * kRows : kRows;
  while (DataSharedBytes(kernel, rows) > kMostSharedBytes) {
    rows /= 2;
  }
  return rows;
}

/// They share the rows evenly, or leave others their registers.
constexpr int DataCopyWarpsOf(DataKernel kernel) {
  return DataRowsOf(kernel) == kRows ? kRowsWithMargin / 2 : 4;
}

constexpr int DataThreadsOf(DataKernel kernel) {
  return 32 * (kDataWarps + DataCopyWarpsOf(kernel));
}

/// Rows that a warp multiplies, of 16 columns.
constexpr int RowsOfWarp(DataKernel kernel) {
  return DataRowsOf(kernel) * kDataColumns / kTile / kDataWarps;
}

/// Work is what a block does at a time: a tile of a plane.
struct Arguments {
  int y_channels;
  int x_channels;
  /// The height and the width of a plane, in x and in y alike.
  int height;
  int width;
  /// The planes of an image and the taps along the axis before these.
  cuda::Divisor depth;
  int depth_taps;
  /// Columns of a tile, and how many tiles there are in a plane, across and down.
  int columns;
  cuda::Divisor strips;
  cuda::Divisor bands;
  int works;
  /// The planes of all images.
  int planes;
};

}  // namespace gradsmith::conv::few_channels

#endif  // GRADSMITH_CONV_CUDA_FEW_CHANNELS_ARGUMENTS_H_
