#ifndef GRADSMITH_CONV_AXIS_TAPS_H_
#define GRADSMITH_CONV_AXIS_TAPS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "conv/problem.h"
#include "core/tiles.h"

namespace gradsmith::conv {

template <typename Value>
using PerAxis = std::array<Value, kMaxSpatialRank>;

/// InsidePart returns which of `count` steps from `start` (start, start + step, ...) lie in [0,
/// size).
inline internal::Range
InsidePart(std::int64_t start, std::int64_t step, std::int64_t count, std::int64_t size) {
  // With a step of 1, which most have, there is nothing to divide.
  const auto steps_to = [step](std::int64_t distance) {
    return step == 1 ? distance : internal::CeilDivide(distance, step);
  };
  const std::int64_t begin = start < 0 ? std::min(count, steps_to(-start)) : 0;
  const std::int64_t end = start < size ? std::min(count, steps_to(size - start)) : 0;
  return begin < end ? internal::Range{begin, end} : internal::Range{};
}

/// AxisPart is some positions of a result along one axis, and some of the taps.
struct AxisPart {
  internal::Range positions;
  internal::Range taps;
};

/// AxisTaps says which source positions a position of the result reads along one axis: position p
/// reads, with tap t, source[p * step + first + t * tap_step], or zero where there is none.
struct AxisTaps {
  std::int64_t positions = 1;
  std::int64_t source = 1;
  std::int64_t taps = 1;
  std::int64_t step = 1;
  std::int64_t first = 0;
  std::int64_t tap_step = 0;

  [[nodiscard]] std::int64_t SourceOf(std::int64_t position, std::int64_t tap) const {
    return (position * step) + first + (tap * tap_step);
  }
  [[nodiscard]] bool IsInside(std::int64_t position, std::int64_t tap) const {
    const std::int64_t index = SourceOf(position, tap);
    return index >= 0 && index < source;
  }
  /// Whether position p just reads source[p].
  [[nodiscard]] bool IsIdentity() const {
    return taps == 1 && first == 0 && (step == 1 || positions == 1) && positions <= source;
  }
  /// Whether some tap of some position reads where there is no source.
  [[nodiscard]] bool ReachesBeyond() const {
    return !IsInside(0, 0) || !IsInside(0, taps - 1) || !IsInside(positions - 1, 0) ||
           !IsInside(positions - 1, taps - 1);
  }

  /// TapsInside returns the taps with which a position reads the source.
  [[nodiscard]] internal::Range TapsInside(std::int64_t position) const {
    const std::int64_t start = SourceOf(position, 0);
    // Counting down from the start is counting up from the end.
    return tap_step < 0 ? InsidePart(source - 1 - start, -tap_step, taps, source)
                        : InsidePart(start, tap_step, taps, source);
  }
  /// PositionsInside returns the positions that read the source with a tap.
  [[nodiscard]] internal::Range PositionsInside(std::int64_t tap) const {
    return InsidePart(SourceOf(0, tap), step, positions, source);
  }

  [[nodiscard]] AxisTaps Part(const AxisPart& part) const {
    AxisTaps result = *this;
    result.positions = part.positions.size();
    result.taps = part.taps.size();
    result.first = SourceOf(part.positions.begin, part.taps.begin);
    return result;
  }
};

/// PartsByPosition cuts the positions into stretches that read the source with the same taps. No
/// part reaches beyond the source; its taps may be none.
inline std::vector<AxisPart> PartsByPosition(const AxisTaps& axis) {
  std::vector<AxisPart> parts;
  for (std::int64_t position = 0; position < axis.positions; ++position) {
    const internal::Range taps = axis.TapsInside(position);
    if (parts.empty() || !(parts.back().taps == taps)) {
      parts.push_back({{position, position}, taps});
    }
    parts.back().positions.end = position + 1;
  }
  return parts;
}

/// PartsByTap returns each tap with the positions that read the source with it, which may be none.
inline std::vector<AxisPart> PartsByTap(const AxisTaps& axis) {
  std::vector<AxisPart> parts;
  parts.reserve(static_cast<std::size_t>(axis.taps));
  for (std::int64_t tap = 0; tap < axis.taps; ++tap) {
    parts.push_back({axis.PositionsInside(tap), {tap, tap + 1}});
  }
  return parts;
}

/// ForEachPart calls visit(PerAxis<AxisPart>) for every combination of parts of the axes.
template <typename PartsOf, typename Visit>
void ForEachPart(const PerAxis<AxisTaps>& axes, const PartsOf& parts_of, const Visit& visit) {
  for (const AxisPart& first : parts_of(axes[0])) {
    for (const AxisPart& second : parts_of(axes[1])) {
      for (const AxisPart& third : parts_of(axes[2])) {
        visit(PerAxis<AxisPart>{first, second, third});
      }
    }
  }
}

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_AXIS_TAPS_H_
