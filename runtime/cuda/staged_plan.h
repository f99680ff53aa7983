#ifndef GRADSMITH_CUDA_STAGED_PLAN_H_
#define GRADSMITH_CUDA_STAGED_PLAN_H_

#include <array>
#include <cstddef>
#include <memory>

#include "core/plan.h"
#include "cuda/device.h"
#include "cuda/op_task.h"
#include "gradsmith/status.h"

/// Operands that an implementation does not take as they are (another layout, type or alignment, or
/// an output that it cannot add to) are staged: copied into the workspace before it runs, or out of
/// it afterwards.
namespace gradsmith::cuda {

/// StagedTask is a task as an implementation meets it, and which of its operands are staged. Staged
/// ones are present, aligned, and have their own types and strides; their dims are the task's.
/// Outputs may be present that the task does not want.
struct StagedTask {
  OpTask inner;
  std::array<bool, kMaxOperands> staged = {};
};

/// WithoutAdding stages those outputs of a task that are added to; each keeps its type and, where
/// it is dense, its layout. The error names an output that cannot be added to afterwards.
Result<StagedTask> WithoutAdding(const OpTask& task);

/// StagedBytes returns the workspace that staged operands take.
std::size_t StagedBytes(const StagedTask& staged);

/// StagePlan returns a plan for the task from one for staged.inner: `inner` itself where nothing is
/// staged.
std::unique_ptr<internal::Plan> StagePlan(
    const DeviceInfo& device,
    const OpTask& task,
    const StagedTask& staged,
    std::unique_ptr<internal::Plan> inner);

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_STAGED_PLAN_H_
