#include "conv/merged_axes.h"

#include <cstdint>

namespace gradsmith::conv {

namespace {

constexpr int kVolumes = 3;
/// Dims before the spatial ones.
constexpr int kBatchAndChannels = 2;

/// Whether y has along the axis what x has, and a filter takes nothing beside it.
bool IsIdle(const Axis& axis) {
  return axis.w == 1 && axis.stride == 1 && axis.pad_begin == 0 && axis.pad_end == 0;
}

/// Whether one index counts through a dim and the one of so many elements inside of it.
bool CountAsOne(const Strides& strides, int outer, int inner, std::int64_t elements) {
  return strides[outer] == strides[inner] * elements;
}

Strides Without(const Strides& strides, int dropped) {
  Strides left;
  for (int i = 0; i < strides.size(); ++i) {
    if (i != dropped) {
      left.push_back(strides[i]);
    }
  }
  return left;
}

bool MayMerge(const Problem& problem, int outer, int inner) {
  const std::int64_t elements = problem.axes.at(inner - kBatchAndChannels).x;
  return CountAsOne(problem.x_strides, outer, inner, elements) &&
         CountAsOne(problem.y_strides, outer, inner, elements);
}

/// Drops a dim of all three tensors, which another one counts for.
void DropAxis(int axis, Problem* problem) {
  for (Strides* strides : {&problem->x_strides, &problem->w_strides, &problem->y_strides}) {
    *strides = Without(*strides, kBatchAndChannels + axis);
  }
  for (int i = axis; i + 1 < problem->spatial_rank; ++i) {
    problem->axes.at(i) = problem->axes.at(i + 1);
  }
  problem->axes.at(--problem->spatial_rank) = Axis();
}

}  // namespace

Problem WithMergedAxes(const Problem& problem) {
  Problem merged = problem;
  if (problem.spatial_rank != kVolumes) {
    return merged;
  }
  for (int outer = 0; outer + 1 < kVolumes; ++outer) {
    const Axis& inner = problem.axes.at(outer + 1);
    if (IsIdle(problem.axes.at(outer)) && IsIdle(inner) &&
        MayMerge(problem, kBatchAndChannels + outer, kBatchAndChannels + outer + 1)) {
      const std::int64_t elements = problem.axes.at(outer).x * inner.x;
      merged.axes.at(outer + 1).x = merged.axes.at(outer + 1).y = elements;
      DropAxis(outer, &merged);
      return merged;
    }
  }
  if (IsIdle(problem.axes[0]) && MayMerge(problem, 0, kBatchAndChannels)) {
    merged.batch *= problem.axes[0].x;
    for (Strides* strides : {&merged.x_strides, &merged.y_strides}) {
      (*strides)[0] = (*strides)[kBatchAndChannels];
    }
    DropAxis(0, &merged);
  }
  return merged;
}

}  // namespace gradsmith::conv
