#ifndef GRADSMITH_CONV_CUDA_DEPTHWISE_ARGUMENTS_H_
#define GRADSMITH_CONV_CUDA_DEPTHWISE_ARGUMENTS_H_

#include <cstdint>

#include "conv/cuda/direct_arguments.h"

/// What conv/cuda/depthwise.cc passes to the kernels of conv/cuda/kernels/conv_depthwise.cu, by
/// value. Both compile this file: plain C++17.
namespace gradsmith::conv::depthwise {

using direct::kRank;
using direct::kSpatialRank;

/// Threads of a block, at most.
constexpr int kThreads = 256;
/// Rows that a thread goes down at most: what it reads for one serves the next.
constexpr int kMaxRows = 14;
/// Taps that a thread sums at the same time for the filter's gradient.
constexpr int kTapsAtOnce = 9;
/// Channel vectors side by side in a block.
constexpr int kMaxUnits = 32;
/// The bytes of a vector's sums, which are float, and double for double.
constexpr int kUnitSumBytes = 16;
/// So many taps of so many vectors fit into the shared memory that every GPU has.
constexpr int kMaxTaps = 64;

struct AxisArguments {
  int x;
  int w;
  int y;
  int stride;
  int dilation;
  int pad;
};

/// A problem in which every channel has a filter of its own. `axes` and strides are filled up to
/// three spatial axes in front.
///
/// A unit is a vector of neighbouring channels, or one channel; a column is `rows` neighbouring
/// rows of the tensor that the threads go through, at one position of the last axis. A block has
/// `units_of_block` units by `columns_of_block` columns.
struct Arguments {
  int channels;
  int taps;
  AxisArguments axes[kSpatialRank];
  std::int64_t x_strides[kRank];
  std::int64_t y_strides[kRank];
  /// The spatial sizes of the tensor that the threads go through.
  int sizes[kSpatialRank];
  int rows;
  int row_tiles;
  std::int64_t columns;
  int unit_tiles;
  int units_of_block;
  int columns_of_block;
  /// The columns of a slice of the filter's gradient, each of which gives a row of partial sums.
  std::int64_t columns_of_slice;
};

}  // namespace gradsmith::conv::depthwise

#endif  // GRADSMITH_CONV_CUDA_DEPTHWISE_ARGUMENTS_H_
