#include "conv/cuda/grouped.h"

#include <algorithm>
#include <string>

#include "conv/cuda/channels_last.h"
#include "conv/cuda/one_pass_plan.h"
#include "conv/cuda/parts.h"
#include "core/tiles.h"
#include "cuda/kernel_images.h"
#include "cuda/module.h"

namespace gradsmith::conv {

namespace {

using grouped::Arguments;
using internal::CeilDivide;

/// Whether a slice is of whole groups, and all channels are of whole slices.
bool TakesChannels(const Problem& problem) {
  if (problem.group <= 1 || problem.x_channels != problem.y_channels ||
      problem.x_channels % grouped::kSlice != 0) {
    return false;
  }
  const std::int64_t group_channels = problem.x_channels / problem.group;
  return group_channels > 1 && grouped::kSlice % group_channels == 0;
}

bool TakesProblem(const Problem& problem) {
  return problem.spatial_rank == 2 && HasThreeTapsAround(problem.axes[0]) &&
         HasThreeTapsAround(problem.axes[1]) && TakesChannels(problem) && CanBeCounted(problem);
}

Arguments ArgumentsOf(const Problem& problem) {
  Arguments arguments{};
  const std::int64_t eights = CeilDivide(problem.axes[1].x, grouped::kColumns);
  const std::int64_t strips = CeilDivide(eights, grouped::kMostEights);
  const std::int64_t bands = CeilDivide(problem.axes[0].x, grouped::kBand);
  arguments.height = static_cast<int>(problem.axes[0].x);
  arguments.width = static_cast<int>(problem.axes[1].x);
  arguments.channels = static_cast<int>(problem.x_channels);
  arguments.group_channels = static_cast<int>(problem.x_channels / problem.group);
  arguments.eights = static_cast<int>(CeilDivide(eights, strips));
  // Strips of as many eights may be fewer.
  arguments.strips = static_cast<int>(CeilDivide(eights, arguments.eights));
  arguments.bands = static_cast<int>(bands);
  arguments.all_bands = static_cast<int>(problem.batch * arguments.strips * bands);
  arguments.row_bytes_of_y = grouped::RowBytesOfY(arguments.eights);
  arguments.row_bytes_of_x = grouped::RowBytesOfX(arguments.eights);
  return arguments;
}

}  // namespace

std::size_t Grouped::workspace() const {
  return static_cast<std::size_t>(blocks) * static_cast<std::size_t>(arguments.channels) *
         static_cast<std::size_t>(arguments.group_channels) * grouped::kTaps * grouped::kTaps *
         sizeof(float);
}

std::optional<Grouped> PlanGrouped(int compute_capability, const Task& data, const Task& filter) {
  const Problem& problem = data.problem;
  if (!FitOnePass(compute_capability, data, filter) || !TakesProblem(problem)) {
    return std::nullopt;
  }
  // What a block copies before its first band, and leaves for another kernel to add up, is little
  // beside so many.
  constexpr std::int64_t kFewestBands = 4;
  Grouped grouped;
  grouped.arguments = ArgumentsOf(problem);
  grouped.slabs = CeilDivide(problem.x_channels, grouped::kChannels);
  const std::int64_t at_once =
      std::int64_t{kMultiprocessorsOfSlices} * grouped::BlocksOfGroups(grouped.is_narrow());
  grouped.blocks = std::min(
      CeilDivide(grouped.arguments.all_bands, kFewestBands),
      std::max<std::int64_t>(at_once / grouped.slabs, 1));
  return grouped;
}

Result<std::unique_ptr<internal::Plan>>
MakeGroupedPlan(int device, const Task& data, const Task& filter, const Grouped& grouped) {
  const std::string name = NarrowKernel(
      grouped.is_narrow() ? "gradsmith_grouped_narrow" : "gradsmith_grouped_wide",
      data.problem.type);
  const Result<CUkernel> kernel = cuda::FindKernelOf(
      grouped::SharedBytes(grouped::kMostEights), device, {&cuda::kImage_conv_grouped},
      name.c_str());
  if (!kernel.ok()) {
    return kernel.status();
  }
  const FilterSlices<Arguments> slices = {
      .kernel = *kernel,
      .shape =
          {.blocks_x = static_cast<unsigned>(grouped.slabs),
           .blocks_y = static_cast<unsigned>(grouped.blocks),
           .threads = grouped::kThreads,
           .shared_bytes = static_cast<unsigned>(grouped::SharedBytes(grouped.arguments.eights))},
      .arguments = grouped.arguments,
      .count = grouped.blocks};
  return std::unique_ptr<internal::Plan>(std::make_unique<OnePassPlan<Arguments>>(
      data, filter, slices, grouped.blocks, grouped.workspace()));
}

}  // namespace gradsmith::conv
