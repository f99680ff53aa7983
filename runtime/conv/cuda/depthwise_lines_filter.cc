#include "conv/cuda/depthwise_lines_filter.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "conv/cuda/depthwise_lines_layout.h"
#include "core/tiles.h"

namespace gradsmith::conv::depthwise_lines {

namespace {

using cuda::DivisorOf;
using internal::CeilDivide;

constexpr int kWarp = 32;
constexpr std::int64_t kMostNumber = std::numeric_limits<int>::max() / 2;

/// What there is to sum of each channel, and how.
struct Job {
  const Task& task;
  Runs runs{};
  Columns columns{};
  Planes x{};
  Planes y{};
  Axis rows;
  std::int64_t tap_depths = 0;
  /// Runs of taps of a line, and of all lines of a row of taps.
  std::int64_t tap_runs = 0;
  std::int64_t row_items = 0;
  /// Runs of a line of dY, and its lines in a row.
  std::int64_t runs_of_line = 0;
  std::int64_t phases = 0;
};

/// x, by pieces that do not make another run of taps necessary.
Job JobOf(const Task& task) {
  const Planes y = PlanesOf(task, kY);
  Planes x = PlanesOf(task, kX);
  Columns columns = ColumnsOf(task, 1);
  const Runs runs = RunsOf(task, PrefersLong(task, columns.taps.most));
  const std::int64_t tap_runs = CeilDivide(columns.taps.most, runs.length);
  for (; x.piece > 1; x.piece /= 2) {
    columns = ColumnsOf(task, x.piece);
    if (CeilDivide(columns.taps.most + columns.taps.shift, runs.length) == tap_runs) {
      break;
    }
  }
  columns = ColumnsOf(task, x.piece);
  return {
      .task = task,
      .runs = runs,
      .columns = columns,
      .x = x,
      .y = y,
      .rows = AxisOf(task.problem, kRows),
      .tap_depths = AxisOf(task.problem, kDepths).w,
      .tap_runs = tap_runs,
      .row_items = tap_runs * columns.taps.phases.divisor,
      .runs_of_line = CeilDivide(CeilDivide(y.width, columns.to_step), runs.length),
      .phases = columns.to_step};
}

/// What a block sums: some rows of taps, over tiles of dY.
struct TileShape {
  std::int64_t tap_depths = 1;
  std::int64_t tap_rows = 1;
  std::int64_t images = 1;
  std::int64_t rows = 1;
  std::int64_t phases = 1;
  std::int64_t segments = 1;
  /// Runs of a segment.
  std::int64_t segment = 1;
  std::int64_t groups = 1;

  [[nodiscard]] std::int64_t lines() const { return images * rows * phases; }
};

/// Runs of all lines of a block's taps.
std::int64_t ItemsOf(const Job& job, const TileShape& shape) {
  return shape.tap_depths * shape.tap_rows * job.row_items;
}

std::int64_t ThreadsOf(const Job& job, const TileShape& shape) {
  return CeilDivide(ItemsOf(job, shape) * shape.segments * shape.groups, kWarp) * kWarp;
}

/// The rows of x that a tile of dY meets, at most all of them.
std::int64_t RowsRead(const Job& job, const TileShape& shape) {
  const std::int64_t read =
      ((shape.rows - 1) * job.rows.stride) + ((shape.tap_rows - 1) * job.rows.dilation) + 1;
  return std::min<std::int64_t>(read, job.x.height);
}

/// Sets the lines of a tile and where they are in shared memory; the bytes that these take.
std::int64_t SetLines(const Job& job, const TileShape& shape, FilterArguments* arguments) {
  constexpr std::int64_t kMostElements = 1 << 20;
  const Runs& runs = job.runs;
  const std::int64_t y_positions = shape.segments * shape.segment * runs.length;
  const std::int64_t x_positions = y_positions + (job.tap_runs * runs.length);
  const std::int64_t tap_phases = job.columns.taps.phases.divisor;
  const std::int64_t x_phases = tap_phases == 1 ? shape.phases : job.columns.from_step;
  const std::int64_t rows_read = RowsRead(job, shape);
  if (rows_read * shape.images > kMostElements / shape.tap_depths / x_phases / x_positions ||
      shape.rows * shape.images > kMostElements / shape.phases / y_positions) {
    return std::numeric_limits<std::int64_t>::max();
  }
  // Threads side by side go through runs of taps and rows of them as if all were one line.
  const auto of_line = static_cast<int>(job.tap_runs * runs.vectors);
  Lines& x = arguments->x;
  x.planes = job.x;
  x.rows = DivisorOf(rows_read);
  x.phases = DivisorOf(x_phases);
  x.positions = static_cast<int>(x_positions);
  x.phase_step = job.columns.from_step;
  x.phase_pitch = PaddedTo(runs, PitchOf(runs, x_positions), of_line);
  x.row_pitch = PaddedTo(runs, x.phase_pitch * x_phases, of_line * static_cast<int>(tap_phases));
  x.plane_pitch = static_cast<int>(x.row_pitch * rows_read);
  Lines& y = arguments->y;
  y.planes = job.y;
  y.rows = DivisorOf(shape.rows);
  y.phases = DivisorOf(shape.phases);
  y.positions = static_cast<int>(y_positions);
  y.phase_step = job.columns.to_step;
  y.phase_pitch = PaddedTo(runs, PitchOf(runs, y_positions), 1);
  y.row_pitch = static_cast<int>(y.phase_pitch * shape.phases);
  y.plane_pitch = static_cast<int>(y.row_pitch * shape.rows);
  arguments->x_pitch = static_cast<int>(x.plane_pitch * shape.images);
  if (shape.tap_depths > 1) {
    arguments->x_pitch =
        PaddedTo(runs, arguments->x_pitch, of_line * static_cast<int>(tap_phases * shape.tap_rows));
  }
  arguments->y_begin = arguments->x_pitch * static_cast<int>(shape.tap_depths);
  const std::int64_t sums = ThreadsOf(job, shape) * runs.vectors * runs.of_vector;
  const std::int64_t elements = std::max(arguments->y_begin + (y.plane_pitch * shape.images), sums);
  return elements * (kVectorBytes / runs.of_vector);
}

/// How many runs of dY's lines a thread's segment has: so many that threads side by side read
/// other banks, and that what begins a segment is little.
std::int64_t SegmentOf(const Job& job, std::int64_t items) {
  constexpr std::int64_t kWhole = 4;
  constexpr std::int64_t kBanks = 8;
  constexpr std::int64_t kMostOfOne = 16;
  if (job.runs_of_line <= kWhole || 2 * items > kThreads) {
    return std::min(job.runs_of_line, kMostOfOne);
  }
  return items == 1 ? 3 : std::min(items < kBanks ? items : kWhole, job.runs_of_line);
}

/// SetGroups sets as many groups as there are threads for, but none that has less to do than
/// others.
void SetGroups(const Job& job, TileShape* shape) {
  const std::int64_t items = ItemsOf(job, *shape) * shape->segments;
  const std::int64_t most = std::max<std::int64_t>(kThreads / items, 1);
  shape->groups = CeilDivide(shape->lines(), CeilDivide(shape->lines(), most));
}

/// The largest tile that a block of so many planes of taps has threads for.
TileShape LargestTile(const Job& job, std::int64_t tap_depths) {
  constexpr std::int64_t kFewestPhases = 32;  // neighbours in memory
  constexpr std::int64_t kLinesOfThread = 2;
  TileShape shape;
  shape.tap_depths = tap_depths;
  shape.tap_rows = EvenPart(job.rows.w, kThreads / job.row_items / tap_depths);
  const std::int64_t items = ItemsOf(job, shape);
  shape.segment = SegmentOf(job, items);
  const std::int64_t segments = CeilDivide(job.runs_of_line, shape.segment);
  shape.segments = EvenPart(segments, kThreads / items);
  const std::int64_t groups = std::max<std::int64_t>(kThreads / items / shape.segments, 1);
  shape.phases = EvenPart(job.phases, std::max(kFewestPhases, groups));
  shape.rows = job.y.height;
  if (shape.segments == segments && shape.phases == job.phases) {
    shape.images = std::clamp<std::int64_t>(
        groups * kLinesOfThread / shape.lines(), 1, job.task.problem.batch);
  }
  return shape;
}

/// Makes a tile smaller; false where it cannot be.
bool Shrink(const Job& job, TileShape* shape) {
  if (shape->images > 1) {
    // All groups have the same number of lines where these are images.
    const std::int64_t fewer =
        std::max<std::int64_t>(shape->groups / (shape->rows * shape->phases), 1);
    shape->images = std::max<std::int64_t>(shape->images - fewer, 1);
  } else if (shape->rows > 1) {
    shape->rows = EvenPart(job.y.height, shape->rows - CeilDivide(shape->rows, 8));
  } else if (shape->segments > 1) {
    shape->segments = EvenPart(CeilDivide(job.runs_of_line, shape->segment), shape->segments / 2);
  } else if (shape->phases > 1) {
    shape->phases = EvenPart(job.phases, shape->phases / 2);
  } else if (shape->tap_rows > 1) {
    shape->tap_rows = EvenPart(job.rows.w, shape->tap_rows / 2);
  } else if (shape->segment > 1) {
    shape->segment /= 2;
  } else {
    return false;
  }
  return true;
}

/// The largest tile of so many planes of taps that shared memory has room for.
std::optional<TileShape>
ShapeOf(const Job& job, std::int64_t tap_depths, FilterArguments* arguments) {
  TileShape shape = LargestTile(job, tap_depths);
  SetGroups(job, &shape);
  while (SetLines(job, shape, arguments) > kMostSharedBytes) {
    if (!Shrink(job, &shape)) {
      return std::nullopt;
    }
    SetGroups(job, &shape);
  }
  return shape;
}

/// All planes of taps in a block, where planes of x that neighbours along the depth share stay in
/// shared memory and tiles have enough rows; or else a plane.
std::optional<TileShape> ShapeOf(const Job& job, FilterArguments* arguments) {
  constexpr std::int64_t kFewestRows = 5;
  if (job.row_items > kThreads) {
    return std::nullopt;
  }
  const bool are_neighbours = AxisOf(job.task.problem, kDepths).dilation == 1;
  if (job.tap_depths > 1 && are_neighbours &&
      job.rows.w * job.row_items <= kThreads / job.tap_depths) {
    const std::optional<TileShape> shape = ShapeOf(job, job.tap_depths, arguments);
    if (shape && shape->tap_rows == job.rows.w &&
        shape->rows >= std::min<std::int64_t>(job.y.height, kFewestRows)) {
      return shape;
    }
  }
  return ShapeOf(job, 1, arguments);
}

/// How many blocks a multiprocessor of an H200 has at the same time.
std::int64_t BlocksAtOnce(const DepthwiseLines& lines) {
  constexpr std::int64_t kShared = std::int64_t{227} * 1024;
  constexpr std::int64_t kReserved = 1024;
  constexpr std::int64_t kRegisters = 65536;
  constexpr std::int64_t kRegistersOfThread = 80;
  return std::max<std::int64_t>(
      std::min(
          kShared / (lines.shared_bytes + kReserved),
          kRegisters / (kRegistersOfThread * lines.threads)),
      1);
}

/// The fewest slices that keep a promise of float: a sum of more products, one after the other, is
/// further off.
std::int64_t FewestSlices(const Job& job, const TileShape& shape, std::int64_t tiles) {
  constexpr std::int64_t kMostProducts = 1024;
  const std::int64_t of_tile =
      CeilDivide(shape.lines(), shape.groups) * shape.segment * job.runs.length;
  return job.task.problem.type == DataType::kFloat
             ? CeilDivide(tiles, std::max<std::int64_t>(kMostProducts / of_tile, 1))
             : 1;
}

/// Slices that depend on the shape alone: those that take the fewest turns of all multiprocessors,
/// where to begin and to end costs as much as some of a tile.
std::int64_t SlicesOf(
    const DepthwiseLines& lines,
    std::int64_t blocks,
    std::int64_t tiles,
    std::int64_t fewest) {
  constexpr double kOfTile = 0.7;
  constexpr std::int64_t kMostTurns = 6;
  const std::int64_t at_once = kMultiprocessorsOfSlices * BlocksAtOnce(lines);
  const std::int64_t most =
      std::min(tiles, std::max<std::int64_t>(kMostTurns * at_once / blocks, fewest));
  std::int64_t best = fewest;
  double least = 0;
  for (std::int64_t i = fewest; i <= most; ++i) {
    const std::int64_t of_slice = CeilDivide(tiles, i);
    const std::int64_t turns = CeilDivide(blocks * CeilDivide(tiles, of_slice), at_once);
    const double cost = static_cast<double>(turns) * (static_cast<double>(of_slice) + kOfTile);
    if (i == fewest || cost < least) {
      best = CeilDivide(tiles, of_slice);
      least = cost;
    }
  }
  return best;
}

/// Counts tiles and slices; false where they are too many.
bool SetSlices(const Job& job, const TileShape& shape, DepthwiseLines* lines) {
  const Problem& problem = job.task.problem;
  FilterArguments& arguments = lines->filter_arguments;
  std::int64_t tiles = CeilDivide(problem.batch, shape.images);
  const auto count = [&](std::int64_t whole, std::int64_t part) {
    const std::int64_t counted = CeilDivide(whole, part);
    tiles = tiles > kMostNumber / counted ? kMostNumber + 1 : tiles * counted;
    return DivisorOf(counted);
  };
  arguments.depth_tiles = count(job.y.depth, 1);
  arguments.row_tiles = count(job.y.height, shape.rows);
  arguments.run_tiles = count(job.runs_of_line, shape.segments * shape.segment);
  arguments.phase_tiles = count(job.phases, shape.phases);
  const std::int64_t tap_tiles = CeilDivide(job.rows.w, shape.tap_rows);
  const std::int64_t tap_depth_tiles = CeilDivide(job.tap_depths, shape.tap_depths);
  const std::int64_t blocks = problem.x_channels * tap_tiles * tap_depth_tiles;
  if (tiles > kMostNumber || blocks > kMostNumber) {
    return false;
  }
  lines->slices = SlicesOf(*lines, blocks, tiles, FewestSlices(job, shape, tiles));
  lines->blocks = lines->slices * blocks;
  arguments.tap_tiles = DivisorOf(tap_tiles);
  arguments.tap_depth_tiles = DivisorOf(tap_depth_tiles);
  arguments.channels = DivisorOf(problem.x_channels);
  arguments.tiles = static_cast<std::uint32_t>(tiles);
  arguments.tiles_of_slice = static_cast<std::uint32_t>(CeilDivide(tiles, lines->slices));
  const std::int64_t taps = job.tap_depths * job.rows.w * job.columns.taps.columns.divisor;
  lines->workspace = static_cast<std::size_t>(lines->slices * problem.x_channels * taps) *
                     static_cast<std::size_t>(kVectorBytes / job.runs.of_vector);
  return lines->blocks <= kMostNumber;
}

}  // namespace

std::optional<DepthwiseLines> PlanFilter(const Task& task) {
  const Job job = JobOf(task);
  DepthwiseLines lines;
  FilterArguments& arguments = lines.filter_arguments;
  const std::optional<TileShape> found = ShapeOf(job, &arguments);
  if (!found) {
    return std::nullopt;
  }
  const TileShape& shape = *found;
  lines.is_long = job.runs.vectors > kLongRun;
  lines.shared_bytes = static_cast<int>(SetLines(job, shape, &arguments));
  lines.threads = static_cast<int>(ThreadsOf(job, shape));
  SetLanes(task, lines.threads, &arguments.x);
  SetLanes(task, lines.threads, &arguments.y);
  arguments.taps = job.columns.taps;
  arguments.rows = RowsOf(task);
  arguments.depths = DepthsOf(task);
  arguments.x_column = job.columns.from;
  arguments.runs = DivisorOf(job.tap_runs);
  arguments.items = DivisorOf(ItemsOf(job, shape));
  arguments.tap_rows_of_block = static_cast<int>(shape.tap_rows * shape.tap_depths);
  arguments.ring = DivisorOf(shape.tap_depths);
  arguments.segments = DivisorOf(shape.segments);
  arguments.segment = static_cast<int>(shape.segment * job.runs.length);
  arguments.groups = static_cast<int>(shape.groups);
  arguments.images_of_tile = static_cast<int>(shape.images);
  arguments.batch = static_cast<int>(task.problem.batch);
  return SetSlices(job, shape, &lines) ? std::optional(lines) : std::nullopt;
}

}  // namespace gradsmith::conv::depthwise_lines
