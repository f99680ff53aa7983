#include "conv/cuda/depthwise_lines.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "conv/cuda/correlate_plan.h"
#include "conv/cuda/depthwise_lines_filter.h"
#include "conv/cuda/depthwise_lines_layout.h"
#include "conv/cuda/filter_slices.h"
#include "core/tiles.h"
#include "cuda/kernel_images.h"
#include "cuda/kernel_table.h"

namespace gradsmith::conv {

namespace {

using cuda::DivisorOf;
using depthwise_lines::Arguments;
using depthwise_lines::Columns;
using depthwise_lines::EvenPart;
using depthwise_lines::FilterArguments;
using depthwise_lines::kThreads;
using depthwise_lines::Lines;
using depthwise_lines::Planes;
using depthwise_lines::Runs;
using internal::CeilDivide;

constexpr int kWarp = 32;
constexpr std::int64_t kMostBlocks = std::numeric_limits<int>::max() / 2;

/// What a block computes of forward or backward data.
struct BlockShape {
  std::int64_t images = 1;
  std::int64_t channels = 1;
  std::int64_t rows = 1;
  std::int64_t phases = 1;
  std::int64_t runs = 1;

  [[nodiscard]] std::int64_t threads() const { return images * channels * rows * phases * runs; }
};

/// What there is to compute of each plane, and how.
struct Job {
  const Task& task;
  Runs runs;
  Columns columns;
  Planes from;
  Planes to;
  std::int64_t tap_rows;
  std::int64_t tap_depths;
  /// Rows of the result, of which `row_step` are computed together; runs of a phase, and phases.
  std::int64_t rows;
  std::int64_t row_step;
  std::int64_t runs_of_line;
  std::int64_t phases;
};

Job JobOf(const Task& task) {
  const bool is_data = task.primitive == Primitive::kBackwardData;
  const Planes from = depthwise_lines::PlanesOf(task, is_data ? kY : kX);
  const Planes to = depthwise_lines::PlanesOf(task, is_data ? kX : kY);
  const Columns columns = depthwise_lines::ColumnsOf(task, from.piece);
  const std::int64_t line = CeilDivide(to.width - columns.to, columns.to_step);
  const Runs runs = depthwise_lines::RunsOf(task, depthwise_lines::PrefersLong(task, line));
  const Axis rows = depthwise_lines::AxisOf(task.problem, depthwise_lines::kRows);
  return {
      .task = task,
      .runs = runs,
      .columns = columns,
      .from = from,
      .to = to,
      .tap_rows = rows.w,
      .tap_depths = depthwise_lines::AxisOf(task.problem, depthwise_lines::kDepths).w,
      .rows = to.height - depthwise_lines::FirstRowOf(task),
      .row_step = is_data ? rows.stride : 1,
      .runs_of_line = CeilDivide(line, runs.length),
      .phases = columns.to_step};
}

/// The rows of `from` that so many rows of the result meet, at most all of them.
std::int64_t RowsRead(const Job& job, std::int64_t rows) {
  const Axis axis = depthwise_lines::AxisOf(job.task.problem, depthwise_lines::kRows);
  const bool is_data = job.task.primitive == Primitive::kBackwardData;
  const std::int64_t read =
      is_data
          ? CeilDivide(rows, axis.stride) + ((CeilDivide(axis.w, axis.stride) - 1) * axis.dilation)
          : ((rows - 1) * axis.stride) + ((axis.w - 1) * axis.dilation) + 1;
  return std::min<std::int64_t>(read, job.from.height);
}

/// Sets the lines of a block and where they are in shared memory; the bytes that these take.
std::int64_t SetLines(const Job& job, const BlockShape& shape, Arguments* arguments) {
  constexpr std::int64_t kMostElements = 1 << 20;
  const Runs& runs = job.runs;
  const Columns& columns = job.columns;
  const std::int64_t tap_phases = columns.taps.phases.divisor;
  const std::int64_t most_taps = columns.taps.most + columns.taps.shift;
  const std::int64_t positions =
      (shape.runs * runs.length) +
      static_cast<std::int64_t>(internal::RoundUp(most_taps, depthwise_lines::kVectorBytes));
  const std::int64_t from_phases = tap_phases == 1 ? shape.phases : columns.from_step;
  const std::int64_t rows_read = RowsRead(job, shape.rows);
  const std::int64_t planes = shape.images * shape.channels;
  const std::int64_t filter_rows = job.tap_rows * job.tap_depths;
  if (rows_read * planes > kMostElements / from_phases / positions ||
      filter_rows * shape.channels > kMostElements / tap_phases / most_taps) {
    return std::numeric_limits<std::int64_t>::max();
  }
  // Threads side by side go through runs, phases and rows as if all were one line.
  const auto of_line = static_cast<int>(shape.runs * runs.vectors);
  const auto of_row = static_cast<int>(of_line * shape.phases);
  const auto of_plane = static_cast<int>(of_row * shape.rows);
  Lines& from = arguments->from;
  from.planes = job.from;
  from.rows = DivisorOf(rows_read);
  from.phases = DivisorOf(from_phases);
  from.positions = static_cast<int>(positions);
  from.phase_step = columns.from_step;
  from.phase_pitch =
      depthwise_lines::PaddedTo(runs, depthwise_lines::PitchOf(runs, positions), of_line);
  from.row_pitch = depthwise_lines::PaddedTo(runs, from.phase_pitch * from_phases, of_row);
  from.plane_pitch = depthwise_lines::PaddedTo(runs, from.row_pitch * rows_read, of_plane);
  Lines& to = arguments->to;
  to.planes = job.to;
  to.rows = DivisorOf(shape.rows);
  to.phases = DivisorOf(shape.phases);
  to.positions = static_cast<int>(shape.runs * runs.length);
  to.phase_step = columns.to_step;
  to.phase_pitch = of_line * runs.of_vector;
  to.row_pitch = of_row * runs.of_vector;
  to.plane_pitch = of_plane * runs.of_vector;
  arguments->tap_phase_pitch = static_cast<int>(depthwise_lines::PitchOf(runs, most_taps));
  arguments->tap_row_pitch = arguments->tap_phase_pitch * static_cast<int>(tap_phases);
  arguments->tap_plane_pitch = arguments->tap_row_pitch * static_cast<int>(job.tap_rows);
  arguments->filter_pitch =
      depthwise_lines::PaddedTo(runs, arguments->tap_row_pitch * filter_rows, 1);
  arguments->from_begin = static_cast<int>(arguments->filter_pitch * shape.channels);
  const std::int64_t elements =
      std::max(arguments->from_begin + (planes * from.plane_pitch), planes * to.plane_pitch);
  return elements * (depthwise_lines::kVectorBytes / runs.of_vector);
}

/// Threads of a block at most: few where there is little to compute, so that all of a GPU does.
std::int64_t MostThreads(const Job& job) {
  const Problem& problem = job.task.problem;
  const std::int64_t all =
      job.rows * job.phases * job.runs_of_line * job.to.depth * problem.batch * problem.x_channels;
  constexpr std::int64_t kFewest = 64;
  std::int64_t most = kThreads;
  while (most > kFewest && all < most * 4 * kMultiprocessorsOfSlices) {
    most /= 2;
  }
  return most;
}

/// LargestPart is as much of a plane as a block has threads for.
BlockShape LargestPart(const Job& job, std::int64_t most) {
  constexpr std::int64_t kFewestPhases = 8;  // neighbours in memory
  BlockShape shape;
  const std::int64_t of_rows = most / job.row_step;
  const bool is_by_steps = job.columns.taps.phases.divisor > 1;
  shape.phases = is_by_steps ? job.phases
                             : EvenPart(
                                   job.phases, std::max(
                                                   of_rows / job.runs_of_line,
                                                   std::min({kFewestPhases, job.phases, of_rows})));
  shape.runs = EvenPart(job.runs_of_line, of_rows / shape.phases);
  const std::int64_t units = CeilDivide(job.rows, job.row_step);
  shape.rows = EvenPart(units, most / (job.row_step * shape.phases * shape.runs)) * job.row_step;
  return shape;
}

/// Makes a part smaller; false where it cannot be.
bool Shrink(const Job& job, BlockShape* shape) {
  const bool is_by_steps = job.columns.taps.phases.divisor > 1;
  if (shape->rows > job.row_step) {
    const std::int64_t units = shape->rows / job.row_step;
    shape->rows =
        EvenPart(CeilDivide(job.rows, job.row_step), units - CeilDivide(units, 8)) * job.row_step;
  } else if (shape->runs > 1) {
    shape->runs = EvenPart(job.runs_of_line, shape->runs / 2);
  } else if (shape->phases > 1 && !is_by_steps) {
    shape->phases = EvenPart(job.phases, shape->phases / 2);
  } else {
    return false;
  }
  return true;
}

/// What a plane costs, about in instructions of a thread: to multiply, also for threads that have
/// nothing to do, and to copy.
double CostOfPlane(const Job& job, const BlockShape& shape, const Arguments& arguments) {
  constexpr double kOfCopy = 6;
  const std::int64_t threads = CeilDivide(shape.threads(), kWarp) * kWarp;
  const std::int64_t taps = job.tap_rows * job.columns.taps.columns.divisor;
  const double copied = static_cast<double>(arguments.from.rows.divisor) *
                        arguments.from.phases.divisor * arguments.from.positions;
  return static_cast<double>(CeilDivide(job.rows, shape.rows)) *
         (static_cast<double>(threads * taps * job.runs.length) + (kOfCopy * copied));
}

/// Fewer rows where that costs less: fewer threads may be idle.
void ImproveRows(const Job& job, BlockShape* shape, Arguments* arguments) {
  constexpr std::int64_t kTries = 12;
  const std::int64_t units = CeilDivide(job.rows, job.row_step);
  const std::int64_t tiles = CeilDivide(job.rows, shape->rows);
  double least = CostOfPlane(job, *shape, *arguments);
  BlockShape tried = *shape;
  for (std::int64_t i = tiles + 1; i <= std::min(units, tiles + kTries); ++i) {
    tried.rows = CeilDivide(units, i) * job.row_step;
    SetLines(job, tried, arguments);
    if (const double cost = CostOfPlane(job, tried, *arguments); cost < least) {
      least = cost;
      *shape = tried;
    }
  }
}

/// As many whole planes as leave the fewest threads idle: of channels, which are neighbours in
/// memory, or of images where filters are larger than planes.
void AddPlanes(const Job& job, std::int64_t most, BlockShape* shape, Arguments* arguments) {
  constexpr double kWorth = 1.02;
  const Problem& problem = job.task.problem;
  const std::int64_t taps = job.tap_rows * job.columns.taps.columns.divisor;
  const bool of_images =
      problem.batch > 1 && 2 * taps > std::int64_t{job.from.height} * job.from.width;
  const std::int64_t planes = of_images ? problem.batch : problem.x_channels;
  const std::int64_t of_plane = shape->threads();
  double best = 0;
  BlockShape tried = *shape;
  for (std::int64_t i = 1; i <= std::min(planes, most / of_plane); ++i) {
    (of_images ? tried.images : tried.channels) = EvenPart(planes, i);
    if (SetLines(job, tried, arguments) > depthwise_lines::kMostSharedBytes) {
      break;
    }
    const std::int64_t blocks = CeilDivide(planes, i);
    const std::int64_t threads = CeilDivide(tried.threads(), kWarp) * kWarp;
    const double used =
        static_cast<double>(planes * of_plane) / static_cast<double>(blocks * threads);
    if (used > best * kWorth) {
      best = used;
      *shape = tried;
    }
  }
}

/// The shape of blocks; nothing where not even the smallest has room.
std::optional<BlockShape> ShapeOf(const Job& job, Arguments* arguments) {
  const std::int64_t most = MostThreads(job);
  if (job.columns.taps.phases.divisor * job.row_step > most) {
    return std::nullopt;
  }
  BlockShape shape = LargestPart(job, most);
  while (SetLines(job, shape, arguments) > depthwise_lines::kMostSharedBytes) {
    if (!Shrink(job, &shape)) {
      return std::nullopt;
    }
  }
  ImproveRows(job, &shape, arguments);
  if (shape.rows >= job.rows && shape.phases == job.phases && shape.runs == job.runs_of_line) {
    AddPlanes(job, most, &shape, arguments);
  }
  return shape;
}

std::optional<DepthwiseLines> PlanResult(const Task& task) {
  const Problem& problem = task.problem;
  const Job job = JobOf(task);
  DepthwiseLines lines;
  Arguments& arguments = lines.arguments;
  const std::optional<BlockShape> shape = ShapeOf(job, &arguments);
  if (!shape) {
    return std::nullopt;
  }
  lines.is_long = job.runs.vectors > depthwise_lines::kLongRun;
  lines.shared_bytes = static_cast<int>(SetLines(job, *shape, &arguments));
  lines.threads = static_cast<int>(CeilDivide(shape->threads(), kWarp) * kWarp);
  depthwise_lines::SetLanes(task, lines.threads, &arguments.from);
  depthwise_lines::SetLanes(task, lines.threads, &arguments.to);
  arguments.taps = job.columns.taps;
  arguments.rows = depthwise_lines::RowsOf(task);
  arguments.depths = depthwise_lines::DepthsOf(task);
  arguments.filter_rows = DivisorOf(job.tap_rows * job.tap_depths);
  arguments.from_column = job.columns.from;
  arguments.to_column = job.columns.to;
  arguments.to_row = depthwise_lines::FirstRowOf(task);
  arguments.runs = DivisorOf(shape->runs);
  arguments.images_of_block = static_cast<int>(shape->images);
  arguments.channels_of_block = static_cast<int>(shape->channels);
  arguments.batch = static_cast<int>(problem.batch);
  arguments.channels = static_cast<int>(problem.x_channels);
  std::int64_t blocks = CeilDivide(problem.batch, shape->images);
  const auto tiles = [&](std::int64_t whole, std::int64_t part) {
    const std::int64_t count = CeilDivide(whole, part);
    blocks = blocks > kMostBlocks / count ? kMostBlocks + 1 : blocks * count;
    return DivisorOf(count);
  };
  arguments.channel_tiles = tiles(problem.x_channels, shape->channels);
  arguments.depth_tiles = tiles(job.to.depth, 1);
  arguments.row_tiles = tiles(job.rows, shape->rows);
  arguments.run_tiles = tiles(job.runs_of_line, shape->runs);
  arguments.phase_tiles = tiles(job.phases, shape->phases);
  lines.blocks = blocks;
  return blocks <= kMostBlocks ? std::optional(lines) : std::nullopt;
}

Result<CUkernel> FindKernel(const Task& task, const DepthwiseLines& lines) {
  static auto& data_table = *new cuda::KernelTable<2>(cuda::kImage_conv_depthwise_lines);
  static auto& filter_table = *new cuda::KernelTable<2>(cuda::kImage_conv_depthwise_lines_filter);
  const int index = lines.is_long ? 1 : 0;
  const std::string name = lines.is_long ? "long" : "short";
  const std::string prefix = "gradsmith_depthwise_lines_";
  return IsFilter(task) ? filter_table.Find(index, prefix + "filter_" + name, task.problem.type)
                        : data_table.Find(index, prefix + name, task.problem.type);
}

}  // namespace

std::optional<DepthwiseLines> PlanDepthwiseLines(const Task& task) {
  if (!depthwise_lines::MakesLines(task)) {
    return std::nullopt;
  }
  return IsFilter(task) ? depthwise_lines::PlanFilter(task) : PlanResult(task);
}

Result<std::unique_ptr<internal::Plan>> MakeDepthwiseLinesPlan(
    const Task& task,
    const DepthwiseLines& lines) {
  const Result<CUkernel> kernel = FindKernel(task, lines);
  if (!kernel.ok()) {
    return kernel.status();
  }
  const cuda::LaunchShape shape = {
      .blocks_x = static_cast<unsigned>(lines.blocks),
      .threads = static_cast<unsigned>(lines.threads),
      .shared_bytes = static_cast<unsigned>(lines.shared_bytes)};
  if (!IsFilter(task)) {
    return std::unique_ptr<internal::Plan>(
        std::make_unique<CorrelatePlan<Arguments>>(task, lines.arguments, shape, *kernel));
  }
  const FilterSlices<FilterArguments> slices = {
      *kernel, shape, lines.filter_arguments, lines.slices};
  if (task.problem.type == DataType::kDouble) {
    return std::unique_ptr<internal::Plan>(
        std::make_unique<depthwise_lines::FilterPlan>(task, slices, lines.workspace));
  }
  return std::unique_ptr<internal::Plan>(
      std::make_unique<FilterAndSumsPlan<FilterArguments>>(task, slices, lines.workspace));
}

}  // namespace gradsmith::conv
