#include "conv/cuda/depthwise.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "conv/cuda/channels_last.h"
#include "conv/cuda/depthwise_arguments.h"
#include "conv/cuda/depthwise_rows.h"
#include "conv/cuda/filter_slices.h"
#include "core/tiles.h"
#include "cuda/kernel_images.h"
#include "cuda/kernel_table.h"

namespace gradsmith::conv {

namespace {

using depthwise::Arguments;
using internal::CeilDivide;

bool FitsInt(std::int64_t number) {
  // Positions are computed from sizes, pads, and taps times dilation: sums of three.
  return number <= std::numeric_limits<int>::max() / 4;
}

bool FitsInt(const Axis& axis) {
  return FitsInt(axis.x) && FitsInt(axis.y) && FitsInt(axis.y * axis.stride) &&
         FitsInt(axis.w * axis.dilation) && FitsInt(axis.pad_begin);
}

/// Every channel has a filter of its own, and all of it is of a size that the kernels take.
bool IsDepthwise(const Problem& problem) {
  bool fits = problem.group == problem.x_channels && problem.group == problem.y_channels &&
              FitsInt(problem.x_channels * TapsOf(problem)) &&
              TapsOf(problem) <= depthwise::kMaxTaps && IsContiguous(problem, kW);
  for (int i = 0; i < problem.spatial_rank; ++i) {
    fits = fits && FitsInt(problem.axes.at(i));
  }
  return fits;
}

bool HaveInnerChannels(const Task& task) {
  return task.problem.x_strides[1] == 1 && task.problem.y_strides[1] == 1;
}

/// The elements of a unit: a vector where all tensors can be read so, or one.
int UnitLength(const Task& task) {
  const DataType type = task.problem.type;
  const std::size_t sum_size = type == DataType::kDouble ? sizeof(double) : sizeof(float);
  const auto length = static_cast<int>(depthwise::kUnitSumBytes / sum_size);
  const int bytes = length * static_cast<int>(SizeOf(type));
  bool whole = HaveInnerChannels(task) && task.problem.x_channels % length == 0;
  for (const Operand operand : {kX, kY}) {
    const Strides& strides = StridesOf(task.problem, operand);
    for (int i = 0; i < strides.size(); ++i) {
      whole = whole && (i == 1 || strides[i] % length == 0);
    }
    whole = whole && task.alignment.at(operand) >= bytes;
  }
  return whole ? length : 1;
}

void SetAxes(const Problem& problem, Arguments* arguments) {
  const int missing = depthwise::kSpatialRank - problem.spatial_rank;
  for (int i = 0; i < depthwise::kSpatialRank; ++i) {
    const Axis axis = i < missing ? Axis() : problem.axes.at(i - missing);
    arguments->axes[i] = {
        .x = static_cast<int>(axis.x),
        .w = static_cast<int>(axis.w),
        .y = static_cast<int>(axis.y),
        .stride = static_cast<int>(axis.stride),
        .dilation = static_cast<int>(axis.dilation),
        .pad = static_cast<int>(axis.pad_begin)};
  }
}

/// The first two strides, and those of the spatial axes as the last ones.
void CopyStrides(const Strides& from, std::int64_t (&to)[depthwise::kRank]) {
  to[0] = from[0];
  to[1] = from[1];
  for (int i = 2; i < from.size(); ++i) {
    to[depthwise::kRank - from.size() + i] = from[i];
  }
}

/// Enough blocks to keep a large GPU busy where each sums filters on its own.
constexpr std::int64_t kFilterBlocks = 1056;

Arguments MakeArguments(const Task& task) {
  const Problem& problem = task.problem;
  Arguments arguments{};
  arguments.channels = static_cast<int>(problem.x_channels);
  arguments.taps = static_cast<int>(TapsOf(problem));
  SetAxes(problem, &arguments);
  CopyStrides(problem.x_strides, arguments.x_strides);
  CopyStrides(problem.y_strides, arguments.y_strides);
  const bool is_data = task.primitive == Primitive::kBackwardData;
  for (int i = 0; i < depthwise::kSpatialRank; ++i) {
    arguments.sizes[i] = is_data ? arguments.axes[i].x : arguments.axes[i].y;
  }
  // Tiles of rows of about the same size.
  arguments.rows = static_cast<int>(
      CeilDivide(arguments.sizes[1], CeilDivide(arguments.sizes[1], depthwise::kMaxRows)));
  arguments.row_tiles = static_cast<int>(CeilDivide(arguments.sizes[1], arguments.rows));
  arguments.columns = problem.batch * arguments.sizes[0] * arguments.row_tiles * arguments.sizes[2];
  // Neighbouring threads have neighbouring channels, or else neighbouring positions.
  const std::int64_t units = problem.x_channels / UnitLength(task);
  const std::int64_t most = HaveInnerChannels(task) ? depthwise::kMaxUnits : 1;
  arguments.unit_tiles = static_cast<int>(CeilDivide(units, most));
  arguments.units_of_block = static_cast<int>(CeilDivide(units, arguments.unit_tiles));
  arguments.columns_of_block = depthwise::kThreads / arguments.units_of_block;
  const std::int64_t slices = std::max<std::int64_t>(kFilterBlocks / arguments.unit_tiles, 1);
  arguments.columns_of_slice =
      CeilDivide(CeilDivide(arguments.columns, slices), arguments.columns_of_block) *
      arguments.columns_of_block;
  return arguments;
}

std::int64_t SlicesOf(const Arguments& arguments) {
  return CeilDivide(arguments.columns, arguments.columns_of_slice);
}

std::size_t PartialBytes(const Task& task, const Arguments& arguments) {
  const bool is_double = task.problem.type == DataType::kDouble;
  return static_cast<std::size_t>(SlicesOf(arguments)) * static_cast<std::size_t>(arguments.taps) *
         static_cast<std::size_t>(arguments.channels) *
         (is_double ? sizeof(double) : sizeof(float));
}

constexpr int kPrimitives = 3;
constexpr int kVariants = 6;

/// Whether filters of 3x3 go by single steps: neighbouring results share what they read.
bool GoesByWindows(const Arguments& arguments) {
  bool single_steps = true;
  for (const depthwise::AxisArguments& axis : {arguments.axes[1], arguments.axes[2]}) {
    single_steps = single_steps && axis.stride == 1 && axis.dilation == 1;
  }
  return single_steps;
}

/// A variant is for filters of any size or of 3x3, and for single channels or vectors of them.
Result<CUkernel> FindKernel(const Task& task, const Arguments& arguments) {
  static auto& table = *new cuda::KernelTable<kPrimitives * kVariants>(cuda::kImage_conv_depthwise);
  constexpr std::array<const char*, kPrimitives> kNames = {"forward", "data", "filter"};
  constexpr std::array<const char*, kVariants> kVariantNames = {
      "any", "any_vector", "3x3", "3x3_vector", "window", "window_vector"};
  const bool is_3x3 = arguments.taps == 9 && arguments.axes[1].w == 3 && arguments.axes[2].w == 3;
  const int of_3x3 = GoesByWindows(arguments) ? 4 : 2;
  const int taps = is_3x3 ? of_3x3 : 0;
  const int variant = taps + (UnitLength(task) > 1 ? 1 : 0);
  const auto primitive = static_cast<int>(task.primitive);
  return table.Find(
      (primitive * kVariants) + variant,
      std::string("gradsmith_depthwise_") + kNames.at(primitive) + "_" + kVariantNames.at(variant),
      task.problem.type);
}

class DepthwisePlan final : public internal::Plan {
 public:
  DepthwisePlan(const Task& task, CUkernel kernel)
      : task_(task),
        kernel_(kernel),
        arguments_(MakeArguments(task)),
        workspace_(DepthwiseWorkspace(task)),
        shared_bytes_(
            arguments_.taps * arguments_.units_of_block * UnitLength(task) *
            static_cast<int>(SizeOf(task.problem.type))) {}

  [[nodiscard]] std::size_t workspace() const override { return workspace_; }

  Status Run(const internal::Launch& launch) override {
    return task_.primitive == Primitive::kBackwardFilter ? RunFilter(launch) : RunData(launch);
  }

 private:
  Status RunData(const internal::Launch& launch) {
    CUstream stream = launch.stream;
    const Operand result = ResultOf(task_.primitive);
    const void* from = launch.operands[result == kX ? kY : kX];
    const void* filters = launch.operands[kW];
    const std::int64_t runs = CeilDivide(arguments_.columns, arguments_.columns_of_block);
    const cuda::LaunchShape shape = {
        .blocks_x = static_cast<unsigned>(runs * arguments_.unit_tiles),
        .threads = static_cast<unsigned>(arguments_.units_of_block * arguments_.columns_of_block),
        .shared_bytes = static_cast<unsigned>(shared_bytes_)};
    return cuda::Launch(
        kernel_, shape, stream, arguments_, from, filters, launch.operands[result],
        task_.accumulate);
  }

  Status RunFilter(const internal::Launch& launch) {
    const std::int64_t slices = SlicesOf(arguments_);
    const cuda::LaunchShape shape = {
        .blocks_x = static_cast<unsigned>(slices * arguments_.unit_tiles),
        .blocks_y = static_cast<unsigned>(CeilDivide(arguments_.taps, depthwise::kTapsAtOnce)),
        .threads = static_cast<unsigned>(arguments_.units_of_block * arguments_.columns_of_block)};
    return RunFilterSlices<Arguments>(task_, {kernel_, shape, arguments_, slices}, launch, {});
  }

  Task task_;
  CUkernel kernel_;
  Arguments arguments_;
  std::size_t workspace_;
  int shared_bytes_;
};

}  // namespace

bool HasGroupOfEachChannel(const Problem& problem) {
  return problem.group > 1 && problem.group == problem.x_channels;
}

std::int64_t TapsOf(const Problem& problem) {
  std::int64_t taps = 1;
  for (int i = 0; i < problem.spatial_rank; ++i) {
    taps *= problem.axes.at(i).w;
  }
  return taps;
}

bool DepthwiseFits(const Task& task) {
  if (!IsDepthwise(task.problem)) {
    return false;
  }
  if (PlanDepthwiseRows(task)) {
    return true;
  }
  const Arguments arguments = MakeArguments(task);
  const std::int64_t runs = CeilDivide(arguments.columns, arguments.columns_of_block);
  return runs <= std::numeric_limits<int>::max() / arguments.unit_tiles;
}

bool DepthwiseFitsByRows(const Task& task) {
  return IsDepthwise(task.problem) && PlanDepthwiseRows(task).has_value();
}

std::optional<DepthwiseTiles> DepthwiseTilesOf(const Task& task) {
  return IsDepthwise(task.problem) ? PlanDepthwiseTiles(task) : std::nullopt;
}

std::optional<DepthwiseTiles> BothByDepthwiseTilesOf(const Task& data, const Task& filter) {
  return IsDepthwise(data.problem) && IsDepthwise(filter.problem)
             ? PlanBothByDepthwiseTiles(data, filter)
             : std::nullopt;
}

std::optional<DepthwiseLines> DepthwiseLinesOf(const Task& task) {
  return DepthwiseFitsByRows(task) ? std::nullopt : PlanDepthwiseLines(task);
}

std::size_t DepthwiseWorkspace(const Task& task) {
  if (const std::optional<DepthwiseRows> rows = PlanDepthwiseRows(task)) {
    return rows->workspace;
  }
  return IsFilter(task) ? PartialBytes(task, MakeArguments(task)) : 0;
}

Result<std::unique_ptr<internal::Plan>> MakeDepthwisePlan(const Task& task) {
  if (const std::optional<DepthwiseRows> rows = PlanDepthwiseRows(task)) {
    return MakeDepthwiseRowsPlan(task, *rows);
  }
  const Result<CUkernel> kernel = FindKernel(task, MakeArguments(task));
  if (!kernel.ok()) {
    return kernel.status();
  }
  return std::unique_ptr<internal::Plan>(std::make_unique<DepthwisePlan>(task, *kernel));
}

}  // namespace gradsmith::conv
