#ifndef GRADSMITH_CONV_CUDA_FIRST_LAYERS_ARGUMENTS_H_
#define GRADSMITH_CONV_CUDA_FIRST_LAYERS_ARGUMENTS_H_

#include <cstdint>

#include "cuda/divisor.h"

/// What conv/cuda/first_layers.cc passes to the kernels of conv/cuda/kernels/conv_first_layers.cu
/// and conv_first_layers_filter.cu, by value. All compile this file: plain C++17.
namespace gradsmith::conv::first_layers {

constexpr int kChunkBytes = 16;
constexpr int kElementBytes = 2;
constexpr int kVector = kChunkBytes / kElementBytes;
constexpr int kRank = 2;
/// The steps of the convolution in one pass: a position of y goes with 2 by 2 pixels of x. dW alone
/// takes single steps as well.
constexpr int kStep = 2;
/// The most channels of a pixel of x; in shared memory a one follows them.
constexpr int kMostChannels = 3;
constexpr int kPixelChannels = kMostChannels + 1;
constexpr int kPixelBytes = kPixelChannels * kElementBytes;
constexpr int kLeastTaps = 2;
constexpr int kMostTaps = 7;
/// So many warps multiply for dX, and as many for dW.
constexpr int kWarps = 8;
constexpr int kThreads = 2 * 32 * kWarps;
/// Positions that a product takes.
constexpr int kTile = 16;
/// Tiles in a row: what shared memory has room for.
constexpr int kMostTiles = 7;
/// Rows of positions that a block multiplies while it copies the next ones.
constexpr int kRows = 4;
/// Where dW is alone blocks have half the warps and rows, and share a multiprocessor: some multiply
/// while others copy.
constexpr int kFilterThreads = 32 * kWarps;
constexpr int kFilterRows = kRows / 2;
/// Pixels of x that a position of a row of taps meets, in pairs that fill a chunk.
constexpr int kPairs = (kMostTaps + 1) / 2;

/// A kernel's room for channels of y, and for the rows and columns of y that 2 by 2 pixels of x
/// meet; and its rows of positions.
struct KernelConfig {
  int channels;
  int window;
  int rows = kRows;
};

constexpr int kConfigs = 6;
constexpr KernelConfig kConfigAt[kConfigs] = {{32, 2}, {32, 3}, {32, 4}, {64, 2}, {64, 3}, {64, 4}};

/// Rows of y that are multiplied at a time.
constexpr int RowsAtOnce(KernelConfig config) {
  return config.rows + config.window - 1;
}

/// Rows of y in shared memory: these and the next ones.
constexpr int RowsOfRing(KernelConfig config) {
  return RowsAtOnce(config) + config.rows;
}

constexpr int RowBytes(KernelConfig config) {
  return (kMostTiles * kTile + config.window - 1) * config.channels * kElementBytes;
}

/// The filter as products with it take it: a chunk for each lane.
constexpr int FilterBytes(KernelConfig config) {
  return config.window * config.window * config.channels / kTile * 32 * kChunkBytes;
}

/// The rows of x that so many rows of y meet by such steps.
constexpr int RowsOfPixels(int step, int rows) {
  return step * (rows - 1) + kMostTaps;
}

/// The pixels of a row of x in shared memory.
constexpr int PixelsOfRow(int step) {
  return step * (kMostTiles * kTile - 1) + 2 * kPairs;
}

/// By single steps a row is there twice, the second time without its first pixel: pairs of pixels
/// from an odd one on are chunks then, in other banks than those of the first.
constexpr int CopiesOfPixels(int step) {
  return step == 1 ? 2 : 1;
}

constexpr int PixelCopyBytes(int step) {
  return (PixelsOfRow(step) + step % 2) * kPixelBytes;
}

constexpr int PixelBytes(int step, int rows) {
  return RowsOfPixels(step, rows) * CopiesOfPixels(step) * PixelCopyBytes(step);
}

constexpr int SharedBytes(KernelConfig config) {
  return RowsOfRing(config) * RowBytes(config) + FilterBytes(config) + PixelBytes(kStep, kRows);
}

/// A kernel's steps, for dW alone, and its room for channels of y and for pairs of taps in a row;
/// and how many of its blocks share a multiprocessor, as registers for their sums let them.
struct FilterKernelConfig {
  int step;
  int channels;
  int pairs;
  int blocks;
};

constexpr int kFilterConfigs = 8;
constexpr FilterKernelConfig kFilterConfigAt[kFilterConfigs] = {
    {1, 32, 2, 4}, {1, 32, 4, 3}, {1, 64, 2, 3}, {1, 64, 4, 2},
    {2, 32, 2, 3}, {2, 32, 4, 2}, {2, 64, 2, 3}, {2, 64, 4, 2}};

/// The configuration for rows of dY, of which a position meets its own row and column alone.
constexpr KernelConfig RowsOf(FilterKernelConfig config) {
  return {config.channels, 1, kFilterRows};
}

constexpr int SharedBytes(FilterKernelConfig config) {
  return RowsOfRing(RowsOf(config)) * RowBytes(RowsOf(config)) +
         PixelBytes(config.step, kFilterRows);
}

/// Work is what a block does at a time: a strip of columns of an image, between two rows.
struct Arguments {
  int y_channels;
  int x_channels;
  int x[kRank];
  int y[kRank];
  int w[kRank];
  int pad[kRank];
  /// The first position of y that the pixels at twice a position's place meet, less that position;
  /// none where dW is alone.
  int begin[kRank];
  /// Positions, along each axis, of all of y and all of x, or where dW is alone of y.
  int positions[kRank];
  /// Columns of a strip, a multiple of kTile.
  int strip;
  /// Rows of a segment, a multiple of a block's.
  int segment;
  int works;
  cuda::Divisor strips;
  cuda::Divisor segments;
  /// Warps that have the same row of taps, and take turns with tiles.
  int turns;
};

}  // namespace gradsmith::conv::first_layers

#endif  // GRADSMITH_CONV_CUDA_FIRST_LAYERS_ARGUMENTS_H_
