#include "cpu/selected_run.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "core/search_revision.h"
#include "cpu/aligned_memory.h"

namespace gradsmith::cpu {

namespace {

using internal::Plan;
using internal::ProblemKey;
using internal::ReadyPlan;
using internal::SearchSpace;

/// A plan takes some tens of KiB.
constexpr std::size_t kPlansOfThread = 1024;

/// ThreadState is what one thread keeps: plans are not to be shared.
struct ThreadState {
  internal::ReadyPlans plans{kPlansOfThread};
  AlignedMemory workspace;

  static ThreadState& OfThisThread() {
    thread_local ThreadState state;
    return state;
  }

  void* Workspace(std::size_t bytes) {
    if (bytes > workspace.size()) {
      workspace = AlignedMemory();  // first, so that both are never there at once
      workspace = AlignedMemory(bytes);
    }
    return workspace.data();
  }
};

}  // namespace

internal::SearchPolicy PolicyOf(const Context& context, DataType type) {
  return internal::PolicyOf(context, type, context.options().workspace_limit);
}

void AddPolicy(const Context& context, DataType type, int family_revision, ProblemKey* key) {
  key->Add(
      (internal::IsDeterministic(context, type) ? 1 : 0) +
      (context.search_mode() == SearchMode::kDefault ? 4 : 0) +
      (context.options().allow_reduced_accuracy ? 8 : 0) +
      (internal::FirstChoiceSeconds(context) > 0 ? 0 : 32));
  key->Add(static_cast<std::int64_t>(internal::LimitBucket(context.options().workspace_limit)));
  key->Add(internal::SearchFingerprint(family_revision));
}

Status RunSelected(
    const Context& context,
    DataType type,
    const ProblemKey& key,
    std::span<void* const> operands,
    const internal::SpaceMaker& maker) {
  ThreadState& state = ThreadState::OfThisThread();
  ReadyPlan* ready = state.plans.Find(key);
  if (ready == nullptr || !internal::Serves(context, key, ready)) {
    const std::unique_ptr<SearchSpace> space = maker();
    Result<ReadyPlan> made = internal::MakeReady(
        context, key, *space, [&] { return internal::Select(*space, PolicyOf(context, type)); });
    if (!made.ok()) {
      return made.status();
    }
    ready = &state.plans.Insert(key, std::move(*made));
  }
  Plan& plan = *ready->plan;
  void* const workspace = state.Workspace(plan.workspace());
  if (context.preparing()) {
    return {};
  }
  const Status status =
      plan.Run({.operands = operands, .workspace = workspace, .context = &context});
  return status.ok() ? status : status.WithPrefix(maker()->Describe() + ": ");
}

}  // namespace gradsmith::cpu
