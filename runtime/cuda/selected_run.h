#ifndef GRADSMITH_CUDA_SELECTED_RUN_H_
#define GRADSMITH_CUDA_SELECTED_RUN_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "core/plan.h"
#include "core/problem_key.h"
#include "core/ready_plan.h"
#include "core/selection.h"
#include "cuda/call_graph.h"
#include "cuda/device.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"
#include "gradsmith/types.h"

/// How a call on CUDA finds its plan and runs it; the same for all families.
namespace gradsmith::cuda {

/// Needs is what a family cannot do without.
enum class Needs : unsigned char {
  kDriver,  ///< its kernels are our own
  kCudnn,   ///< cuDNN too: without it our own kernels would do all the work, slowly and silently
};

/// OpenCall returns the context's device; the error says what is missing.
Result<const DeviceInfo*> OpenCall(const Context& context, Needs needs = Needs::kCudnn);

/// PolicyOf returns the context's policies as selection takes them.
internal::SearchPolicy PolicyOf(const Context& context, DataType type);

/// Explained adds to an error what was computed, the context's policies, and where cuDNN is needed
/// its version and path; success stays success.
Status Explained(
    const Context& context,
    DataType type,
    const std::string& what,
    const Status& status,
    Needs needs = Needs::kCudnn);

/// Origin is where a choice was made: another one's is never used.
struct Origin {
  /// DeviceInfo::fingerprint, which the driver's version is a part of.
  std::int64_t device = 0;
  /// cuDNN's version; 0 where there is none.
  std::int64_t cudnn = 0;
  /// internal::SearchFingerprint.
  std::int64_t search = 0;

  friend bool operator==(const Origin&, const Origin&) = default;
};

/// OriginOf returns that of a family's choices for a device that this process makes.
Origin OriginOf(const DeviceInfo& device, int family_revision);

/// AddPolicy adds to a key what every choice depends on besides the problem: policies and origin.
void AddPolicy(
    const Context& context,
    const Origin& origin,
    DataType type,
    internal::ProblemKey* key);

/// AddAddresses adds to a key the addresses of a call's operands.
void AddAddresses(std::span<void* const> addresses, internal::ProblemKey* key);

/// FindPlan returns the plan that this thread holds for a problem's key, or builds the one that was
/// decided on, or searches. While the stream is captured, searching is refused. The thread keeps
/// the plan for longer than the call, and for as long as few others are asked for.
Result<internal::Plan*> FindPlan(
    const Context& context,
    const DeviceInfo& device,
    DataType type,
    const internal::ProblemKey& key,
    const internal::SpaceMaker& maker,
    Needs needs = Needs::kCudnn);

/// PlannedCall is a call whose plan is found.
struct PlannedCall {
  internal::Plan& plan;
  /// Bytes that the plan runs in.
  std::size_t workspace = 0;
  /// What the work depends on beside the plan and the workspace: addresses and scalars.
  internal::ProblemKey key = {};
};

/// Enqueuing enqueues a call's work, in a workspace, on the streams it is given.
using Enqueuing = std::function<Status(Branches& branches, void* workspace)>;

/// RunPlanned takes the workspace and enqueues the work on the context's stream, as one CUDA graph
/// where it has been enqueued before; the key is completed on the way. Where the context is
/// preparing, everything but the run is done: what a run enqueues is recorded. While the stream is
/// captured, plans are kept for as long as the process lives. A std::cref of a lambda makes an
/// Enqueuing that allocates nothing.
Status RunPlanned(
    const Context& context,
    const DeviceInfo& device,
    PlannedCall* call,
    const Enqueuing& enqueue);

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_SELECTED_RUN_H_
