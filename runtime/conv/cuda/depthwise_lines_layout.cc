#include "conv/cuda/depthwise_lines_layout.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "conv/cuda/channels_last.h"
#include "conv/cuda/depthwise_configs.h"
#include "core/tiles.h"

namespace gradsmith::conv::depthwise_lines {

namespace {

using cuda::DivisorOf;
using internal::CeilDivide;

/// Columns and rows are computed from sums of a few such numbers.
constexpr std::int64_t kMost = std::numeric_limits<int>::max() / 8;

bool FitsInt(const Axis& axis) {
  constexpr std::int64_t kMostDilation = 1 << 22;  // times the few positions more than there are
  return axis.x <= kMost && axis.y * axis.stride <= kMost && axis.w * axis.dilation <= kMost &&
         axis.dilation <= kMostDilation && std::abs(axis.pad_begin) <= kMost;
}

bool IsData(const Task& task) {
  return task.primitive == Primitive::kBackwardData;
}

/// The remainder that is not negative.
int Modulo(std::int64_t number, std::int64_t by) {
  return static_cast<int>(((number % by) + by) % by);
}

}  // namespace

Axis AxisOf(const Problem& problem, SpatialAxis axis) {
  const int missing = 3 - problem.spatial_rank;
  Axis found = axis < missing ? Axis() : problem.axes.at(axis - missing);
  found.dilation = found.w > 1 ? found.dilation : 1;
  return found;
}

bool MakesLines(const Task& task) {
  const Problem& problem = task.problem;
  bool fits = problem.spatial_rank <= 3 && problem.group == problem.x_channels &&
              problem.group == problem.y_channels && IsContiguous(problem, kW) &&
              problem.batch <= kMost && problem.group <= kMost;
  for (const Operand operand : {kX, kY}) {
    fits = fits && NumElements(DimsOf(problem, operand)) > 0 &&
           depthwise::HasDenseRows(problem, operand);
  }
  const Axis depths = AxisOf(problem, kDepths);
  const Axis rows = AxisOf(problem, kRows);
  const Axis columns = AxisOf(problem, kColumns);
  // Phases of both steps and dilation would be many.
  return fits && FitsInt(depths) && FitsInt(rows) && FitsInt(columns) &&
         rows.w * columns.w <= kMost / depths.w && (columns.stride == 1 || columns.dilation == 1) &&
         (rows.stride == 1 || rows.dilation == 1 || !IsData(task));
}

Planes PlanesOf(const Task& task, Operand operand) {
  const Dims dims = DimsOf(task.problem, operand);
  const Strides& strides = StridesOf(task.problem, operand);
  const auto size = static_cast<int>(SizeOf(task.problem.type));
  const int last = dims.size() - 1;
  std::int64_t all = (task.alignment.at(operand) / size) | dims[last];
  for (int i = 0; i < last; ++i) {
    all |= dims[i] > 1 ? strides[i] : 0;
  }
  const bool has_depths = last == 4;
  const bool has_rows = last >= 3;
  return {
      .batch_stride = strides[0],
      .channel_stride = strides[1],
      .depth_stride = has_depths ? strides[2] : 0,
      .row_stride = has_rows ? strides[last - 1] : 0,
      .depth = has_depths ? static_cast<int>(dims[2]) : 1,
      .height = has_rows ? static_cast<int>(dims[last - 1]) : 1,
      .width = static_cast<int>(dims[last]),
      .piece = static_cast<int>(std::min<std::int64_t>(all & -all, kVectorBytes / size))};
}

Runs RunsOf(const Task& task, bool is_long) {
  const bool is_double = task.problem.type == DataType::kDouble;
  const auto of_vector =
      static_cast<int>(kVectorBytes / (is_double ? sizeof(double) : sizeof(float)));
  const int vectors = is_long ? kLongRun : kShortRun;
  return {of_vector, vectors * of_vector, vectors + 1};
}

bool PrefersLong(const Task& task, std::int64_t elements) {
  constexpr double kWorth = 1.3;
  const auto room = [&](bool is_long) {
    const int length = RunsOf(task, is_long).length;
    return static_cast<double>(CeilDivide(elements, length) * length);
  };
  return room(true) < kWorth * room(false);
}

Columns ColumnsOf(const Task& task, int piece) {
  const Axis axis = AxisOf(task.problem, kColumns);
  const bool is_data = IsData(task);
  const bool has_steps = axis.stride > 1;
  const auto step = static_cast<int>(axis.stride);
  const auto dilation = static_cast<int>(axis.dilation);
  Columns columns{};
  columns.from_step = has_steps && is_data ? 1 : step * dilation;
  columns.to_step = has_steps && !is_data ? 1 : step * dilation;
  columns.taps = {
      .rows = DivisorOf(AxisOf(task.problem, kRows).w),
      .columns = DivisorOf(axis.w),
      .phases = DivisorOf(step),
      .most = static_cast<int>(CeilDivide(axis.w, step)),
      .shift = 0,
      .reversed = is_data};
  if (is_data) {
    // x[p] meets y[(p + pad - tap) / step]: tiles begin where p + pad is a multiple of the step.
    columns.to = -Modulo(axis.pad_begin, step);
    columns.from = static_cast<int>(
        ((columns.to + axis.pad_begin) / step) - ((columns.taps.most - 1) * axis.dilation));
  } else {
    columns.from = static_cast<int>(-axis.pad_begin);
  }
  if (columns.from_step == 1) {
    columns.taps.shift = Modulo(columns.from, piece);
    columns.from -= columns.taps.shift;
  }
  return columns;
}

int FirstRowOf(const Task& task) {
  const Axis axis = AxisOf(task.problem, kRows);
  return IsData(task) ? -Modulo(axis.pad_begin, axis.stride) : 0;
}

Rows RowsOf(const Task& task) {
  const Axis axis = AxisOf(task.problem, kRows);
  const bool is_data = IsData(task);
  const std::int64_t first =
      is_data ? (FirstRowOf(task) + axis.pad_begin) / axis.stride : -axis.pad_begin;
  return {
      .step = DivisorOf(axis.stride),
      .first = static_cast<int>(first),
      .dilation = static_cast<int>(axis.dilation),
      .is_data = is_data};
}

Depths DepthsOf(const Task& task) {
  const Axis axis = AxisOf(task.problem, kDepths);
  return {
      .step = DivisorOf(axis.stride),
      .taps = static_cast<int>(axis.w),
      .pad = static_cast<int>(axis.pad_begin),
      .dilation = static_cast<int>(axis.dilation),
      .is_data = IsData(task)};
}

int PaddedTo(const Runs& runs, std::int64_t elements, int residue) {
  constexpr int kVectorsOfBanks = 8;
  const auto vectors = static_cast<int>(CeilDivide(elements, runs.of_vector));
  return (vectors + Modulo(residue - vectors, kVectorsOfBanks)) * runs.of_vector;
}

std::int64_t PitchOf(const Runs& runs, std::int64_t positions) {
  const std::int64_t gaps = (positions - 1) / runs.length;
  return CeilDivide(positions + (gaps * runs.of_vector), runs.of_vector) * runs.of_vector;
}

void SetLanes(const Task& task, int threads, Lines* lines) {
  constexpr int kAtOnce = 4;
  constexpr int kSectorBytes = 32;
  const bool has_phases = lines->phase_step > 1;
  const int piece = has_phases ? 1 : lines->planes.piece;
  const auto size = static_cast<int>(SizeOf(task.problem.type));
  const std::int64_t pieces =
      CeilDivide(std::int64_t{lines->positions} * lines->phases.divisor, piece);
  const std::int64_t wanted =
      std::max<std::int64_t>(CeilDivide(pieces, kAtOnce), kSectorBytes / (piece * size));
  const std::int64_t lanes = std::min({wanted, pieces, std::int64_t{threads}});
  lines->lanes = DivisorOf(lanes);
  lines->rows_at_once = static_cast<int>(threads / lanes);
}

}  // namespace gradsmith::conv::depthwise_lines
