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
using pointwise::KernelForm;
using pointwise::kFormAt;
using pointwise::kForms;

/// The form with least room that is enough; -1 for none.
int FormOf(const Problem& problem) {
  int best = -1;
  for (int i = 0; i < kForms; ++i) {
    const KernelForm& form = kFormAt[i];
    const bool fits =
        problem.y_channels <= form.y_channels && problem.x_channels <= form.x_channels;
    if (fits &&
        (best < 0 || pointwise::SharedBytes(form) < pointwise::SharedBytes(kFormAt[best]))) {
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
  pointwise.form = FormOf(problem);
  if (pointwise.form < 0) {
    return std::nullopt;
  }
  const KernelForm& form = kFormAt[pointwise.form];
  Arguments& arguments = pointwise.arguments;
  arguments.positions = NumElements(DimsOf(problem, kY)) / problem.y_channels;
  arguments.y_channels = static_cast<int>(problem.y_channels);
  arguments.x_channels = static_cast<int>(problem.x_channels);
  arguments.active_warps_of_x = pointwise::ActiveWarpsOfX(form, arguments.x_channels);
  pointwise.blocks = std::min<std::int64_t>(
      CeilDivide(arguments.positions, pointwise::kPositions),
      std::int64_t{kMultiprocessorsOfSlices} * form.blocks);
  return pointwise;
}

Result<std::unique_ptr<internal::Plan>>
MakePointwisePlan(int device, const Task& data, const Task& filter, const Pointwise& pointwise) {
  const std::string name =
      NarrowKernel("gradsmith_pointwise_" + std::to_string(pointwise.form), data.problem.type);
  const Result<CUkernel> kernel = cuda::FindKernelOf(
      pointwise::SharedBytes(kFormAt[pointwise.form]), device, {&cuda::kImage_conv_pointwise},
      name.c_str());
  if (!kernel.ok()) {
    return kernel.status();
  }
  const KernelForm& form = kFormAt[pointwise.form];
  const FilterSlices<Arguments> slices = {
      .kernel = *kernel,
      .shape =
          {.blocks_x = static_cast<unsigned>(pointwise.blocks),
           .threads = static_cast<unsigned>(pointwise::ThreadsOf(form)),
           .shared_bytes = static_cast<unsigned>(pointwise::SharedBytes(form))},
      .arguments = pointwise.arguments,
      .count = pointwise.blocks};
  return std::unique_ptr<internal::Plan>(std::make_unique<OnePassPlan<Arguments>>(
      data, filter, slices, pointwise.sum_rows(), pointwise.workspace()));
}

}  // namespace gradsmith::conv
