#include "conv/cuda/depthwise_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>

#include "cuda/kernel_table.h"
#include "cuda/tensor_ops.h"

namespace gradsmith::conv {

namespace {

using depthwise_rows::Arguments;
using depthwise_rows::Divisor;
using depthwise_rows::Form;
using depthwise_rows::Planes;
using depthwise_rows::Tile;

constexpr std::int64_t kMostTiles = std::numeric_limits<int>::max();

std::int64_t CeilDivide(std::int64_t number, std::int64_t divisor) {
  return (number + divisor - 1) / divisor;
}

/// 1 or 2 for the steps of the last two axes.
std::int64_t StepOf(const Task& task) {
  return task.problem.axes[1].stride;
}

/// Whether tiles of x meet every other row of y.
bool Spreads(const Task& task) {
  return task.primitive == Primitive::kBackwardData && StepOf(task) == 2;
}

bool HasForm(const Problem& problem) {
  if (problem.spatial_rank != 2 || NumElements(DimsOf(problem, kX)) == 0 ||
      NumElements(DimsOf(problem, kY)) == 0) {
    return false;
  }
  const Axis& first = problem.axes[0];
  const Axis& last = problem.axes[1];
  return first.w == last.w && (last.w == 3 || last.w == 5) && first.stride == last.stride &&
         (last.stride == 1 || last.stride == 2) && first.dilation == 1 && last.dilation == 1;
}

/// The kernels compute positions in a plane in 32 bits.
bool HasSmallPlanes(const Problem& problem, Operand operand) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max() / 4;
  constexpr std::int64_t kMargin = 32;
  const Strides& strides = StridesOf(problem, operand);
  std::int64_t rows = kMargin;
  for (const Axis& axis : {problem.axes[0], problem.axes[1]}) {
    if (axis.x > kMost || axis.y > kMost || std::abs(axis.pad_begin) > kMost) {
      return false;
    }
  }
  rows += problem.axes[0].x + problem.axes[0].y + std::abs(problem.axes[0].pad_begin);
  return std::abs(strides[2]) <= kMost / rows;
}

bool HasDenseRows(const Problem& problem, Operand operand) {
  return StridesOf(problem, operand)[3] == 1 || DimsOf(problem, operand)[3] == 1;
}

Divisor DivisorOf(std::int64_t number) {
  const auto divisor = static_cast<std::uint32_t>(number);
  const auto shift = static_cast<std::uint32_t>(std::bit_width(divisor - 1));
  const std::uint64_t excess = (std::uint64_t{1} << shift) - divisor;
  return {divisor, static_cast<std::uint32_t>(((excess << 32U) / divisor) + 1), shift};
}

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

/// Where tiles begin along an axis: in the tensor that they are of, and in the other.
struct Origin {
  int to;
  int from;
};

Origin OriginOf(const Task& task, const Axis& axis) {
  const int center = static_cast<int>(axis.w / 2);
  const int pad = static_cast<int>(axis.pad_begin);
  if (Spreads(task)) {
    // x[p] meets y[(p + pad - tap) / 2]: tiles begin where p + pad - center is even.
    const int ahead = pad - center;
    const int odd = ahead & 1;
    return {-odd, (ahead - odd) / 2};
  }
  const bool is_data = task.primitive == Primitive::kBackwardData;
  return {0, is_data ? pad - center : center - pad};
}

/// Sets where tiles begin, how they are read and how many there are of a plane.
void SetPlanes(const Task& task, const Form& form, Arguments* arguments) {
  const bool is_data = task.primitive == Primitive::kBackwardData;
  const Operand from = is_data ? kY : kX;
  const Operand to = is_data ? kX : kY;
  const Origin row = OriginOf(task, task.problem.axes[0]);
  const Origin column = OriginOf(task, task.problem.axes[1]);
  arguments->to_row = row.to;
  arguments->from_row = row.from;
  arguments->to_column = column.to;
  arguments->from_column = column.from;
  arguments->from = PlanesOf(task, from, column.from);
  arguments->to = PlanesOf(task, to, column.to);
  const Tile tile = depthwise_rows::TileOf(form, static_cast<int>(SizeOf(task.problem.type)));
  arguments->runs = DivisorOf(CeilDivide(arguments->to.width - column.to, tile.columns));
  arguments->strips = DivisorOf(CeilDivide(arguments->to.height - row.to, tile.rows));
}

/// Sums of a channel's tiles in slices, which depend on the shape alone.
void SetSlices(const Task& task, std::int64_t tiles, DepthwiseRows* rows) {
  constexpr std::int64_t kWarp = 32;
  const std::int64_t of_threads = CeilDivide(tiles, kWarp) * kWarp;
  rows->threads = static_cast<int>(std::min<std::int64_t>(of_threads, depthwise_rows::kThreads));
  rows->slices = CeilDivide(tiles, std::int64_t{rows->threads} * depthwise_rows::kTilesOfThread);
  rows->blocks = rows->slices * task.problem.x_channels;
  const bool is_double = task.problem.type == DataType::kDouble;
  rows->workspace = static_cast<std::size_t>(rows->blocks) *
                    static_cast<std::size_t>(rows->form.side * rows->form.side) *
                    (is_double ? sizeof(double) : sizeof(float));
}

constexpr int kPrimitives = 3;
constexpr int kForms = 4;

Result<CUkernel> FindKernel(const Task& task, const Form& form) {
  static auto& data_table =
      *new cuda::KernelTable<kPrimitives * kForms>(cuda::kImage_conv_depthwise_rows);
  static auto& filter_table =
      *new cuda::KernelTable<kForms>(cuda::kImage_conv_depthwise_rows_filter);
  constexpr std::array<const char*, kForms> kNames = {"3x3", "5x5", "3x3_by_2", "5x5_by_2"};
  const int index = (form.step == 2 ? 2 : 0) + (form.side == 5 ? 1 : 0);
  const std::string name = kNames.at(index);
  if (task.primitive == Primitive::kBackwardFilter) {
    return filter_table.Find(index, "gradsmith_depthwise_rows_filter_" + name, task.problem.type);
  }
  // By single steps backward data is forward with taps in reverse.
  const std::string direction = form.step == 1 ? "" : form.spreads ? "data_" : "forward_";
  return data_table.Find(
      (form.spreads ? kForms : 0) + index, "gradsmith_depthwise_rows_" + direction + name,
      task.problem.type);
}

class DepthwiseRowsPlan final : public internal::Plan {
 public:
  DepthwiseRowsPlan(const Task& task, const DepthwiseRows& rows, CUkernel kernel)
      : task_(task), rows_(rows), kernel_(kernel) {}

  [[nodiscard]] std::size_t workspace() const override { return rows_.workspace; }

  Status Run(const internal::Launch& launch) override {
    auto* stream = static_cast<CUstream>(launch.stream);
    const cuda::LaunchShape shape = {
        .blocks_x = static_cast<unsigned>(rows_.blocks),
        .threads = static_cast<unsigned>(rows_.threads)};
    return task_.primitive == Primitive::kBackwardFilter ? RunFilter(stream, shape, launch)
                                                         : RunData(stream, shape, launch);
  }

 private:
  Status RunData(CUstream stream, const cuda::LaunchShape& shape, const internal::Launch& launch)
      const {
    const Operand result = ResultOf(task_.primitive);
    const void* from = launch.operands[result == kX ? kY : kX];
    const void* filters = launch.operands[kW];
    return cuda::Launch(
        kernel_, shape, stream, rows_.arguments, from, filters, launch.operands[result],
        task_.accumulate);
  }

  Status RunFilter(CUstream stream, const cuda::LaunchShape& shape, const internal::Launch& launch)
      const {
    const void* x = launch.operands[kX];
    const void* y = launch.operands[kY];
    if (Status status =
            cuda::Launch(kernel_, shape, stream, rows_.arguments, x, y, launch.workspace);
        !status.ok()) {
      return status;
    }
    const std::int64_t taps = std::int64_t{rows_.form.side} * rows_.form.side;
    TensorRef sums(
        task_.problem.type, launch.operands[kW], Dims{task_.problem.x_channels * taps}, Strides{1});
    sums.accumulate = task_.accumulate;
    return cuda::SumPartials(stream, rows_.slices, launch.workspace, sums);
  }

  Task task_;
  DepthwiseRows rows_;
  CUkernel kernel_;
};

}  // namespace

std::optional<DepthwiseRows> PlanDepthwiseRows(const Task& task) {
  const Problem& problem = task.problem;
  if (!HasForm(problem)) {
    return std::nullopt;
  }
  for (const Operand operand : {kX, kY}) {
    if (!HasDenseRows(problem, operand) || !HasSmallPlanes(problem, operand)) {
      return std::nullopt;
    }
  }
  DepthwiseRows rows;
  rows.form = {
      .side = static_cast<int>(problem.axes[1].w),
      .step = static_cast<int>(StepOf(task)),
      .spreads = Spreads(task)};
  Arguments& arguments = rows.arguments;
  SetPlanes(task, rows.form, &arguments);
  arguments.reversed = task.primitive == Primitive::kBackwardData && !rows.form.spreads;
  if (problem.x_channels > kMostTiles) {
    return std::nullopt;
  }
  arguments.channels = DivisorOf(problem.x_channels);
  const bool is_filter = task.primitive == Primitive::kBackwardFilter;
  const std::int64_t tiles_of_plane =
      std::int64_t{arguments.runs.divisor} * arguments.strips.divisor;
  const std::int64_t planes = problem.batch * (is_filter ? 1 : problem.x_channels);
  if (planes > kMostTiles / tiles_of_plane - depthwise_rows::kThreads) {
    return std::nullopt;
  }
  arguments.tiles = static_cast<std::uint32_t>(tiles_of_plane * planes);
  if (is_filter) {
    SetSlices(task, arguments.tiles, &rows);
  } else {
    rows.threads = depthwise_rows::kThreads;
    rows.blocks = CeilDivide(arguments.tiles, rows.threads);
  }
  return rows.blocks <= kMostTiles ? std::optional(rows) : std::nullopt;
}

Result<std::unique_ptr<internal::Plan>> MakeDepthwiseRowsPlan(
    const Task& task,
    const DepthwiseRows& rows) {
  const Result<CUkernel> kernel = FindKernel(task, rows.form);
  if (!kernel.ok()) {
    return kernel.status();
  }
  return std::unique_ptr<internal::Plan>(std::make_unique<DepthwiseRowsPlan>(task, rows, *kernel));
}

}  // namespace gradsmith::conv
