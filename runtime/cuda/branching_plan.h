#ifndef GRADSMITH_CUDA_BRANCHING_PLAN_H_
#define GRADSMITH_CUDA_BRANCHING_PLAN_H_

#include "core/plan.h"
#include "cuda/call_graph.h"
#include "gradsmith/status.h"

namespace gradsmith::cuda {

/// BranchingPlan is a plan parts of which may run side by side where its call is recorded as a CUDA
/// graph.
class BranchingPlan : public internal::Plan {
 public:
  /// Enqueue enqueues the work on the branches, of which `launch.stream` is the first.
  virtual Status Enqueue(Branches& branches, const internal::Launch& launch) = 0;

  /// Run enqueues one part after the other.
  Status Run(const internal::Launch& launch) final {
    Branches alone(launch.stream);
    return Enqueue(alone, launch);
  }
};

/// EnqueuePlan enqueues a plan's work on the branches, those of a call that is being recorded or
/// its stream alone.
inline Status
EnqueuePlan(internal::Plan& plan, Branches& branches, const internal::Launch& launch) {
  auto* branching = dynamic_cast<BranchingPlan*>(&plan);
  return branching == nullptr ? plan.Run(launch) : branching->Enqueue(branches, launch);
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_BRANCHING_PLAN_H_
