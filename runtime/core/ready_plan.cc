#include "core/ready_plan.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "core/decision_cache.h"
#include "core/warning.h"

namespace gradsmith::internal {

namespace {

/// A plan for a decision; where it cannot be built any more the decision is forgotten.
std::unique_ptr<Plan> Rebuild(
    const Context& context,
    const ProblemKey& key,
    const Decision& decision,
    SearchSpace& space) {
  Result<std::unique_ptr<Plan>> plan = space.Build(decision.id);
  if (plan.ok()) {
    return std::move(*plan);
  }
  Warn(
      space.Describe() + ": the remembered kernel " + decision.id +
      " is not used: " + plan.status().message());
  // Memory may be there for another process.
  context.decisions()->Forget(key, decision.id, plan.status().code() != StatusCode::kOutOfMemory);
  return nullptr;
}

}  // namespace

std::size_t LimitBucket(std::size_t limit) {
  return limit == kNoLimit ? limit : std::bit_floor(limit);
}

bool IsDeterministic(const Context& context, DataType type) {
  return context.options().deterministic.value_or(type == DataType::kDouble);
}

double FirstChoiceSeconds(const Context& context) {
  const ContextOptions& options = context.options();
  return options.deterministic.value_or(false) ? 0 : options.first_choice_seconds;
}

SearchPolicy PolicyOf(const Context& context, DataType type, std::size_t workspace_limit) {
  SearchPolicy policy;
  policy.mode = context.search_mode();
  policy.deterministic = IsDeterministic(context, type);
  policy.allow_tf32 = context.options().allow_tf32;
  policy.allow_reduced_accuracy = context.options().allow_reduced_accuracy;
  policy.exact_padding = context.options().exact_padding;
  policy.workspace_limit = LimitBucket(workspace_limit);
  policy.budget_seconds = context.options().search_budget_seconds;
  policy.first_choice_seconds = FirstChoiceSeconds(context);
  policy.on_progress = context.options().on_search_progress;
  return policy;
}

/// Decisions have changed since where the generation has; a plan whose own has not is kept, as
/// building it anew may take seconds.
bool Serves(const Context& context, const ProblemKey& key, ReadyPlan* ready) {
  DecisionCache& cache = *context.decisions();
  const SearchMode mode = context.search_mode();
  const std::uint64_t generation = cache.generation();
  if (ready->generation != generation) {
    const std::optional<Decision> decision = cache.Find(key, mode);
    if (!decision || decision->id != ready->id) {
      return false;
    }
    ready->generation = generation;
    ready->mode = decision->mode;
  }
  return mode != SearchMode::kBenchmark || ready->mode == SearchMode::kBenchmark;
}

Result<ReadyPlan> MakeReady(
    const Context& context,
    const ProblemKey& key,
    SearchSpace& space,
    const std::function<Result<Selected>()>& search) {
  DecisionCache& cache = *context.decisions();
  // Twice at most: a decision that cannot be built is forgotten, and then there is a search.
  for (int attempt = 0; attempt < 2; ++attempt) {
    ReadyPlan ready;
    ready.generation = cache.generation();
    std::unique_ptr<Plan> searched;
    const Result<Decision> decision = cache.FindOrSearch(
        key, context.search_mode(), [&] { return space.Describe(); }, search, &searched);
    if (!decision.ok()) {
      return decision.status();
    }
    if (searched != nullptr) {
      // What replaces an older decision makes a new generation, to which this plan belongs.
      ready.generation = cache.generation();
    }
    ready.mode = decision->mode;
    ready.id = decision->id;
    ready.plan =
        searched != nullptr ? std::move(searched) : Rebuild(context, key, *decision, space);
    if (ready.plan != nullptr) {
      return ready;
    }
  }
  return Internal(space.Describe() + ": the kernel that was just chosen cannot be built");
}

}  // namespace gradsmith::internal
