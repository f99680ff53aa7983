#include "conv/onednn/padding.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "conv/axis_taps.h"
#include "conv/grid_matrix.h"
#include "conv/lowering.h"
#include "conv/phases.h"

namespace gradsmith::conv {

namespace {

using Indices = std::vector<std::int64_t>;

/// Positions of y among whose taps is each that there is; none where no position reads x with one.
Indices PositionsOfAllTaps(const AxisTaps& axis) {
  Indices positions;
  for (std::int64_t tap = 0; tap < axis.taps;) {
    const Range reading = axis.PositionsInside(tap);
    if (reading.size() == 0) {
      return {};
    }
    positions.push_back(reading.begin);
    tap = axis.TapsInside(reading.begin).end;
  }
  return positions;
}

/// Taps among whose positions is each that there is; none where one reads x with no tap.
Indices TapsOfAllPositions(const AxisTaps& axis) {
  Indices taps;
  for (std::int64_t position = 0; position < axis.positions;) {
    const Range reading = axis.TapsInside(position);
    if (reading.size() == 0) {
      return {};
    }
    taps.push_back(reading.begin);
    position = axis.PositionsInside(reading.begin).end;
  }
  return taps;
}

bool IsRead(const AxisTaps& axis, std::int64_t source, std::int64_t tap) {
  const std::int64_t distance = source - axis.SourceOf(0, tap);
  return distance >= 0 && distance % axis.step == 0 && distance / axis.step < axis.positions;
}

/// Positions of x among whose taps is each that there is; none where none of them is read with one.
Indices SourcesOfAllTaps(const AxisTaps& axis) {
  Indices sources;
  for (std::int64_t tap = 0; tap < axis.taps; ++tap) {
    const Range reading = axis.PositionsInside(tap);
    if (reading.size() == 0) {
      return {};
    }
    const auto is_read = [&](std::int64_t source) { return IsRead(axis, source, tap); };
    if (std::ranges::none_of(sources, is_read)) {
      sources.push_back(axis.SourceOf((reading.begin + reading.end) / 2, tap));
    }
  }
  return sources;
}

/// What is not finite in a channel of the filter, or of y, shows in one of some elements of that
/// channel of the result, whether padding is multiplied or not. An axis has no such elements where
/// something meets padding alone.
struct Witnesses {
  const float* data = nullptr;
  std::int64_t channels = 0;
  std::int64_t channel_stride = 0;
  PerAxis<std::int64_t> strides{};
  PerAxis<Indices> indices;

  /// Whether there are witnesses, and all are finite.
  [[nodiscard]] bool AreFinite() const {
    if (std::ranges::any_of(indices, &Indices::empty)) {
      return false;
    }
    for (const std::int64_t first : indices[0]) {
      for (const std::int64_t second : indices[1]) {
        for (const std::int64_t third : indices[2]) {
          const std::int64_t offset =
              (first * strides[0]) + (second * strides[1]) + (third * strides[2]);
          if (!conv::AreFinite(data + offset, channel_stride, channels)) {
            return false;
          }
        }
      }
    }
    return true;
  }
};

Witnesses WitnessesOf(
    Primitive primitive,
    const Problem& problem,
    const LoweredProblem& lowered,
    const void* result) {
  PerAxis<Indices> indices;
  const auto choose = [&](Indices (*of_axis)(const AxisTaps&)) {
    std::ranges::transform(ForwardTaps(lowered), indices.begin(), of_axis);
  };
  const auto* data = static_cast<const float*>(result);
  switch (primitive) {
    case Primitive::kForward:
      choose(PositionsOfAllTaps);
      return {data, problem.y_channels, lowered.y.channel, lowered.y.spatial, indices};
    case Primitive::kBackwardData:
      choose(SourcesOfAllTaps);
      return {data, problem.x_channels, lowered.x.channel, lowered.x.spatial, indices};
    case Primitive::kBackwardFilter:
      break;
  }
  choose(TapsOfAllPositions);
  return {data, problem.y_channels, lowered.w.outer, lowered.w.spatial, indices};
}

/// Whether a kernel may multiply zeros that no operand holds: padding, and what a gradient's
/// patches meet beyond it or between its elements.
bool HasPadding(Primitive primitive, const LoweredProblem& lowered) {
  if (primitive != Primitive::kBackwardData) {
    return std::ranges::any_of(ForwardTaps(lowered), &AxisTaps::ReachesBeyond);
  }
  PhaseLists phases;
  std::ranges::transform(lowered.axes, phases.begin(), PhasesOf);
  const auto reaches_beyond = [](const Phase& phase) { return phase.taps.ReachesBeyond(); };
  return !CoverAll(phases, lowered) ||
         std::ranges::any_of(phases, [&](const std::vector<Phase>& of_axis) {
           return std::ranges::any_of(of_axis, reaches_beyond);
         });
}

/// Whether no infinity and no NaN is in what meets the padding.
bool IsMultiplierFinite(
    Primitive primitive,
    const Problem& problem,
    const LoweredProblem& lowered,
    const std::array<void*, kOperands>& operands) {
  const bool is_filter = primitive == Primitive::kBackwardFilter;
  const TensorSteps& steps = is_filter ? lowered.y : lowered.w;
  const Grid columns = is_filter
                           ? ImageGrid(problem.batch, SizesOf(lowered, &Axis::y), lowered.y)
                           : ImageGrid(
                                 problem.x_channels / problem.group, SizesOf(lowered, &Axis::w),
                                 {.outer = lowered.w.channel, .spatial = lowered.w.spatial});
  const GridMatrix<const float> multiplier(
      static_cast<const float*>(operands.at(is_filter ? kY : kW)),
      is_filter ? steps.channel : steps.outer, columns);
  return multiplier.AllFinite({0, problem.y_channels}, {0, columns.size()});
}

}  // namespace

bool MayHaveMultipliedPadding(
    Primitive primitive,
    const Problem& problem,
    const std::array<void*, kOperands>& operands) {
  const LoweredProblem lowered = Lower(problem);
  const void* result = operands.at(ResultOf(primitive));
  return !WitnessesOf(primitive, problem, lowered, result).AreFinite() &&
         HasPadding(primitive, lowered) &&
         !IsMultiplierFinite(primitive, problem, lowered, operands);
}

}  // namespace gradsmith::conv
