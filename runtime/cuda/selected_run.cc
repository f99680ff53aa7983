#include "cuda/selected_run.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "core/search_revision.h"
#include "core/selection.h"
#include "cuda/capture.h"
#include "cuda/cudnn.h"
#include "cuda/thread_state.h"
#include "cuda/workspace_arena.h"

namespace gradsmith::cuda {

namespace {

using internal::IsDeterministic;
using internal::LimitBucket;
using internal::Plan;
using internal::ProblemKey;
using internal::ReadyPlan;
using internal::SearchSpace;
using internal::Serves;
using internal::SpaceMaker;
using internal::WorkspaceArena;

/// The context's policies and the library that is needed, for errors.
std::string PolicyText(const Context& context, DataType type, Needs needs) {
  const std::size_t limit = context.workspace_arena()->limit();
  return std::string(" (") +
         (IsDeterministic(context, type) ? "deterministic" : "any order of sums") +
         (context.options().allow_tf32 ? ", TF32 allowed" : ", no TF32") +
         (context.options().allow_reduced_accuracy ? ", reduced accuracy allowed" : "") +
         (context.options().exact_padding ? ", exact padding" : "") + ", search mode " +
         std::string(ToString(context.search_mode())) +
         (limit == kNoLimit ? std::string(", no workspace limit")
                            : ", workspace limit " + std::to_string(limit)) +
         (needs == Needs::kCudnn ? "; " + CudnnVersionText() : "") + ")";
}

Status NoSearch(const SearchSpace& space) {
  return InvalidArgument(
      space.Describe() +
      ": no kernel was chosen yet, and none can be sought while the stream is captured into a CUDA "
      "graph; run or prepare the call once before (Context::ForPreparing)");
}

Result<ReadyPlan> MakeReady(
    const Context& context,
    DataType type,
    const ProblemKey& key,
    const SpaceMaker& maker,
    Needs needs) {
  const std::unique_ptr<SearchSpace> space = maker();
  const bool capturing = IsCapturing(static_cast<CUstream>(context.options().stream));
  const RelaxedCapture relaxed;
  Result<ReadyPlan> ready =
      internal::MakeReady(context, key, *space, [&]() -> Result<internal::Selected> {
        return capturing ? Result<internal::Selected>(NoSearch(*space))
                         : internal::Select(*space, PolicyOf(context, type));
      });
  return ready.ok() ? std::move(ready) : Explained(context, type, "", ready.status(), needs);
}

}  // namespace

Result<const DeviceInfo*> OpenCall(const Context& context, Needs needs) {
  if (!context.status().ok()) {
    return context.status();
  }
  Result<const DeviceInfo*> device = DeviceInfo::Open(context.device().index);
  return device.ok() && needs == Needs::kCudnn && !LoadCudnn().ok() ? LoadCudnn().status() : device;
}

Status Explained(
    const Context& context,
    DataType type,
    const std::string& what,
    const Status& status,
    Needs needs) {
  if (status.ok()) {
    return status;
  }
  return {
      status.code(),
      what + (what.empty() ? "" : ": ") + status.message() + PolicyText(context, type, needs)};
}

internal::SearchPolicy PolicyOf(const Context& context, DataType type) {
  return internal::PolicyOf(context, type, context.workspace_arena()->limit());
}

Origin OriginOf(const DeviceInfo& device, int family_revision) {
  return {
      .device = device.fingerprint(),
      .cudnn = LoadCudnn().ok() ? LoadCudnn()->version : 0,
      .search = internal::SearchFingerprint(family_revision)};
}

void AddPolicy(
    const Context& context,
    const Origin& origin,
    DataType type,
    internal::ProblemKey* key) {
  key->Add(
      (IsDeterministic(context, type) ? 1 : 0) + (context.options().allow_tf32 ? 2 : 0) +
      (context.search_mode() == SearchMode::kDefault ? 4 : 0) +
      (context.options().allow_reduced_accuracy ? 8 : 0) +
      (context.options().exact_padding ? 16 : 0) +
      (internal::FirstChoiceSeconds(context) > 0 ? 0 : 32));
  key->Add(static_cast<std::int64_t>(LimitBucket(context.workspace_arena()->limit())));
  for (const std::int64_t word : {origin.device, origin.cudnn, origin.search}) {
    key->Add(word);
  }
}

void AddAddresses(std::span<void* const> addresses, ProblemKey* key) {
  for (const void* address : addresses) {
    key->Add(AddressWord(address));
  }
}

Result<Plan*> FindPlan(
    const Context& context,
    const DeviceInfo& device,
    DataType type,
    const ProblemKey& key,
    const SpaceMaker& maker,
    Needs needs) {
  ThreadState& state = ThreadState::OfThisThread(device);
  ReadyPlan* ready = state.plans().Find(key);
  if (ready == nullptr || !Serves(context, key, ready)) {
    Result<ReadyPlan> made = MakeReady(context, type, key, maker, needs);
    if (!made.ok()) {
      return made.status();
    }
    ready = &state.plans().Insert(key, std::move(*made));
  }
  return ready->plan.get();
}

Status RunPlanned(
    const Context& context,
    const DeviceInfo& device,
    PlannedCall* call,
    const Enqueuing& enqueue) {
  Result<WorkspaceArena::Lease> lease = context.workspace_arena()->Take(call->workspace);
  if (!lease.ok() || (context.preparing() && lease->capturing)) {
    return lease.status();
  }
  const auto in_workspace = [&](Branches& branches) { return enqueue(branches, lease->address); };
  auto* stream = static_cast<CUstream>(context.options().stream);
  ThreadState& state = ThreadState::OfThisThread(device);
  if (lease->capturing) {
    state.Keep(call->plan);
    Branches alone(stream);
    return in_workspace(alone);
  }
  call->key.Add(static_cast<std::int64_t>(call->plan.serial()));
  call->key.Add(AddressWord(lease->address));
  const bool is_first = call->plan.TakeFirstRun();
  return context.preparing() ? state.call_graphs().Prepare(stream, call->key, in_workspace)
                             : state.call_graphs().Run(stream, call->key, in_workspace, is_first);
}

}  // namespace gradsmith::cuda
