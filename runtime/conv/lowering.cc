#include "conv/lowering.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

namespace gradsmith::conv {

LoweredProblem Lower(const Problem& problem) {
  // Axes that the problem does not have are default ones: size 1, no pads.
  std::array<int, kMaxSpatialRank> order{};
  std::iota(order.begin(), order.end(), 0);
  std::stable_partition(order.begin(), order.end(), [&](int axis) {
    return problem.axes[axis].x == 1 && problem.axes[axis].y == 1;
  });
  LoweredProblem lowered{
      .axes = {},
      .x = {.outer = problem.x_strides[0], .channel = problem.x_strides[1]},
      .w = {.outer = problem.w_strides[0], .channel = problem.w_strides[1]},
      .y = {.outer = problem.y_strides[0], .channel = problem.y_strides[1]},
  };
  for (int i = 0; i < kMaxSpatialRank; ++i) {
    const int axis = order[i];
    lowered.axes[i] = problem.axes[axis];
    if (axis < problem.spatial_rank) {
      lowered.x.spatial[i] = problem.x_strides[axis + 2];
      lowered.w.spatial[i] = problem.w_strides[axis + 2];
      lowered.y.spatial[i] = problem.y_strides[axis + 2];
    }
  }
  return lowered;
}

PerAxis<AxisTaps> ForwardTaps(const LoweredProblem& lowered) {
  PerAxis<AxisTaps> taps;
  std::transform(lowered.axes.begin(), lowered.axes.end(), taps.begin(), [](const Axis& axis) {
    return AxisTaps{
        .positions = axis.y,
        .source = axis.x,
        .taps = axis.w,
        .step = axis.stride,
        .first = -axis.pad_begin,
        .tap_step = axis.dilation};
  });
  return taps;
}

PerAxis<std::int64_t> SizesOf(const LoweredProblem& lowered, std::int64_t Axis::*size) {
  PerAxis<std::int64_t> sizes{};
  std::transform(lowered.axes.begin(), lowered.axes.end(), sizes.begin(), [size](const Axis& axis) {
    return axis.*size;
  });
  return sizes;
}

bool HasZero(const PerAxis<std::int64_t>& sizes) {
  return std::any_of(sizes.begin(), sizes.end(), [](std::int64_t size) { return size == 0; });
}

Grid ImageGrid(std::int64_t images, const PerAxis<std::int64_t>& sizes, const TensorSteps& steps) {
  return {
      .counts = {images, sizes[0], sizes[1], sizes[2]},
      .strides = {steps.outer, steps.spatial[0], steps.spatial[1], steps.spatial[2]}};
}

}  // namespace gradsmith::conv
