#include "conv/cuda/together.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conv/cuda/call.h"
#include "conv/cuda/fill_plan.h"
#include "conv/cuda/search_space.h"
#include "conv/cuda/together_space.h"
#include "core/candidate_name.h"
#include "core/decision_cache.h"
#include "core/ready_plan.h"
#include "core/selection.h"
#include "core/warning.h"
#include "cuda/capture.h"
#include "cuda/tensor_ops.h"
#include "cuda/thread_state.h"
#include "cuda/workspace_arena.h"

namespace gradsmith::conv {

namespace {

using internal::Decision;
using internal::KernelName;
using internal::Plan;
using internal::ProblemKey;
using internal::ReadyPlan;

/// The first word of keys, beside those of the three primitives.
constexpr std::int64_t kTogether = 0x103;

void AddSums(const std::optional<BiasSums>& sums, ProblemKey* key) {
  if (!sums) {
    return;
  }
  key->Add(static_cast<std::int64_t>(sums->from.type) + (sums->to.accumulate ? 256 : 0));
  key->Add(sums->from.dims);
  key->Add(sums->from.strides);
  key->Add(sums->to.strides);
}

/// Whether the gradients of x and w are likely to be quicker side by side than one after the other:
/// what one leaves of the device, the other fills. But those of half and bf16 that wait for memory
/// evict from the cache what they both read (docs/lab/gradients-together.md).
bool ArePromisingSideBySide(const Problem& problem) {
  constexpr double kEnoughForEachByte = 95;  // multiplications and additions
  const double terms = TermsOf({.primitive = Primitive::kForward, .problem = problem});
  const auto x = static_cast<double>(NumElements(DimsOf(problem, kX)));
  const auto y = static_cast<double>(NumElements(DimsOf(problem, kY)));
  const auto size = static_cast<double>(SizeOf(problem.type));
  return SizeOf(problem.type) > 2 || 4 * y * terms >= kEnoughForEachByte * (2 * x + y) * size;
}

/// PlanByRule chooses a plan without timing any.
std::unique_ptr<CallPlan> PlanByRule(const ReadyCall& call) {
  if (!call.tasks.empty() && ArePromisingSideBySide(call.tasks.front().task.problem)) {
    std::unique_ptr<CallPlan> aside = PlanInOrder(call, Order::kSideBySide);
    if (aside->workspace() <= call.limit() && aside->extra_workspace() <= kMostForSideBySide) {
      return aside;
    }
  }
  return PlanInOrder(call, Order::kInTurn);
}

/// What a choice for a call is remembered by: the problems, and what was chosen for each alone.
ProblemKey KeyOf(const ReadyCall& call, const ChoicesAlone& alone) {
  ProblemKey key;
  key.Add(kTogether);
  for (int i = 0; i < 2; ++i) {
    key.Add(static_cast<std::int64_t>(call.tasks[i].key.hash()));
    key.AddText(alone.at(i).decision.id);
  }
  AddSums(call.sums, &key);
  return key;
}

/// The choices for each primitive alone; none where one has been dropped since.
std::optional<ChoicesAlone> FindChoicesAlone(const ReadyCall& call) {
  ChoicesAlone alone;
  for (int i = 0; i < 2; ++i) {
    std::optional<Decision> found =
        call.op.context.decisions()->Find(call.tasks[i].key, call.op.context.search_mode());
    std::optional<KernelName> kernel = found ? KernelName::Read(found->id) : std::nullopt;
    if (!found || !kernel) {
      return std::nullopt;
    }
    alone.at(i) = {std::move(*found), std::move(*kernel)};
  }
  return alone;
}

bool MaySearch(const ReadyCall& call) {
  return call.op.context.search_mode() == SearchMode::kBenchmark &&
         !cuda::IsCapturing(call.op.stream());
}

/// Whether a quick choice is to be made among the candidates: beside others for a moment, or of
/// gradients in one pass, which is likely to be the best.
bool MayChoose(const ReadyCall& call) {
  if (call.op.context.search_mode() != SearchMode::kHeuristic ||
      cuda::IsCapturing(call.op.stream())) {
    return false;
  }
  return internal::FirstChoiceSeconds(call.op.context) > 0 || InOnePass(call).is_promising;
}

/// The plan for a call that is remembered, or that timing makes where that is allowed.
Result<ReadyPlan>
MakeReady(const ReadyCall& call, const ProblemKey& key, internal::SearchSpace& space) {
  return internal::MakeReady(call.op.context, key, space, [&]() -> Result<internal::Selected> {
    if (!MaySearch(call) && !MayChoose(call)) {
      return Unsupported("the rule is to decide");
    }
    internal::SearchPolicy policy = cuda::PolicyOf(call.op.context, call.op.type());
    // There are few, whose kernels are loaded.
    policy.first_choice_seconds /= 2;
    return internal::Select(space, policy);
  });
}

/// The choices for each primitive, and their plans.
Result<ReadyCall> MakeReadyCall(const cuda::TaskCall& op) {
  ReadyCall call{.op = op};
  const cuda::OperandAddresses addresses = cuda::AddressesOf(op.task);
  for (const Task& task : TasksOf(op.task)) {
    ReadyTask& ready = call.tasks.emplace_back();
    ready.task = task;
    AddTo(task, &ready.key);
    const auto make = [&] {
      return std::make_unique<ConvSearchSpace>(
          op.device, op.stream(), task, OperandsOf(task.primitive, addresses),
          cuda::PolicyOf(op.context, op.type()));
    };
    const Result<Plan*> plan = cuda::FindChoice(op, &ready.key, std::cref(make));
    if (!plan.ok()) {
      return plan.status();
    }
    ready.plan = (*plan)->shared_from_this();
  }
  if (const TensorRef& sums = op.task.tensors[kSums]; sums.present) {
    const ConstTensorRef from = op.task.lead();
    call.sums = {from, sums, cuda::PlanSums(from, call.limit())};
  }
  return call;
}

/// The plan for two primitives as it is remembered or chosen now; what is still the choice is kept.
void UpdateTogether(const ReadyCall& call, ReadyPlan* ready) {
  const cuda::RelaxedCapture relaxed;
  std::unique_ptr<CallPlan> by_rule = PlanByRule(call);
  SearchMode mode = SearchMode::kHeuristic;
  if (std::optional<ChoicesAlone> alone = FindChoicesAlone(call)) {
    const ProblemKey key = KeyOf(call, *alone);
    if (ready->plan != nullptr && internal::Serves(call.op.context, key, ready)) {
      return;
    }
    const std::unique_ptr<internal::SearchSpace> space =
        MakeTogetherSpace(call, std::move(*alone), by_rule->order());
    Result<ReadyPlan> made = MakeReady(call, key, *space);
    if (made.ok()) {
      *ready = std::move(*made);
      return;
    }
    if (MaySearch(call)) {
      internal::Warn(space->Describe() + ": not timed together: " + made.status().message());
      mode = SearchMode::kBenchmark;  // timing would fail again
    }
  }
  if (ready->plan == nullptr || !ready->id.empty()) {
    ready->plan = std::move(by_rule);
    ready->id.clear();
  }
  ready->mode = mode;
}

/// One primitive, or none, is computed as it was chosen alone.
void UpdateAlone(const ReadyCall& call, ReadyPlan* ready) {
  ready->mode = call.op.context.search_mode();
  if (ready->plan == nullptr) {
    std::unique_ptr<CallPlan> plan = PlanByRule(call);
    plan->BeginWith(MakeFillPlan(call.op.device, call.op.task));
    ready->plan = std::move(plan);
  }
}

/// Whether a plan was made when the same had been chosen for each primitive alone.
bool IsMadeOf(const ReadyPlan& ready, const std::vector<ReadyTask>& tasks) {
  return ready.plan != nullptr &&
         std::ranges::equal(
             static_cast<const CallPlan&>(*ready.plan).alone(), tasks, {}, {}, &ReadyTask::plan);
}

bool IsUpToDate(const Context& context, const ReadyPlan& ready) {
  return ready.plan != nullptr && ready.generation == context.decisions()->generation() &&
         (context.search_mode() != SearchMode::kBenchmark || ready.mode == SearchMode::kBenchmark);
}

}  // namespace

Result<Plan*> FindCallPlan(const cuda::TaskCall& op, ProblemKey* key) {
  key->Add(static_cast<std::int64_t>(op.context.workspace_arena()->limit()));
  internal::ReadyPlans& plans = cuda::ThreadState::OfThisThread(op.device).plans();
  if (const ReadyPlan* ready = plans.Find(*key);
      ready != nullptr && IsUpToDate(op.context, *ready)) {
    return ready->plan.get();
  }
  // Decisions that are changed from here on are looked at by the next call.
  const std::uint64_t generation = op.context.decisions()->generation();
  const Result<ReadyCall> call = MakeReadyCall(op);
  if (!call.ok()) {
    return call.status();
  }
  ReadyPlan* ready = plans.Find(*key);
  if (ready == nullptr || !IsMadeOf(*ready, call->tasks)) {
    ready = &plans.Insert(*key, ReadyPlan());
  }
  call->tasks.size() < 2 ? UpdateAlone(*call, ready) : UpdateTogether(*call, ready);
  ready->generation = generation;
  return ready->plan.get();
}

}  // namespace gradsmith::conv
