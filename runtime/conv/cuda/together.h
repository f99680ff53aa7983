#ifndef GRADSMITH_CONV_CUDA_TOGETHER_H_
#define GRADSMITH_CONV_CUDA_TOGETHER_H_

#include <span>

#include "conv/cuda/call_plan.h"
#include "conv/task.h"
#include "core/plan.h"
#include "core/problem_key.h"
#include "cuda/device.h"
#include "gradsmith/context.h"

/// The choice of how a call's outputs are computed together, once it is chosen how each would be
/// computed alone.
namespace gradsmith::conv {

/// ReadyTask is one of a call's primitives, the key that its choice is remembered by, and the plan
/// that was chosen for it alone.
struct ReadyTask {
  Task task;
  internal::ProblemKey key;
  internal::Plan* plan = nullptr;
};

/// FindCallPlan returns the plan for a call, which this thread keeps as it keeps plans. In
/// benchmark mode two primitives are timed together: in turn and side by side, and in forms that
/// share their copies, where either alone would be quicker without. The choice is remembered as
/// others are. In other modes, and where nothing may be timed, a rule decides.
CallPlan& FindCallPlan(
    const Context& context,
    const cuda::DeviceInfo& device,
    std::span<const ReadyTask> tasks,
    const BiasSums* sums,
    Operand shared,
    const CallAddresses& addresses);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_TOGETHER_H_
