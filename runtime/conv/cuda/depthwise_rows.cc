#include "conv/cuda/depthwise_rows.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>

#include "conv/cuda/channels_last.h"
#include "conv/cuda/depthwise_configs.h"
#include "conv/cuda/filter_slices.h"
#include "core/tiles.h"
#include "cuda/kernel_images.h"
#include "cuda/kernel_table.h"

namespace gradsmith::conv {

namespace {

using cuda::DivisorOf;
using depthwise_rows::Arguments;
using depthwise_rows::KernelConfig;
using depthwise_rows::Planes;
using depthwise_rows::Tile;
using internal::CeilDivide;

constexpr std::int64_t kMostTiles = std::numeric_limits<int>::max();

/// The elements that are read at once: a power of two up to 16 bytes that divides all there is.
int PieceOf(const Task& task, Operand operand, int first_column) {
  const Dims dims = DimsOf(task.problem, operand);
  const Strides& strides = StridesOf(task.problem, operand);
  const int size = static_cast<int>(SizeOf(task.problem.type));
  std::int64_t all = (task.alignment.at(operand) / size) | first_column | dims[3];
  for (int i = 0; i < 3; ++i) {
    all |= dims[i] > 1 ? strides[i] : 0;
  }
  const std::int64_t lowest = all & -all;
  return static_cast<int>(std::min<std::int64_t>(lowest, 16 / size));
}

Planes PlanesOf(const Task& task, Operand operand, int first_column) {
  const Dims dims = DimsOf(task.problem, operand);
  const Strides& strides = StridesOf(task.problem, operand);
  return {
      .batch_stride = strides[0],
      .channel_stride = strides[1],
      .row_stride = static_cast<int>(strides[2]),
      .height = static_cast<int>(dims[2]),
      .width = static_cast<int>(dims[3]),
      .piece = PieceOf(task, operand, first_column)};
}

/// Sets where tiles begin, how they are read and how many there are of a plane.
void SetPlanes(const Task& task, const KernelConfig& config, Arguments* arguments) {
  const bool is_data = task.primitive == Primitive::kBackwardData;
  const Operand from = is_data ? kY : kX;
  const Operand to = is_data ? kX : kY;
  const depthwise::Origin row = depthwise::OriginOf(task, task.problem.axes[0]);
  const depthwise::Origin column = depthwise::OriginOf(task, task.problem.axes[1]);
  arguments->to_row = row.to;
  arguments->from_row = row.from;
  arguments->to_column = column.to;
  arguments->from_column = column.from;
  arguments->from = PlanesOf(task, from, column.from);
  arguments->to = PlanesOf(task, to, column.to);
  const Tile tile = depthwise_rows::TileOf(config, static_cast<int>(SizeOf(task.problem.type)));
  arguments->runs = DivisorOf(CeilDivide(arguments->to.width - column.to, tile.columns));
  arguments->strips = DivisorOf(CeilDivide(arguments->to.height - row.to, tile.rows));
}

constexpr std::int64_t kVectorBytes = 16;
constexpr std::int64_t kMostSharedBytes = 32768;

/// Whether all that is read and written of a row is so at once.
bool IsReadWhole(const DepthwiseRows& rows, int element_size) {
  const KernelConfig& config = rows.config;
  const Tile tile = depthwise_rows::TileOf(config, element_size);
  const int main_columns = config.spreads ? tile.columns / config.step : tile.columns * config.step;
  return rows.arguments.from.piece >= main_columns && rows.arguments.to.piece >= tile.columns;
}

/// The rows that so many strips read at most, those of whole planes included that lie between.
std::int64_t
RowsRead(const KernelConfig& config, const Tile& tile, const Arguments& arguments, int strips) {
  const int center = depthwise_rows::CenterOf(config.side);
  const int before = config.spreads ? (config.side - 1 - center) / 2 : center;
  const int after = config.spreads ? (center + 1) / 2 : config.side - config.step - center;
  const int main_rows = config.spreads ? tile.rows / 2 : tile.rows * config.step;
  const auto of_plane = static_cast<int>(arguments.strips.divisor);
  const std::int64_t main_end = arguments.from_row + (std::int64_t{of_plane} * main_rows);
  const std::int64_t unread =
      std::max<std::int64_t>(arguments.from.height - main_end, 0) + std::max(arguments.from_row, 0);
  return (std::int64_t{strips} * main_rows) + before + after +
         ((((strips - 1) / of_plane) + 1) * unread);
}

/// Goes through shared memory where rows of dense tensors cannot be read and written by 16 bytes.
/// Doubles go by 8, which is quick enough.
void StageRows(const Task& task, DepthwiseRows* rows) {
  Arguments& arguments = rows->arguments;
  const int size = static_cast<int>(SizeOf(task.problem.type));
  const Tile tile = depthwise_rows::TileOf(rows->config, size);
  const auto runs = static_cast<int>(arguments.runs.divisor);
  if (size > 4 || IsReadWhole(*rows, size) || task.accumulate || runs > depthwise_rows::kThreads ||
      !IsContiguous(task.problem, kX) || !IsContiguous(task.problem, kY)) {
    return;
  }
  const int strips = depthwise_rows::kThreads / runs;
  const std::int64_t read =
      RowsRead(rows->config, tile, arguments, strips) * arguments.from.width * size;
  const std::int64_t written = std::int64_t{strips} * tile.rows * arguments.to.width * size;
  const std::int64_t bytes =
      CeilDivide(std::max(read, written) + kVectorBytes, kVectorBytes) * kVectorBytes;
  if (bytes > kMostSharedBytes) {
    return;
  }
  arguments.strips_of_block = static_cast<std::uint32_t>(strips);
  arguments.all_strips = arguments.tiles / arguments.runs.divisor;
  arguments.from_elements =
      NumElements(DimsOf(task.problem, task.primitive == Primitive::kBackwardData ? kY : kX));
  rows->shared_bytes = static_cast<int>(bytes);
  rows->blocks = CeilDivide(arguments.all_strips, strips);
}

/// Rows of less than a run of single 16-bit elements, as of 7x7, are summed for the gradient of a
/// filter of 3x3 as quickly by the general kernel.
bool IsShortFilter(const Task& task, const DepthwiseRows& rows) {
  const int size = static_cast<int>(SizeOf(task.problem.type));
  const Arguments& arguments = rows.arguments;
  return size == 2 && rows.config.side <= 3 &&
         std::min(arguments.from.piece, arguments.to.piece) == 1 &&
         arguments.to.width < depthwise_rows::TileOf(rows.config, size).columns;
}

/// Sums of a channel's tiles in slices, which depend on the shape alone.
void SetSlices(const Task& task, DepthwiseRows* rows) {
  constexpr std::int64_t kWarp = 32;
  const std::int64_t tiles = rows->arguments.tiles;
  rows->threads = static_cast<int>(
      CeilDivide(std::min<std::int64_t>(tiles, depthwise_rows::kThreads), kWarp) * kWarp);
  rows->slices = CeilDivide(tiles, rows->threads * std::int64_t{depthwise_rows::kTilesOfThread});
  rows->blocks = rows->slices * task.problem.x_channels;
  const bool is_double = task.problem.type == DataType::kDouble;
  rows->workspace = static_cast<std::size_t>(rows->blocks) *
                    static_cast<std::size_t>(rows->config.side * rows->config.side) *
                    (is_double ? sizeof(double) : sizeof(float));
}

Result<CUkernel> FindKernel(const Task& task, const DepthwiseRows& rows) {
  const KernelConfig& config = rows.config;
  constexpr int kCount = depthwise::kConfigs;
  static auto& data_table =
      *new cuda::KernelTable<2 * 2 * kCount>(cuda::kImage_conv_depthwise_rows);
  static auto& filter_table =
      *new cuda::KernelTable<kCount>(cuda::kImage_conv_depthwise_rows_filter);
  const int index = depthwise::IndexOf(config);
  const std::string name = depthwise::NameOf(config);
  const bool is_staged = rows.shared_bytes > 0;
  const std::string prefix =
      std::string("gradsmith_depthwise_rows_") + (is_staged ? "staged_" : "");
  if (IsFilter(task)) {
    return filter_table.Find(index, prefix + "filter_" + name, task.problem.type);
  }
  // By single steps backward data is forward with taps in reverse.
  const std::string by_two = config.spreads ? "data_" : "forward_";
  const std::string direction = config.step == 1 ? "" : by_two;
  const int variant = (is_staged ? 2 : 0) + (config.spreads ? 1 : 0);
  return data_table.Find((variant * kCount) + index, prefix + direction + name, task.problem.type);
}

class DepthwiseRowsPlan final : public internal::Plan {
 public:
  DepthwiseRowsPlan(const Task& task, const DepthwiseRows& rows, CUkernel kernel)
      : task_(task), rows_(rows), kernel_(kernel) {}

  [[nodiscard]] std::size_t workspace() const override { return rows_.workspace; }

  Status Run(const internal::Launch& launch) override {
    const cuda::LaunchShape shape = {
        .blocks_x = static_cast<unsigned>(rows_.blocks),
        .threads = static_cast<unsigned>(rows_.threads),
        .shared_bytes = static_cast<unsigned>(rows_.shared_bytes)};
    return task_.primitive == Primitive::kBackwardFilter
               ? RunFilterSlices<Arguments>(
                     task_, {kernel_, shape, rows_.arguments, rows_.slices}, launch, {})
               : RunData(shape, launch);
  }

 private:
  Status RunData(const cuda::LaunchShape& shape, const internal::Launch& launch) const {
    CUstream stream = launch.stream;
    const Operand result = ResultOf(task_.primitive);
    const void* from = launch.operands[result == kX ? kY : kX];
    const void* filters = launch.operands[kW];
    if (rows_.shared_bytes > 0) {
      return cuda::Launch(
          kernel_, shape, stream, rows_.arguments, from, filters, launch.operands[result]);
    }
    return cuda::Launch(
        kernel_, shape, stream, rows_.arguments, from, filters, launch.operands[result],
        task_.accumulate);
  }

  Task task_;
  DepthwiseRows rows_;
  CUkernel kernel_;
};

}  // namespace

std::optional<DepthwiseRows> PlanDepthwiseRows(const Task& task) {
  const Problem& problem = task.problem;
  const std::optional<KernelConfig> config = depthwise::ConfigOf(task);
  if (!config) {
    return std::nullopt;
  }
  for (const Operand operand : {kX, kY}) {
    if (!depthwise::HasDenseRows(problem, operand) ||
        !depthwise::HasSmallPlanes(problem, operand)) {
      return std::nullopt;
    }
  }
  DepthwiseRows rows;
  rows.config = *config;
  Arguments& arguments = rows.arguments;
  SetPlanes(task, rows.config, &arguments);
  arguments.reversed = task.primitive == Primitive::kBackwardData && !rows.config.spreads;
  if (problem.x_channels > kMostTiles) {
    return std::nullopt;
  }
  arguments.channels = DivisorOf(problem.x_channels);
  const bool is_filter = IsFilter(task);
  const std::int64_t tiles_of_plane =
      std::int64_t{arguments.runs.divisor} * arguments.strips.divisor;
  const std::int64_t planes = problem.batch * (is_filter ? 1 : problem.x_channels);
  if (planes > kMostTiles / tiles_of_plane - depthwise_rows::kThreads) {
    return std::nullopt;
  }
  arguments.tiles = static_cast<std::uint32_t>(tiles_of_plane * planes);
  if (is_filter) {
    if (IsShortFilter(task, rows)) {
      return std::nullopt;
    }
    SetSlices(task, &rows);
  } else {
    rows.threads = depthwise_rows::kThreads;
    rows.blocks = CeilDivide(arguments.tiles, rows.threads);
    StageRows(task, &rows);
  }
  return rows.blocks <= kMostTiles ? std::optional(rows) : std::nullopt;
}

Result<std::unique_ptr<internal::Plan>> MakeDepthwiseRowsPlan(
    const Task& task,
    const DepthwiseRows& rows) {
  const Result<CUkernel> kernel = FindKernel(task, rows);
  if (!kernel.ok()) {
    return kernel.status();
  }
  return std::unique_ptr<internal::Plan>(std::make_unique<DepthwiseRowsPlan>(task, rows, *kernel));
}

}  // namespace gradsmith::conv
