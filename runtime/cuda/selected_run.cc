#include "cuda/selected_run.h"

#include <bit>
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

/// The context's policies and the library, for errors.
std::string PolicyText(const Context& context, DataType type) {
  const std::size_t limit = context.workspace_arena()->limit();
  return std::string(" (") +
         (IsDeterministic(context, type) ? "deterministic" : "any order of sums") +
         (context.options().allow_tf32 ? ", TF32 allowed" : ", no TF32") +
         (context.options().allow_reduced_accuracy ? ", reduced accuracy allowed" : "") +
         (context.options().exact_padding ? ", exact padding" : "") + ", search mode " +
         std::string(ToString(context.search_mode())) +
         (limit == kNoLimit ? std::string(", no workspace limit")
                            : ", workspace limit " + std::to_string(limit)) +
         "; " + CudnnVersionText() + ")";
}

Status NoSearch(const SearchSpace& space) {
  return InvalidArgument(
      space.Describe() +
      ": no kernel was chosen yet, and none can be sought while the stream is captured into a CUDA "
      "graph; run or prepare the call once before (Context::ForPreparing)");
}

Result<ReadyPlan>
MakeReady(const Context& context, DataType type, const ProblemKey& key, const SpaceMaker& maker) {
  const std::unique_ptr<SearchSpace> space = maker.Make();
  const bool capturing = IsCapturing(static_cast<CUstream>(context.options().stream));
  const RelaxedCapture relaxed;
  Result<ReadyPlan> ready =
      internal::MakeReady(context, key, *space, [&]() -> Result<internal::Selected> {
        return capturing ? Result<internal::Selected>(NoSearch(*space))
                         : internal::Select(*space, PolicyOf(context, type));
      });
  return ready.ok() ? std::move(ready) : Explained(context, type, "", ready.status());
}

}  // namespace

Result<const DeviceInfo*> OpenCall(const Context& context) {
  if (!context.status().ok()) {
    return context.status();
  }
  Result<const DeviceInfo*> device = DeviceInfo::Open(context.device().index);
  // Without cuDNN our own kernels would do all the work, slowly and silently.
  return device.ok() && !LoadCudnn().ok() ? LoadCudnn().status() : device;
}

Status
Explained(const Context& context, DataType type, const std::string& what, const Status& status) {
  return status.ok() ? status
                     : Status(
                           status.code(), what + (what.empty() ? "" : ": ") + status.message() +
                                              PolicyText(context, type));
}

internal::SearchPolicy PolicyOf(const Context& context, DataType type) {
  return internal::PolicyOf(context, type, context.workspace_arena()->limit());
}

Origin OriginOf(const DeviceInfo& device) {
  return {
      .device = device.fingerprint(),
      .cudnn = LoadCudnn().ok() ? LoadCudnn()->version : 0,
      .search = internal::SearchFingerprint()};
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
      (context.options().exact_padding ? 16 : 0));
  key->Add(static_cast<std::int64_t>(LimitBucket(context.workspace_arena()->limit())));
  for (const std::int64_t word : {origin.device, origin.cudnn, origin.search}) {
    key->Add(word);
  }
}

int AlignmentClass(const void* address, DataType type) {
  constexpr int kVector = 16;
  return reinterpret_cast<std::uintptr_t>(address) % kVector == 0 ? kVector
                                                                  : static_cast<int>(SizeOf(type));
}

Result<Plan*> FindPlan(
    const Context& context,
    const DeviceInfo& device,
    DataType type,
    const ProblemKey& key,
    const SpaceMaker& maker) {
  ThreadState& state = ThreadState::OfThisThread(device);
  ReadyPlan* ready = state.plans().Find(key);
  if (ready == nullptr || !Serves(context, key, ready)) {
    Result<ReadyPlan> made = MakeReady(context, type, key, maker);
    if (!made.ok()) {
      return made.status();
    }
    ready = &state.plans().Insert(key, std::move(*made));
  }
  return ready->plan.get();
}

Status RunSelected(
    const Context& context,
    const DeviceInfo& device,
    DataType type,
    const ProblemKey& key,
    std::span<void* const> operands,
    const SpaceMaker& maker,
    std::span<const double> scalars) {
  const Result<Plan*> plan = FindPlan(context, device, type, key, maker);
  if (!plan.ok()) {
    return plan.status();
  }
  Result<WorkspaceArena::Lease> lease = context.workspace_arena()->Take((*plan)->workspace());
  if (!lease.ok() || (context.preparing() && lease->capturing)) {
    return lease.status();
  }
  const auto enqueue = [&](const Branches& branches) {
    return (*plan)->Run(
        {.stream = branches.stream(),
         .operands = operands,
         .workspace = lease->address,
         .scalars = scalars});
  };
  auto* stream = static_cast<CUstream>(context.options().stream);
  ThreadState& state = ThreadState::OfThisThread(device);
  const auto explained = [&](const Status& status) {
    return status.ok() ? status : Explained(context, type, maker.Make()->Describe(), status);
  };
  if (lease->capturing) {
    state.Keep(**plan);
    return explained(enqueue(Branches(stream)));
  }
  ProblemKey call;
  call.Add(static_cast<std::int64_t>((*plan)->serial()));
  call.Add(AddressWord(lease->address));
  for (const void* operand : operands) {
    call.Add(AddressWord(operand));
  }
  for (const double scalar : scalars) {
    call.Add(std::bit_cast<std::int64_t>(scalar));
  }
  const bool is_first = (*plan)->TakeFirstRun();
  return explained(
      context.preparing() ? state.call_graphs().Prepare(stream, call, enqueue)
                          : state.call_graphs().Run(stream, call, enqueue, is_first));
}

}  // namespace gradsmith::cuda
