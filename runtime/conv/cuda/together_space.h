#ifndef GRADSMITH_CONV_CUDA_TOGETHER_SPACE_H_
#define GRADSMITH_CONV_CUDA_TOGETHER_SPACE_H_

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "conv/cuda/call_plan.h"
#include "conv/cuda/one_pass.h"
#include "conv/task.h"
#include "core/candidate.h"
#include "core/candidate_name.h"
#include "core/plan.h"
#include "core/problem_key.h"
#include "core/selection.h"
#include "cuda/run_op.h"

/// The ways to compute a call's outputs together, once it is chosen how each would be computed
/// alone.
namespace gradsmith::conv {

/// ReadyTask is one of a call's primitives, the key that its choice is remembered by, and the plan
/// that was chosen for it alone.
struct ReadyTask {
  Task task;
  internal::ProblemKey key;
  std::shared_ptr<internal::Plan> plan;
};

/// ReadyCall is a call whose primitives could be computed alone.
struct ReadyCall {
  const cuda::TaskCall& op;
  std::vector<ReadyTask> tasks = {};
  std::optional<BiasSums> sums = {};

  /// Bytes of workspace.
  [[nodiscard]] std::size_t limit() const;
};

/// ChoiceAlone is what was chosen for a primitive alone.
struct ChoiceAlone {
  internal::Decision decision;
  internal::KernelName kernel;
};
using ChoicesAlone = std::array<ChoiceAlone, 2>;

/// MakeCallPlan returns a plan for the call of these parts, which are the primitives' own plans or
/// others.
std::unique_ptr<CallPlan> MakeCallPlan(const ReadyCall& call, std::vector<Part> parts, Order order);

/// PlanInOrder returns one of the primitives' own plans.
std::unique_ptr<CallPlan> PlanInOrder(const ReadyCall& call, Order order);

/// kMostForSideBySide is how much more memory is taken for going side by side without a search.
inline constexpr std::size_t kMostForSideBySide = std::size_t{256} << 20U;

/// InOnePass returns how a call's gradients are computed in one pass.
OnePass InOnePass(const ReadyCall& call);

/// MakeTogetherSpace returns two of a call's primitives, and its bias gradient where it has one, as
/// a problem of their own. A candidate's id is the arrangement of two kernels, or of one that
/// computes all. The call outlives the space.
std::unique_ptr<internal::SearchSpace>
MakeTogetherSpace(const ReadyCall& call, ChoicesAlone alone, Order likely);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_TOGETHER_SPACE_H_
