#ifndef GRADSMITH_CONV_CUDA_PATCH_MATRIX_ARGUMENTS_H_
#define GRADSMITH_CONV_CUDA_PATCH_MATRIX_ARGUMENTS_H_

#include <cstdint>

#include "cuda/divisor.h"

/// What conv/cuda/patch_matrix.cc passes to the kernels of conv/cuda/kernels/conv_patch_matrix.cu,
/// by value. Both compile this file: plain C++17.
namespace gradsmith::conv::patch_matrix {

constexpr int kWarps = 8;
constexpr int kThreads = 32 * kWarps;
/// Units that a lane has on their way at once, and those that a warp moves of a row.
constexpr int kAtOnce = 4;
constexpr int kSegment = 32 * kAtOnce;

/// A spatial axis but the last. Steps are in units of the matrix.
struct Axis {
  cuda::Divisor x;
  cuda::Divisor stride;
  std::int32_t taps;
  std::int32_t patches;
  std::int64_t patch_step;
  std::int64_t tap_step;
};

/// Everything is counted in units, some elements next to each other in x and in the matrix, and x
/// in rows: all that lies along the last spatial axis, with the channels where these are innermost.
struct Arguments {
  /// A row's segments, for each of which there is an item of work.
  cuda::Divisor segments;
  std::int64_t items;
  /// The first two spatial axes, the outermost first; there may be none.
  Axis axes[2];
  /// How many channels rows have of their own: one where a row holds all of them.
  cuda::Divisor channels;
  std::int64_t image_step;
  std::int64_t channel_step;
  /// The units of a row, those from one patch to the next, and those that a patch has.
  std::int32_t row;
  cuda::Divisor stride;
  std::int32_t run;
  std::int32_t patches;
  std::int64_t patch_step;
  /// A patch's units go by `inner_step` for each, and by `outer_step` after so many.
  cuda::Divisor inner;
  std::int64_t inner_step;
  std::int64_t outer_step;
};

}  // namespace gradsmith::conv::patch_matrix

#endif  // GRADSMITH_CONV_CUDA_PATCH_MATRIX_ARGUMENTS_H_
