#ifndef GRADSMITH_CONV_CUDA_DEPTHWISE_LINES_H_
#define GRADSMITH_CONV_CUDA_DEPTHWISE_LINES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "conv/cuda/depthwise_lines_arguments.h"
#include "conv/task.h"
#include "core/plan.h"

/// Depthwise convolutions of tensors whose rows are dense, 1-D to 3-D, with filters of any size,
/// by multiply-adds in float or double: each thread sums a run of neighbours from lines that its
/// block has copied to shared memory.
namespace gradsmith::conv {

/// DepthwiseLines is how such a task is launched.
struct DepthwiseLines {
  /// The arguments of forward and backward data, or those of the filter's gradient.
  depthwise_lines::Arguments arguments{};
  depthwise_lines::FilterArguments filter_arguments{};
  /// Runs are long ones.
  bool is_long = false;
  int threads = 0;
  std::int64_t blocks = 0;
  int shared_bytes = 0;
  /// The slices of each channel for the filter's gradient, and the bytes of their partial sums.
  std::int64_t slices = 0;
  std::size_t workspace = 0;
};

/// PlanDepthwiseLines returns nothing where the task is no such one: where it has steps and
/// dilation along the last axis, or for backward data along that of rows, a filter that is not
/// dense or too large for shared memory, or sizes beyond 32 bits.
std::optional<DepthwiseLines> PlanDepthwiseLines(const Task& task);

/// MakeDepthwiseLinesPlan returns a plan for a task and how it is launched.
Result<std::unique_ptr<internal::Plan>> MakeDepthwiseLinesPlan(
    const Task& task,
    const DepthwiseLines& lines);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_DEPTHWISE_LINES_H_
