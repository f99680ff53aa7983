#include "conv/cuda/call_plan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "conv/cuda/form.h"

namespace gradsmith::conv {

namespace {

/// Returns the address that lies `offset` bytes behind the beginning of a call's workspace.
void* At(const internal::Launch& call, std::size_t offset) {
  return static_cast<std::byte*>(call.workspace) + offset;
}

}  // namespace

CallPlan::CallPlan(CallParts call) : call_(std::move(call)) {
  for (std::size_t i = 0; i < call_.parts.size(); ++i) {
    sharing_.at(i) = dynamic_cast<SharingPlan*>(call_.parts[i].plan.get());
  }
  shares_copy_ = SharesCopy();
  summing_part_ = SummingPart();
  Place();
  if (summing_part_ >= 0 && workspace_ > call_.limit) {
    summing_part_ = -1;
    Place();
  }
}

const OperandCopy* CallPlan::CopyOfShared(std::size_t part) const {
  return sharing_.at(part) == nullptr ? nullptr : sharing_.at(part)->CopyOf(call_.shared);
}

bool CallPlan::SharesCopy() const {
  if (call_.parts.size() < 2) {
    return false;
  }
  const OperandCopy* first = CopyOfShared(0);
  const OperandCopy* second = CopyOfShared(1);
  return first != nullptr && second != nullptr && *first == *second;
}

int CallPlan::SummingPart() const {
  for (int i = 0; call_.sums && i < static_cast<int>(call_.parts.size()); ++i) {
    if (sharing_.at(i) != nullptr && sharing_.at(i)->PartialSumRows(call_.shared) > 0) {
      return i;
    }
  }
  return -1;
}

/// Partial sums and a shared copy first, for as long as the call lasts. Then what each part needs:
/// one behind the other where they may go side by side, at the same place where not.
void CallPlan::Place() {
  std::size_t for_sums = call_.sums ? call_.sums->plan.workspace : 0;
  if (call_.sums && summing_part_ >= 0) {
    partial_rows_ = sharing_.at(summing_part_)->PartialSumRows(call_.shared);
    for_sums = static_cast<std::size_t>(partial_rows_ * call_.sums->to.dims[0]) * sizeof(float);
  }
  workspace_ = largest_ = for_sums;
  const bool stay = summing_part_ >= 0 || call_.order == Order::kSideBySide;
  PlaceParts(stay ? AlignedWorkspace(for_sums) : 0);
}

/// Only where another piece follows is one's size rounded up: a limit need not be a multiple.
void CallPlan::PlaceParts(std::size_t begin) {
  const std::size_t shared_copy = begin;
  if (shares_copy_) {
    begin += CopyOfShared(0)->bytes;
  }
  for (std::size_t i = 0; i < call_.parts.size(); ++i) {
    const OperandCopy* copy = CopyOfShared(i);
    const std::size_t of_copy = copy == nullptr ? 0 : copy->bytes;
    const std::size_t own_copy = shares_copy_ ? 0 : of_copy;
    const std::size_t rest = call_.parts[i].plan->workspace() - of_copy;
    places_.at(i) = {shares_copy_ ? shared_copy : begin, begin + own_copy};
    workspace_ = std::max(workspace_, begin + own_copy + rest);
    largest_ = std::max(largest_, of_copy + rest);
    begin += call_.order == Order::kSideBySide ? own_copy + AlignedWorkspace(rest) : 0;
  }
}

Result<CUstream> CallPlan::StreamOf(cuda::Branches& branches, bool may_fork) const {
  return may_fork && call_.order == Order::kSideBySide ? branches.Fork() : branches.stream();
}

/// The bias gradient, from dY or from the partial sums that a part has left.
Status CallPlan::EnqueueSums(CUstream stream, const internal::Launch& call) const {
  if (!call_.sums) {
    return {};
  }
  TensorRef to = call_.sums->to;
  to.data = call.operands[kSums];
  if (summing_part_ >= 0) {
    return cuda::SumPartials(stream, partial_rows_, call.workspace, to);
  }
  ConstTensorRef from = call_.sums->from;
  from.data = call.operands[kInputs + call_.shared];
  return cuda::SumChannels(stream, call_.sums->plan, from, to, call.workspace);
}

internal::Launch CallPlan::LaunchOf(
    int part,
    CUstream stream,
    std::span<void* const> operands,
    const internal::Launch& call) const {
  return {.stream = stream, .operands = operands, .workspace = At(call, places_.at(part).rest)};
}

Shared CallPlan::SharedOf(int part, const internal::Launch& call) const {
  return {
      .operand = CopyOfShared(part) != nullptr ? call_.shared : -1,
      .copy = At(call, places_.at(part).copy),
      .partial_sums = part == summing_part_ ? call.workspace : nullptr};
}

Status CallPlan::EnqueueCopy(CUstream stream, const internal::Launch& call) const {
  const auto operands = OperandsOf(call_.parts[0].primitive, call.operands);
  return sharing_[0]->Copy(LaunchOf(0, stream, operands, call), SharedOf(0, call));
}

Status CallPlan::EnqueuePart(
    int part,
    bool is_copied,
    CUstream stream,
    const internal::Launch& call) const {
  const auto operands = OperandsOf(call_.parts.at(part).primitive, call.operands);
  const internal::Launch launch = call_.parts.at(part).is_whole
                                      ? LaunchOf(part, stream, call.operands, call)
                                      : LaunchOf(part, stream, operands, call);
  SharingPlan* sharing = sharing_.at(part);
  if (sharing == nullptr) {
    return call_.parts.at(part).plan->Run(launch);
  }
  Shared shared = SharedOf(part, call);
  shared.is_copied = is_copied;
  TensorRef sums = call_.sums ? call_.sums->to : TensorRef();
  sums.data = call.operands[kSums];
  const bool adds_up = part == summing_part_ && sharing->AddsUpSums();
  shared.sums = adds_up ? &sums : nullptr;
  const Status status = sharing->RunShared(launch, shared);
  return status.ok() && part == summing_part_ && !is_copied && !adds_up ? EnqueueSums(stream, call)
                                                                        : status;
}

/// The copy that the parts share, and then each on its branch.
Status CallPlan::EnqueueBranches(cuda::Branches& branches, const internal::Launch& call) const {
  Status status = EnqueueCopy(branches.stream(), call);
  const auto enqueue = [&](bool may_fork, const auto& what) {
    if (status.ok()) {
      const Result<CUstream> stream = StreamOf(branches, may_fork);
      status = stream.ok() ? what(*stream) : stream.status();
    }
  };
  if (summing_part_ >= 0) {
    enqueue(true, [&](CUstream stream) { return EnqueueSums(stream, call); });
  }
  enqueue(true, [&](CUstream stream) { return EnqueuePart(0, true, stream, call); });
  enqueue(false, [&](CUstream stream) { return EnqueuePart(1, true, stream, call); });
  return status;
}

Status CallPlan::Enqueue(cuda::Branches& branches, const internal::Launch& launch) {
  if (first_ != nullptr) {
    if (Status status = first_->Run(launch); !status.ok()) {
      return status;
    }
  }
  const auto count = static_cast<int>(call_.parts.size());
  // What is summed is still in the cache for those who read it next.
  if (call_.sums && summing_part_ < 0) {
    const Result<CUstream> stream = StreamOf(branches, count > 0);
    const Status status = stream.ok() ? EnqueueSums(*stream, launch) : stream.status();
    if (!status.ok()) {
      return status;
    }
  }
  if (shares_copy_ && call_.order == Order::kSideBySide) {
    return EnqueueBranches(branches, launch);
  }
  for (int part = 0; part < count; ++part) {
    // The last one is on the call's stream, which has been given nothing before it.
    const Result<CUstream> stream = StreamOf(branches, part + 1 < count);
    const Status status = stream.ok() ? EnqueuePart(part, part > 0 && shares_copy_, *stream, launch)
                                      : stream.status();
    if (!status.ok()) {
      return status;
    }
  }
  return {};
}

}  // namespace gradsmith::conv
