#ifndef GRADSMITH_CONV_CUDA_DIRECT_ARGUMENTS_H_
#define GRADSMITH_CONV_CUDA_DIRECT_ARGUMENTS_H_

#include <cstdint>

/// What conv/cuda/direct.cc passes to the kernels of conv/cuda/kernels/conv_direct.cu, by value.
/// Both compile this file: plain C++17.
namespace gradsmith::conv::direct {

/// Batch, channels, three spatial axes.
constexpr int kRank = 5;
constexpr int kSpatialRank = 3;

constexpr int kThreads = 256;
/// The most threads of a block that adds up the terms of some elements, to check them or for long
/// sums of few.
constexpr int kMaxBlockThreads = 512;

/// The primitives, as conv::Primitive numbers them.
constexpr int kForward = 0;
constexpr int kBackwardData = 1;
constexpr int kBackwardFilter = 2;

struct AxisArguments {
  std::int64_t x;
  std::int64_t w;
  std::int64_t y;
  std::int64_t stride;
  std::int64_t dilation;
  std::int64_t pad;
  /// Backward data: taps that reach one x are `tap_step` apart, and the y they read `y_step`.
  std::int64_t tap_step;
  std::int64_t y_step;
};

/// A Problem whose spatial axes are filled up to three in front, with axes of one position.
struct Arguments {
  int primitive;
  bool channels_innermost;  ///< neighbouring threads compute neighbouring channels
  std::int64_t batch;
  std::int64_t x_channels;  ///< of one group
  std::int64_t y_channels;  ///< of one group
  AxisArguments axes[kSpatialRank];
  std::int64_t x_strides[kRank];
  std::int64_t w_strides[kRank];
  std::int64_t y_strides[kRank];
  /// The dims of the result, and how many elements they make.
  std::int64_t dims[kRank];
  std::int64_t count;
};

/// Which elements are checked: all, or all corners, then those of `border` places on each end of
/// each dim, then those of a place in each of `strata` equal parts of the whole. A place has
/// `neighbours` elements, a power of two, as have the blocks that check them.
struct Sample {
  std::int64_t count;
  std::int64_t border;
  std::int64_t strata;
  unsigned neighbours;
  bool all;
};

}  // namespace gradsmith::conv::direct

#endif  // GRADSMITH_CONV_CUDA_DIRECT_ARGUMENTS_H_
