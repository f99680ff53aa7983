#ifndef GRADSMITH_CONV_CUDA_DEPTHWISE_ROWS_H_
#define GRADSMITH_CONV_CUDA_DEPTHWISE_ROWS_H_

#include <cstddef>
#include <memory>
#include <optional>

#include "conv/cuda/depthwise_rows_arguments.h"
#include "conv/task.h"
#include "core/plan.h"

/// Depthwise convolutions of tensors whose rows are dense, as in NCHW, with square filters of 3, 5
/// or 7 by steps of 1, or of 2 to 5 by steps of 2: each thread computes a tile of a plane in
/// registers, read through shared memory where rows are odd. The quick part of
/// conv/cuda/depthwise.h, which has the rest.
namespace gradsmith::conv {

/// DepthwiseRows is how such a task is launched.
struct DepthwiseRows {
  depthwise_rows::KernelConfig config{};
  depthwise_rows::Arguments arguments{};
  int threads = 0;
  std::int64_t blocks = 0;
  /// Goes through so much shared memory; 0: does not.
  int shared_bytes = 0;
  /// The slices of each channel for the filter's gradient, and the bytes of their partial sums.
  std::int64_t slices = 0;
  std::size_t workspace = 0;
};

/// PlanDepthwiseRows returns nothing where the task is no such one. Its filter must be dense.
std::optional<DepthwiseRows> PlanDepthwiseRows(const Task& task);

/// MakeDepthwiseRowsPlan returns a plan for a task and how it is launched.
Result<std::unique_ptr<internal::Plan>> MakeDepthwiseRowsPlan(
    const Task& task,
    const DepthwiseRows& rows);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_DEPTHWISE_ROWS_H_
