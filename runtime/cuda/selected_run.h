#ifndef GRADSMITH_CUDA_SELECTED_RUN_H_
#define GRADSMITH_CUDA_SELECTED_RUN_H_

#include <cstdint>
#include <span>
#include <string>

#include "core/plan.h"
#include "core/problem_key.h"
#include "core/ready_plan.h"
#include "core/selection.h"
#include "cuda/device.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"
#include "gradsmith/types.h"

/// How a call on CUDA finds its plan and runs it; the same for all families.
namespace gradsmith::cuda {

/// OpenCall returns the context's device; the error says what is missing.
Result<const DeviceInfo*> OpenCall(const Context& context);

/// PolicyOf returns the context's policies as selection takes them.
internal::SearchPolicy PolicyOf(const Context& context, DataType type);

/// Explained adds to an error what was computed, the context's policies, and cuDNN's version and
/// path; success stays success.
Status
Explained(const Context& context, DataType type, const std::string& what, const Status& status);

/// Origin is where a choice was made: another one's is never used.
struct Origin {
  /// DeviceInfo::fingerprint, which the driver's version is a part of.
  std::int64_t device = 0;
  /// cuDNN's version.
  std::int64_t cudnn = 0;
  /// internal::SearchFingerprint.
  std::int64_t search = 0;

  friend bool operator==(const Origin&, const Origin&) = default;
};

/// OriginOf returns that of choices for a device that this process makes.
Origin OriginOf(const DeviceInfo& device);

/// AddPolicy adds to a key what every choice depends on besides the problem: policies and origin.
void AddPolicy(
    const Context& context,
    const Origin& origin,
    DataType type,
    internal::ProblemKey* key);

/// AlignmentClass is 16 where an address is a multiple of it, otherwise an element's size.
int AlignmentClass(const void* address, DataType type);

/// FindPlan returns the plan that this thread holds for a problem's key, or builds the one that was
/// decided on, or searches. While the stream is captured, searching is refused. The thread keeps
/// the plan for longer than the call, and for as long as few others are asked for.
Result<internal::Plan*> FindPlan(
    const Context& context,
    const DeviceInfo& device,
    DataType type,
    const internal::ProblemKey& key,
    const internal::SpaceMaker& maker);

/// RunSelected finds a problem's plan and runs it. Where the context is preparing, everything but
/// the run is done: what a run enqueues is recorded. `scalars` are Launch's.
Status RunSelected(
    const Context& context,
    const DeviceInfo& device,
    DataType type,
    const internal::ProblemKey& key,
    std::span<void* const> operands,
    const internal::SpaceMaker& maker,
    std::span<const double> scalars = {});

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_SELECTED_RUN_H_
