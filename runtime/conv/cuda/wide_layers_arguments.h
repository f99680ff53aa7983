#ifndef GRADSMITH_CONV_CUDA_WIDE_LAYERS_ARGUMENTS_H_
#define GRADSMITH_CONV_CUDA_WIDE_LAYERS_ARGUMENTS_H_

#include <cstdint>

#include "cuda/divisor.h"

/// What conv/cuda/wide_layers.cc passes to the kernels of
/// conv/cuda/kernels/conv_wide_layers_filter.cu, by value. All compile this file: plain C++17.
namespace gradsmith::conv::wide_layers {

constexpr int kWarpgroup = 128;
/// The warpgroups of a block that multiply, each for a unit of its own; one more copies for them.
constexpr int kConsumers = 2;
constexpr int kThreads = (kConsumers + 1) * kWarpgroup;
/// Registers of a thread, of 65,536 in all: a launch gives all threads the same, and those that
/// copy leave some to the others.
constexpr int kConsumerRegisters = 240;
constexpr int kCopierRegisters = 24;

/// A unit is a warpgroup's rows of products: so many channels of x, and taps next to each other in
/// a row of the filter.
constexpr int kXChannels = 64;
constexpr int kTaps = 3;
/// Channels of y in a tile: columns of a product.
constexpr int kYChannels = 128;
/// Channels are copied by fours.
constexpr int kVector = 4;

/// Terms of a product: pixels of y.
constexpr int kDepth = 8;
/// Pixels of a step, counted through all rows and images.
constexpr int kPixels = 32;
constexpr int kProducts = kPixels / kDepth;
constexpr int kSlabBytes = kYChannels * kDepth * 4;
constexpr int kTileBytesOfY = kProducts * kSlabBytes;

/// A thread has runs of pixels next to each other, and loads what the taps meet of each run once. A
/// row of y is filled up to whole runs: two lengths, so that little of it is empty.
constexpr int kRuns = 2;
constexpr int kRunAt[kRuns] = {4, 2};
/// The runs of a group, which lanes have side by side: of its products, the i-th has pixels 2 i and
/// 2 i + 1 of each run, those in its first four terms and these in the others.
constexpr int kRunsOfGroup = 4;

/// Places for pixels of x in a step: those of y, and at the end of each row a run more, of which
/// taps reach the first.
constexpr int kMostPlaces = 52;
constexpr int kUnitBytes = kXChannels * 4;
constexpr int kPlaceBytes = kConsumers * kUnitBytes;

/// Runs of places and some empty bytes: lanes, which have runs side by side, read from different
/// banks.
constexpr int RunBytesOf(int run) {
  return run * kPlaceBytes + 32;
}
/// Products read tiles of y from multiples of 256.
constexpr int TileBytesOfX(int run) {
  return (kMostPlaces / run * RunBytesOf(run) + 255) / 256 * 256;
}
constexpr int StageBytesOf(int run) {
  return kTileBytesOfY + TileBytesOfX(run);
}

/// Steps that are on their way, in use, and may still be read by products under way. Each has a
/// barrier for what is copied and one for its use.
constexpr int kStages = 5;
constexpr int kBarrierBytes = 8;
constexpr int kAlignment = 1024;
constexpr int SharedBytesOf(int run) {
  return kAlignment + kStages * (StageBytesOf(run) + 2 * kBarrierBytes);
}

/// A block of the kernel that turns dY.
constexpr int kTurnThreads = 256;
/// Pixels of zeros that it leaves behind what it has turned, for places that x has no pixel for:
/// many, since blocks that read the same bytes wait for each other.
constexpr int kZeroPixels = 1024;
constexpr int kZeros = kZeroPixels * kXChannels;

struct Arguments {
  int x_channels;
  int y_channels;
  int filter_height;
  int filter_width;
  /// Units of channels and of taps in a row of the filter, and those of all rows; pairs of units
  /// are a tile's.
  int x_units;
  int tap_groups;
  int units;
  int pairs;
  int y_tiles;
  /// Rows of all images of y, and their pixels, of which the last are empty where rows are filled
  /// up.
  int rows;
  int y_columns;
  cuda::Divisor y_width;
  cuda::Divisor y_height;
  /// Places of a row, those that taps reach, and those of a step at most.
  cuda::Divisor reach;
  int reached;
  int places;
  /// Rows of x from one tap down to the next.
  int dilation_down;
  int pad_top;
  int pad_left;
  int x_height;
  int x_width;
  /// Strides in elements; channels come last.
  std::int64_t x_image;
  int x_row;
  int x_column;
  std::int64_t y_image;
  int y_row;
  int y_column;
  /// Steps of a tile, and of all tiles, which blocks share evenly.
  int steps;
  int all_steps;
  int blocks;
  /// Blocks that share a tile at most.
  int pieces;
  /// Blocks that turn the same channels of dY.
  int turn_rows;
};

}  // namespace gradsmith::conv::wide_layers

#endif  // GRADSMITH_CONV_CUDA_WIDE_LAYERS_ARGUMENTS_H_
