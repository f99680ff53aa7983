#include "conv/cuda/depthwise_tiles.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>

#include "conv/cuda/call.h"
#include "conv/cuda/correlate_plan.h"
#include "conv/cuda/depthwise_configs.h"
#include "conv/cuda/filter_slices.h"
#include "core/tiles.h"
#include "cuda/kernel_images.h"
#include "cuda/kernel_table.h"

namespace gradsmith::conv {

namespace {

using cuda::DivisorOf;
using depthwise_tiles::Arguments;
using depthwise_tiles::kChannels;
using depthwise_tiles::KernelConfig;
using depthwise_tiles::kPairs;
using depthwise_tiles::Pixels;
using depthwise_tiles::Tile;
using depthwise_tiles::Work;
using internal::CeilDivide;

constexpr std::int64_t kMostNumber = std::numeric_limits<int>::max();
constexpr int kVectorBytes = 16;

int SizeOfElement(const Task& task) {
  return static_cast<int>(SizeOf(task.problem.type));
}

/// Whether the channels of every pixel can be read by vectors, and offsets in an image are small.
bool HasVectors(const Task& task, Operand operand) {
  const Problem& problem = task.problem;
  const Dims dims = DimsOf(problem, operand);
  const Strides& strides = StridesOf(problem, operand);
  const int length = kVectorBytes / SizeOfElement(task);
  bool fits = strides[1] == 1 && dims[1] % length == 0 &&
              task.alignment.at(operand) >= kVectorBytes && dims[1] <= kMostNumber / 4;
  for (const int axis : {0, 2, 3}) {
    fits = fits && (dims[axis] == 1 || strides[axis] % length == 0);
  }
  constexpr std::int64_t kMargin = 32;
  const Axis& columns = problem.axes[1];
  const std::int64_t most = columns.x + columns.y + std::abs(columns.pad_begin) + kMargin;
  return fits && depthwise::HasSmallPlanes(problem, operand) &&
         std::abs(strides[3]) <= kMostNumber / 4 / most;
}

Pixels PixelsOf(const Task& task, Operand operand) {
  const Dims dims = DimsOf(task.problem, operand);
  const Strides& strides = StridesOf(task.problem, operand);
  // Strides of dims of one may be any number: what is outside has an aligned address, too.
  return {
      .batch_stride = strides[0],
      .row_stride = dims[2] > 1 ? static_cast<int>(strides[2]) : 0,
      .column_stride = dims[3] > 1 ? static_cast<int>(strides[3]) : 0,
      .height = static_cast<int>(dims[2]),
      .width = static_cast<int>(dims[3])};
}

/// What surrounds the pixels that tiles share with none.
int HaloOf(const KernelConfig& config) {
  const int center = depthwise_tiles::CenterOf(config.side);
  return config.spreads ? ((config.side - 1 - center) / 2) + ((center + 1) / 2)
                        : config.side - config.step;
}

/// What is to be computed: of a task, or with backward data its filter's gradient as well.
struct Job {
  const Task& task;
  KernelConfig config;
  Work work;
};

Tile TileOf(const Job& job) {
  return depthwise_tiles::TileOf(job.config, job.work, SizeOfElement(job.task));
}

/// The pixels that a tile shares with none.
Tile MainOf(const Job& job) {
  const Tile tile = TileOf(job);
  const KernelConfig& config = job.config;
  return config.spreads ? Tile{tile.rows / config.step, tile.columns / config.step}
                        : Tile{tile.rows * config.step, tile.columns * config.step};
}

/// The tiles of a block along each axis.
struct BlockShape {
  int down = 0;
  int across = 0;
  std::int64_t bytes = 0;
};

/// The pixels that a block reads.
Tile ReadBy(const Job& job, const BlockShape& shape) {
  const Tile main = MainOf(job);
  const int halo = HaloOf(job.config);
  return {(shape.down * main.rows) + halo, (shape.across * main.columns) + halo};
}

/// The slots of a row of so many pixels.
int PitchOf(const Job& job, int columns) {
  return depthwise_tiles::SlotOf(columns - 1, MainOf(job).columns, SizeOfElement(job.task)) + 1;
}

/// The shared memory of a block.
std::int64_t SharedBytes(const Job& job, const BlockShape& shape) {
  const Tile read = ReadBy(job, shape);
  const std::int64_t pixels =
      std::int64_t{read.rows} * PitchOf(job, read.columns) * kChannels * SizeOfElement(job.task);
  const std::int64_t taps = std::int64_t{job.config.side} * job.config.side;
  const std::int64_t filters = taps * kChannels * std::int64_t{sizeof(float)};
  return pixels + (job.work == Work::kFilter ? 0 : filters);
}

/// Most of a block's memory is its pixels; the filter's gradient has sums of its warps, too.
std::int64_t MostShared(const Job& job) {
  constexpr int kWarp = 32;
  const std::int64_t warps = kPairs * depthwise_tiles::MostTiles(job.config, job.work) / kWarp;
  const std::int64_t sums = warps * (job.config.side + 1) * kChannels * std::int64_t{sizeof(float)};
  return depthwise_tiles::kMostShared - (job.work == Work::kResult ? 0 : sums);
}

/// The shape of the blocks that take the fewest instructions for an image: those of results, also
/// of tiles that are outside, and those that copy pixels.
BlockShape ShapeOf(const Job& job, std::int64_t down, std::int64_t across) {
  constexpr double kForTap = 1.3;
  constexpr double kForResult = 3;
  constexpr double kForVector = 14;
  const KernelConfig& config = job.config;
  const int most = depthwise_tiles::MostTiles(config, job.work);
  const int taps = config.side * config.side / (config.spreads ? config.step * config.step : 1);
  const Tile tile = TileOf(job);
  const double for_tile = kChannels * tile.rows * tile.columns * ((taps * kForTap) + kForResult);
  const int vectors = kChannels * SizeOfElement(job.task) / kVectorBytes;
  BlockShape best;
  double least = 0;
  for (int i = 1; i <= most; ++i) {
    for (int j = 1; j <= most / i; ++j) {
      BlockShape shape = {.down = i, .across = j};
      shape.bytes = SharedBytes(job, shape);
      if (shape.bytes > MostShared(job)) {
        continue;
      }
      const auto blocks = static_cast<double>(CeilDivide(down, i) * CeilDivide(across, j));
      const auto tiles = static_cast<double>(CeilDivide(std::int64_t{i} * j, 2) * 2);
      const Tile read = ReadBy(job, shape);
      const double copies = static_cast<double>(read.rows) * read.columns * vectors;
      const double cost = blocks * ((tiles * for_tile) + (copies * kForVector));
      if (best.down == 0 || cost < least) {
        best = shape;
        least = cost;
      }
    }
  }
  return best;
}

/// Sets where tiles begin and how blocks are made of them; false where a launch is too large.
bool SetBlocks(const Task& task, DepthwiseTiles* plan) {
  const Problem& problem = task.problem;
  const KernelConfig& config = plan->config;
  const Job job = {task, config, plan->work};
  Arguments& arguments = plan->arguments;
  const bool is_data = task.primitive == Primitive::kBackwardData;
  const depthwise::Origin row = depthwise::OriginOf(task, problem.axes[0]);
  const depthwise::Origin column = depthwise::OriginOf(task, problem.axes[1]);
  arguments.from = PixelsOf(task, is_data ? kY : kX);
  arguments.to = PixelsOf(task, is_data ? kX : kY);
  arguments.to_row = row.to;
  arguments.from_row = row.from;
  arguments.to_column = column.to;
  arguments.from_column = column.from;
  arguments.reversed = is_data && !config.spreads;
  const Tile tile = TileOf(job);
  const std::int64_t tiles_down = CeilDivide(std::int64_t{arguments.to.height} - row.to, tile.rows);
  const std::int64_t tiles_across =
      CeilDivide(std::int64_t{arguments.to.width} - column.to, tile.columns);
  const BlockShape shape = ShapeOf(job, tiles_down, tiles_across);
  const Tile read = ReadBy(job, shape);
  constexpr int kTilesOfWarp = 2;
  plan->threads = static_cast<int>(
      CeilDivide(std::int64_t{shape.down} * shape.across, kTilesOfWarp) * kTilesOfWarp * kPairs);
  const int vectors = kChannels * SizeOfElement(task) / kVectorBytes;
  arguments.channels = static_cast<int>(problem.x_channels);
  arguments.tiles_down = shape.down;
  arguments.tiles_across = DivisorOf(shape.across);
  arguments.columns_read = DivisorOf(read.columns);
  arguments.rows_read = read.rows;
  arguments.pitch = PitchOf(job, read.columns);
  arguments.step_down = plan->threads / vectors / read.columns;
  arguments.step_across = plan->threads / vectors % read.columns;
  arguments.down = DivisorOf(CeilDivide(tiles_down, shape.down));
  arguments.across = DivisorOf(CeilDivide(tiles_across, shape.across));
  arguments.groups = DivisorOf(CeilDivide(problem.x_channels, kChannels));
  plan->shared_bytes = static_cast<int>(shape.bytes);
  const std::int64_t of_image =
      std::int64_t{arguments.down.divisor} * arguments.across.divisor * arguments.groups.divisor;
  if (problem.batch > kMostNumber / of_image) {
    return false;
  }
  plan->blocks = problem.batch * of_image;
  return true;
}

/// SetSlices sets as many slices as are computed at once: they depend on the shape alone.
void SetSlices(DepthwiseTiles* plan) {
  const int most_threads = kPairs * depthwise_tiles::MostTiles(plan->config, plan->work);
  Arguments& arguments = plan->arguments;
  const std::int64_t groups = arguments.groups.divisor;
  const std::int64_t blocks = plan->blocks / groups;
  const std::int64_t threads_at_once =
      std::int64_t{depthwise_tiles::BlocksAtOnce(plan->config, plan->work)} * most_threads;
  const std::int64_t at_once = kMultiprocessorsOfSlices * (threads_at_once / plan->threads);
  const std::int64_t most = std::max<std::int64_t>(at_once / groups, 1);
  const std::int64_t slices = CeilDivide(blocks, CeilDivide(blocks, most));
  arguments.blocks_of_group = static_cast<std::uint32_t>(blocks);
  arguments.slices = static_cast<std::uint32_t>(slices);
  plan->blocks = slices * groups;
  plan->workspace = static_cast<std::size_t>(slices) *
                    static_cast<std::size_t>(arguments.channels) *
                    static_cast<std::size_t>(plan->config.side * plan->config.side) * sizeof(float);
}

/// Blocks and slices for a configuration and work; nothing where a launch is too large.
std::optional<DepthwiseTiles> Planned(const Task& task, DepthwiseTiles tiles) {
  if (!SetBlocks(task, &tiles)) {
    return std::nullopt;
  }
  if (tiles.work != Work::kResult) {
    SetSlices(&tiles);
  }
  return tiles;
}

Result<CUkernel> FindKernel(const Task& task, const KernelConfig& config) {
  static auto& data_table =
      *new cuda::KernelTable<2 * depthwise::kConfigs>(cuda::kImage_conv_depthwise_tiles);
  static auto& filter_table =
      *new cuda::KernelTable<depthwise::kConfigs>(cuda::kImage_conv_depthwise_tiles_filter);
  const int index = depthwise::IndexOf(config);
  const std::string prefix = "gradsmith_depthwise_tiles_";
  if (IsFilter(task)) {
    return filter_table.Find(
        index, prefix + "filter_" + depthwise::NameOf(config), task.problem.type);
  }
  // By single steps backward data is forward with taps in reverse.
  const std::string by_two = config.spreads ? "data_" : "forward_";
  return data_table.Find(
      (config.spreads ? depthwise::kConfigs : 0) + index,
      prefix + (config.step == 1 ? "" : by_two) + depthwise::NameOf(config), task.problem.type);
}

cuda::LaunchShape LaunchShapeOf(const DepthwiseTiles& tiles) {
  return {
      .blocks_x = static_cast<unsigned>(tiles.blocks),
      .threads = static_cast<unsigned>(tiles.threads),
      .shared_bytes = static_cast<unsigned>(tiles.shared_bytes)};
}

/// dX, the filter's gradient and the sums of dY. Operands are those of a call.
class DepthwiseTilesOfBothPlan final : public SharingPlan {
 public:
  DepthwiseTilesOfBothPlan(
      const Task& data,
      const Task& filter,
      const DepthwiseTiles& tiles,
      CUkernel kernel)
      : data_(data), filter_(filter), tiles_(tiles), kernel_(kernel) {}

  [[nodiscard]] std::size_t workspace() const override { return tiles_.workspace; }

  [[nodiscard]] std::int64_t PartialSumRows(int operand) const override {
    return operand == kY ? tiles_.arguments.slices : 0;
  }

  [[nodiscard]] bool AddsUpSums() const override { return true; }

  Status RunShared(const internal::Launch& launch, const Shared& shared) override {
    const void* x = launch.operands[kInputs + kX];
    const void* w = launch.operands[kInputs + kW];
    const void* y = launch.operands[kInputs + kY];
    if (Status status = cuda::Launch(
            kernel_, LaunchShapeOf(tiles_), launch.stream, tiles_.arguments, y, x, w,
            launch.operands[kResults + kX], data_.accumulate, launch.workspace,
            shared.partial_sums);
        !status.ok()) {
      return status;
    }
    return SumSlices(
        filter_, tiles_.arguments.slices, launch.operands[kResults + kW], launch, shared,
        tiles_.arguments.slices);
  }

 private:
  Task data_;
  Task filter_;
  DepthwiseTiles tiles_;
  CUkernel kernel_;
};

}  // namespace

std::optional<DepthwiseTiles> PlanDepthwiseTiles(const Task& task) {
  const std::optional<KernelConfig> config = depthwise::ConfigOf(task);
  if (!config || task.problem.type == DataType::kDouble || !HasVectors(task, kX) ||
      !HasVectors(task, kY)) {
    return std::nullopt;
  }
  DepthwiseTiles tiles;
  tiles.config = *config;
  tiles.work = IsFilter(task) ? Work::kFilter : Work::kResult;
  return Planned(task, tiles);
}

std::optional<DepthwiseTiles> PlanBothByDepthwiseTiles(const Task& data, const Task& filter) {
  if (data.primitive != Primitive::kBackwardData || !IsFilter(filter)) {
    return std::nullopt;
  }
  // A pixel of dY is summed where it meets that of x in the same place, and dX is laid out as x is.
  const Problem& problem = data.problem;
  const bool is_same = std::all_of(
      problem.axes.begin(), problem.axes.begin() + problem.spatial_rank, [](const Axis& axis) {
        return axis.stride == 1 && axis.x == axis.y &&
               axis.pad_begin == depthwise_tiles::CenterOf(static_cast<int>(axis.w));
      });
  std::optional<DepthwiseTiles> tiles = PlanDepthwiseTiles(data);
  if (!is_same || !tiles || filter.problem.x_strides != problem.x_strides ||
      !PlanDepthwiseTiles(filter)) {
    return std::nullopt;
  }
  tiles->work = Work::kBoth;
  return Planned(data, *tiles);
}

Result<std::unique_ptr<internal::Plan>> MakeDepthwiseTilesPlan(
    const Task& task,
    const DepthwiseTiles& tiles) {
  const Result<CUkernel> kernel = FindKernel(task, tiles.config);
  if (!kernel.ok()) {
    return kernel.status();
  }
  const cuda::LaunchShape shape = LaunchShapeOf(tiles);
  if (!IsFilter(task)) {
    return std::unique_ptr<internal::Plan>(
        std::make_unique<CorrelatePlan<Arguments>>(task, tiles.arguments, shape, *kernel));
  }
  const FilterSlices<Arguments> slices = {
      .kernel = *kernel,
      .shape = shape,
      .arguments = tiles.arguments,
      .count = tiles.arguments.slices};
  return std::unique_ptr<internal::Plan>(
      std::make_unique<FilterAndSumsPlan<Arguments>>(task, slices, tiles.workspace));
}

Result<std::unique_ptr<internal::Plan>>
MakeBothByDepthwiseTilesPlan(const Task& data, const Task& filter, const DepthwiseTiles& tiles) {
  static auto& table =
      *new cuda::KernelTable<depthwise::kConfigs>(cuda::kImage_conv_depthwise_tiles_both);
  const Result<CUkernel> kernel = table.Find(
      depthwise::IndexOf(tiles.config),
      "gradsmith_depthwise_tiles_both_" + depthwise::NameOf(tiles.config), data.problem.type);
  if (!kernel.ok()) {
    return kernel.status();
  }
  return std::unique_ptr<internal::Plan>(
      std::make_unique<DepthwiseTilesOfBothPlan>(data, filter, tiles, *kernel));
}

}  // namespace gradsmith::conv
