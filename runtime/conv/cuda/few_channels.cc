#include "conv/cuda/few_channels.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "conv/cuda/channels_last.h"
#include "conv/cuda/correlate_plan.h"
#include "conv/cuda/filter_slices.h"
#include "conv/cuda/parts.h"
#include "core/tiles.h"
#include "cuda/kernel_images.h"
#include "cuda/module.h"

namespace gradsmith::conv {

namespace {

using few_channels::Arguments;
using few_channels::DataKernel;
using few_channels::kConfigAt;
using few_channels::KernelConfig;
using internal::CeilDivide;

bool TakesProblem(const Task& task) {
  const Problem& problem = task.problem;
  if (problem.group != 1 || problem.spatial_rank < 2 || !CanBeCounted(problem)) {
    return false;
  }
  return std::all_of(
      problem.axes.begin(), problem.axes.begin() + problem.spatial_rank, HasThreeTapsAround);
}

/// The first configuration with room for the channels, which is the one with least; -1 for none.
int ConfigOf(const Problem& problem) {
  const auto* const found = std::ranges::find_if(kConfigAt, [&](const KernelConfig& config) {
    return problem.y_channels <= config.y_channels && problem.x_channels <= config.x_channels;
  });
  return found == std::end(kConfigAt) ? -1 : static_cast<int>(found - std::begin(kConfigAt));
}

bool HasDepth(const Task& task) {
  return task.problem.spatial_rank == 3;
}

DataKernel DataKernelOf(const Task& task, const FewChannels& few) {
  return {kConfigAt[few.config], few.are_chunks, HasDepth(task)};
}

/// Columns of a tile: strips are as wide as each other.
std::int64_t ColumnsOf(const Task& task, const FewChannels& few, std::int64_t width) {
  if (!IsFilter(task)) {
    return few_channels::kDataColumns;
  }
  const std::int64_t tiles = CeilDivide(width, few_channels::kTile);
  const std::int64_t most = few_channels::FilterTilesOf(kConfigAt[few.config], few.are_chunks);
  return CeilDivide(tiles, CeilDivide(tiles, most)) * few_channels::kTile;
}

Arguments ArgumentsOf(const Task& task, const FewChannels& few) {
  const Problem& problem = task.problem;
  const bool has_depth = HasDepth(task);
  const Axis& down = problem.axes.at(problem.spatial_rank - 2);
  const Axis& right = problem.axes.at(problem.spatial_rank - 1);
  const std::int64_t depth = has_depth ? problem.axes[0].x : 1;
  const std::int64_t columns = ColumnsOf(task, few, right.x);
  const std::int64_t strips = CeilDivide(right.x, columns);
  const std::int64_t bands = CeilDivide(
      down.x,
      IsFilter(task) ? few_channels::kRows : few_channels::DataRowsOf(DataKernelOf(task, few)));
  Arguments arguments{};
  arguments.y_channels = static_cast<int>(problem.y_channels);
  arguments.x_channels = static_cast<int>(problem.x_channels);
  arguments.height = static_cast<int>(down.x);
  arguments.width = static_cast<int>(right.x);
  arguments.depth = cuda::DivisorOf(depth);
  arguments.depth_taps = has_depth ? few_channels::kTaps : 1;
  arguments.columns = static_cast<int>(columns);
  arguments.strips = cuda::DivisorOf(strips);
  arguments.bands = cuda::DivisorOf(bands);
  // Of fewer positions than 2^31.
  arguments.planes = static_cast<int>(problem.batch * depth);
  arguments.works = static_cast<int>(problem.batch * depth * bands * strips);
  return arguments;
}

cuda::LaunchShape LaunchShapeOf(const Task& task, const FewChannels& few) {
  cuda::LaunchShape shape = {.blocks_x = static_cast<unsigned>(few.blocks)};
  if (IsFilter(task)) {
    const KernelConfig config = kConfigAt[few.config];
    const int tiles = few_channels::FilterTilesOf(config, few.are_chunks);
    shape.blocks_y = static_cast<unsigned>(few.arguments.depth_taps);
    shape.threads = static_cast<unsigned>(few_channels::FilterThreadsOf(config));
    shape.shared_bytes =
        static_cast<unsigned>(few_channels::FilterSharedBytes(config, tiles, few.are_chunks));
  } else {
    const DataKernel kernel = DataKernelOf(task, few);
    shape.threads = static_cast<unsigned>(few_channels::DataThreadsOf(kernel));
    shape.shared_bytes = static_cast<unsigned>(
        few_channels::DataSharedBytes(kernel, few_channels::DataRowsOf(kernel)));
  }
  return shape;
}

/// What a block's numbers of works count.
std::int64_t StepsOf(const Task& task, const FewChannels& few) {
  const std::int64_t steps = IsFilter(task) ? 1 : few_channels::StepsOf(DataKernelOf(task, few));
  return few.arguments.works * steps;
}

std::string KernelOf(const Task& task, const FewChannels& few) {
  const char* const of_x = HasDepth(task) ? "volumes_" : "data_";
  return NarrowKernel(
      std::string("gradsmith_few_channels_") + (IsFilter(task) ? "filter_" : of_x) +
          (few.are_chunks ? "chunks_" : "rows_") + std::to_string(few.config),
      task.problem.type);
}

}  // namespace

std::size_t FewChannels::workspace() const {
  const Arguments& p = arguments;
  return static_cast<std::size_t>(slices) * sizeof(float) * static_cast<std::size_t>(p.y_channels) *
         static_cast<std::size_t>(p.x_channels) *
         static_cast<std::size_t>(p.depth_taps * few_channels::kTapsOfPlane);
}

std::optional<FewChannels> PlanFewChannels(int compute_capability, const Task& task) {
  const Problem& problem = task.problem;
  if (task.primitive == Primitive::kForward || !FitsNarrow(compute_capability, task) ||
      !TakesProblem(task)) {
    return std::nullopt;
  }
  FewChannels few;
  few.config = ConfigOf(problem);
  if (few.config < 0) {
    return std::nullopt;
  }
  few.are_chunks = problem.x_channels % few_channels::kVector == 0 &&
                   problem.y_channels % few_channels::kVector == 0;
  few.arguments = ArgumentsOf(task, few);
  // Blocks count beyond the last one.
  if (constexpr int kMostSteps = 1 << 30; StepsOf(task, few) > kMostSteps) {
    return std::nullopt;
  }
  const int rows_of_blocks = IsFilter(task) ? few.arguments.depth_taps : 1;
  few.blocks =
      std::min<std::int64_t>(few.arguments.works, kMultiprocessorsOfSlices / rows_of_blocks);
  few.slices = IsFilter(task) ? few.blocks : 0;
  return few;
}

bool MayBeFewChannels(const Task& task) {
  return PlanFewChannels(kFirstWithHopperMemory, task).has_value();
}

Result<std::unique_ptr<internal::Plan>>
MakeFewChannelsPlan(int device, const Task& task, const FewChannels& few) {
  const cuda::LaunchShape shape = LaunchShapeOf(task, few);
  const Result<CUkernel> kernel = cuda::FindKernelOf(
      static_cast<int>(shape.shared_bytes), device,
      {&cuda::kImage_conv_few_channels_filter, &cuda::kImage_conv_few_channels_data},
      KernelOf(task, few).c_str());
  if (!kernel.ok()) {
    return kernel.status();
  }
  if (!IsFilter(task)) {
    return std::unique_ptr<internal::Plan>(
        std::make_unique<CorrelatePlan<Arguments>>(task, few.arguments, shape, *kernel));
  }
  const FilterSlices<Arguments> slices = {
      .kernel = *kernel, .shape = shape, .arguments = few.arguments, .count = few.slices};
  return std::unique_ptr<internal::Plan>(
      std::make_unique<FilterAndSumsPlan<Arguments>>(task, slices, few.workspace()));
}

}  // namespace gradsmith::conv
