#ifndef GRADSMITH_CORE_READY_PLAN_H_
#define GRADSMITH_CORE_READY_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/candidate.h"
#include "core/lru_map.h"
#include "core/plan.h"
#include "core/problem_key.h"
#include "core/selection.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"
#include "gradsmith/types.h"

/// How a decision becomes the plan that a call runs; the same for all backends.
namespace gradsmith::internal {

/// ReadyPlan is a plan that a thread has built, and the decision it was built from.
struct ReadyPlan {
  std::shared_ptr<Plan> plan;
  /// The id of the candidate.
  std::string id;
  SearchMode mode = SearchMode::kHeuristic;
  /// The generation of the decision cache when the plan was taken from it.
  std::uint64_t generation = 0;
};

using ReadyPlans = LruMap<ProblemKey, ReadyPlan, ProblemKeyHash>;

/// SpaceMaker makes a problem's search space, for the calls that have to search or build. A
/// std::cref of a lambda makes one that allocates nothing.
using SpaceMaker = std::function<std::unique_ptr<SearchSpace>()>;

/// LimitBucket returns what of a limit of workspace counts for a choice: limits that differ little
/// share their choices, by their power of two.
std::size_t LimitBucket(std::size_t limit);

/// IsDeterministic returns whether same inputs have to give the same bits: by default for double.
bool IsDeterministic(const Context& context, DataType type);

/// FirstChoiceSeconds returns for how long the first candidate of a new problem may be timed beside
/// others: not at all where the caller asks for the same bits each time.
double FirstChoiceSeconds(const Context& context);

/// PolicyOf returns what a search for a context respects.
SearchPolicy PolicyOf(const Context& context, DataType type, std::size_t workspace_limit);

/// Serves returns whether a plan is still the one to take for a key.
bool Serves(const Context& context, const ProblemKey& key, ReadyPlan* ready);

/// MakeReady builds the plan that was decided on for a key, or that `search` chooses.
Result<ReadyPlan> MakeReady(
    const Context& context,
    const ProblemKey& key,
    SearchSpace& space,
    const std::function<Result<Selected>()>& search);

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_READY_PLAN_H_
