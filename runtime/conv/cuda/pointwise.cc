#include "conv/cuda/pointwise.h"

#include <algorithm>
#include <string>

#include "conv/cuda/channels_last.h"
#include "conv/cuda/filter_slices.h"
#include "conv/cuda/one_pass_plan.h"
#include "core/tiles.h"
#include "cuda/kernel_images.h"
#include "cuda/module.h"

namespace gradsmith::conv {

namespace {

using internal::CeilDivide;
using pointwise::Arguments;
using pointwise::kConfigAt;
using pointwise::kConfigs;
using pointwise::KernelConfig;

/// The configuration with least room that is enough; -1 for none.
int ConfigOf(const Problem& problem) {
  int best = -1;
  for (int i = 0; i < kConfigs; ++i) {
    const KernelConfig& config = kConfigAt[i];
    const bool fits =
        problem.y_channels <= config.y_channels && problem.x_channels <= config.x_channels;
    if (fits &&
        (best < 0 || pointwise::SharedBytes(config) < pointwise::SharedBytes(kConfigAt[best]))) {
      best = i;
    }
  }
  return best;
}

}  // namespace

bool Pointwise::fills_device() const {
  return arguments.positions >= std::int64_t{kMultiprocessorsOfSlices} * pointwise::kPositions;
}

std::optional<Pointwise>
PlanPointwise(int compute_capability, const Task& data, const Task& filter) {
  const Problem& problem = data.problem;
  if (!FitOnePass(compute_capability, data, filter) || problem.group != 1 ||
      problem.x_channels % pointwise::kVector != 0 ||
      problem.y_channels % pointwise::kVector != 0 || !IsPointwise(problem)) {
    return std::nullopt;
  }
  Pointwise pointwise;
  pointwise.config = ConfigOf(problem);
  if (pointwise.config < 0) {
    return std::nullopt;
  }
  const KernelConfig& config = kConfigAt[pointwise.config];
  Arguments& arguments = pointwise.arguments;
  arguments.positions = NumElements(DimsOf(problem, kY)) / problem.y_channels;
  arguments.y_channels = static_cast<int>(problem.y_channels);
  arguments.x_channels = static_cast<int>(problem.x_channels);
  arguments.active_warps_of_x = pointwise::ActiveWarpsOfX(config, arguments.x_channels);
  pointwise.blocks = std::min<std::int64_t>(
      CeilDivide(arguments.positions, pointwise::kPositions),
      std::int64_t{kMultiprocessorsOfSlices} * config.blocks);
  return pointwise;
}

Result<std::unique_ptr<internal::Plan>>
MakePointwisePlan(int device, const Task& data, const Task& filter, const Pointwise& pointwise) {
  const std::string name =
      NarrowKernel("gradsmith_pointwise_" + std::to_string(pointwise.config), data.problem.type);
  const Result<CUkernel> kernel = cuda::FindKernelOf(
      pointwise::SharedBytes(kConfigAt[pointwise.config]), device, {&cuda::kImage_conv_pointwise},
      name.c_str());
  if (!kernel.ok()) {
    return kernel.status();
  }
  const KernelConfig& config = kConfigAt[pointwise.config];
  const FilterSlices<Arguments> slices = {
      .kernel = *kernel,
      .shape =
          {.blocks_x = static_cast<unsigned>(pointwise.blocks),
           .threads = static_cast<unsigned>(pointwise::ThreadsOf(config)),
           .shared_bytes = static_cast<unsigned>(pointwise::SharedBytes(config))},
      .arguments = pointwise.arguments,
      .count = pointwise.blocks};
  return std::unique_ptr<internal::Plan>(std::make_unique<OnePassPlan<Arguments>>(
      data, filter, slices, pointwise.sum_rows(), pointwise.workspace()));
}

}  // namespace gradsmith::conv
