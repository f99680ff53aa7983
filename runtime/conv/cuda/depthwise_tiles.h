#ifndef GRADSMITH_CONV_CUDA_DEPTHWISE_TILES_H_
#define GRADSMITH_CONV_CUDA_DEPTHWISE_TILES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "conv/cuda/depthwise_tiles_arguments.h"
#include "conv/task.h"
#include "core/plan.h"

/// Depthwise convolutions of tensors whose channels are dense, as in NHWC, with square filters of
/// 3, 5 or 7 by steps of 1, or of 2 to 5 by steps of 2, in float, half and bf16: each thread
/// computes a tile of two channels from what its block has copied to shared memory.
namespace gradsmith::conv {

/// DepthwiseTiles is how such a task is launched.
struct DepthwiseTiles {
  depthwise_tiles::KernelConfig config{};
  depthwise_tiles::Work work = depthwise_tiles::Work::kResult;
  depthwise_tiles::Arguments arguments{};
  int threads = 0;
  std::int64_t blocks = 0;
  int shared_bytes = 0;
  /// The bytes of the partial sums of a filter's gradient.
  std::size_t workspace = 0;
};

/// PlanDepthwiseTiles returns nothing where the task, a depthwise one with a dense filter, is no
/// such one: also where pixels are not aligned to 16 bytes, or channels no multiple of as many.
std::optional<DepthwiseTiles> PlanDepthwiseTiles(const Task& task);

/// MakeDepthwiseTilesPlan returns a plan for a task and how it is launched.
Result<std::unique_ptr<internal::Plan>> MakeDepthwiseTilesPlan(
    const Task& task,
    const DepthwiseTiles& tiles);

/// PlanBothByDepthwiseTiles returns how backward data and the backward filter of a problem are
/// launched as one, by single steps and where the filter's center is what joins pixels in the same
/// place; nothing for others.
std::optional<DepthwiseTiles> PlanBothByDepthwiseTiles(const Task& data, const Task& filter);

/// MakeBothByDepthwiseTilesPlan returns a plan for both. Its operands are those of a call (call.h);
/// it leaves partial sums of dY.
Result<std::unique_ptr<internal::Plan>>
MakeBothByDepthwiseTilesPlan(const Task& data, const Task& filter, const DepthwiseTiles& tiles);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_DEPTHWISE_TILES_H_
