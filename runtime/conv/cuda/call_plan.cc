#include "conv/cuda/call_plan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "conv/cuda/form.h"

namespace gradsmith::conv {

CallPlan::CallPlan(std::vector<Part> parts, const BiasSums* sums, Operand shared, Order order)
    : parts_(std::move(parts)),
      has_sums_(sums != nullptr),
      sums_(sums != nullptr ? *sums : BiasSums()),
      shared_(shared),
      order_(order) {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    sharing_.at(i) = dynamic_cast<SharingPlan*>(parts_[i].plan);
  }
  shares_copy_ = SharesCopy();
  summing_part_ = SummingPart();
  Place();
}

const OperandCopy* CallPlan::CopyOfShared(std::size_t part) const {
  return sharing_.at(part) == nullptr ? nullptr : sharing_.at(part)->CopyOf(shared_);
}

bool CallPlan::SharesCopy() const {
  if (parts_.size() < 2) {
    return false;
  }
  const OperandCopy* first = CopyOfShared(0);
  const OperandCopy* second = CopyOfShared(1);
  return first != nullptr && second != nullptr && *first == *second;
}

int CallPlan::SummingPart() const {
  for (int i = 0; has_sums_ && i < static_cast<int>(parts_.size()); ++i) {
    if (sharing_.at(i) != nullptr && sharing_.at(i)->PartialSumRows(shared_) > 0) {
      return i;
    }
  }
  return -1;
}

/// Partial sums and a shared copy first, for as long as the call lasts. Then what each part needs:
/// one behind the other where they may go side by side, at the same place where not.
void CallPlan::Place() {
  std::size_t for_sums = has_sums_ ? AlignedWorkspace(sums_.plan.workspace) : 0;
  if (summing_part_ >= 0) {
    partial_rows_ = sharing_.at(summing_part_)->PartialSumRows(shared_);
    for_sums = AlignedWorkspace(
        static_cast<std::size_t>(partial_rows_ * sums_.to.dims[0]) * sizeof(float));
  }
  const bool is_aside = order_ == Order::kSideBySide;
  std::size_t begin = summing_part_ >= 0 || is_aside ? for_sums : 0;
  const std::size_t shared_copy = begin;
  if (shares_copy_) {
    begin += CopyOfShared(0)->bytes;
  }
  workspace_ = largest_ = for_sums;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const OperandCopy* copy = CopyOfShared(i);
    const std::size_t of_copy = copy == nullptr ? 0 : copy->bytes;
    const std::size_t own_copy = shares_copy_ ? 0 : of_copy;
    const std::size_t rest = AlignedWorkspace(parts_[i].plan->workspace() - of_copy);
    places_.at(i) = {shares_copy_ ? shared_copy : begin, begin + own_copy};
    workspace_ = std::max(workspace_, begin + own_copy + rest);
    largest_ = std::max(largest_, of_copy + rest);
    begin += is_aside ? own_copy + rest : 0;
  }
}

Result<CUstream> CallPlan::StreamOf(cuda::Branches& branches, bool may_fork) const {
  return may_fork && order_ == Order::kSideBySide ? branches.Fork() : branches.stream();
}

/// The bias gradient, from dY or from the partial sums that a part has left.
Status CallPlan::EnqueueSums(CUstream stream, const Memory& memory) const {
  TensorRef to = sums_.to;
  to.data = memory.addresses.at(kSums);
  if (summing_part_ >= 0) {
    return cuda::SumPartials(stream, partial_rows_, memory.workspace, to);
  }
  ConstTensorRef from = sums_.from;
  from.data = memory.addresses.at(kInputs + shared_);
  return cuda::SumChannels(stream, sums_.plan, from, to, memory.workspace);
}

internal::Launch CallPlan::LaunchOf(
    int part,
    CUstream stream,
    std::span<void* const> operands,
    const Memory& memory) const {
  return {
      .stream = stream,
      .operands = operands,
      .workspace = memory.workspace + places_.at(part).rest};
}

Shared CallPlan::SharedOf(int part, const Memory& memory) const {
  return {
      .operand = CopyOfShared(part) != nullptr ? shared_ : -1,
      .copy = memory.workspace + places_.at(part).copy,
      .partial_sums = part == summing_part_ ? memory.workspace : nullptr};
}

Status CallPlan::EnqueueCopy(CUstream stream, const Memory& memory) const {
  const auto operands = OperandsOf(parts_[0].primitive, memory.addresses);
  return sharing_[0]->Copy(LaunchOf(0, stream, operands, memory), SharedOf(0, memory));
}

Status CallPlan::EnqueuePart(int part, bool is_copied, CUstream stream, const Memory& memory)
    const {
  const auto operands = OperandsOf(parts_.at(part).primitive, memory.addresses);
  const internal::Launch launch = parts_.at(part).is_whole
                                      ? LaunchOf(part, stream, memory.addresses, memory)
                                      : LaunchOf(part, stream, operands, memory);
  SharingPlan* sharing = sharing_.at(part);
  if (sharing == nullptr) {
    return parts_.at(part).plan->Run(launch);
  }
  Shared shared = SharedOf(part, memory);
  shared.is_copied = is_copied;
  TensorRef sums = sums_.to;
  sums.data = memory.addresses.at(kSums);
  const bool adds_up = part == summing_part_ && sharing->AddsUpSums();
  shared.sums = adds_up ? &sums : nullptr;
  const Status status = sharing->RunShared(launch, shared);
  return status.ok() && part == summing_part_ && !is_copied && !adds_up
             ? EnqueueSums(stream, memory)
             : status;
}

/// The copy that the parts share, and then each on its branch.
Status CallPlan::EnqueueBranches(cuda::Branches& branches, const Memory& memory) const {
  Status status = EnqueueCopy(branches.stream(), memory);
  const auto enqueue = [&](bool may_fork, const auto& what) {
    if (status.ok()) {
      const Result<CUstream> stream = StreamOf(branches, may_fork);
      status = stream.ok() ? what(*stream) : stream.status();
    }
  };
  if (summing_part_ >= 0) {
    enqueue(true, [&](CUstream stream) { return EnqueueSums(stream, memory); });
  }
  enqueue(true, [&](CUstream stream) { return EnqueuePart(0, true, stream, memory); });
  enqueue(false, [&](CUstream stream) { return EnqueuePart(1, true, stream, memory); });
  return status;
}

Status CallPlan::Enqueue(cuda::Branches& branches, const CallAddresses& addresses, void* workspace)
    const {
  const Memory memory{addresses, static_cast<std::byte*>(workspace)};
  const auto count = static_cast<int>(parts_.size());
  // What is summed is still in the cache for those who read it next.
  if (has_sums_ && summing_part_ < 0) {
    const Result<CUstream> stream = StreamOf(branches, count > 0);
    const Status status = stream.ok() ? EnqueueSums(*stream, memory) : stream.status();
    if (!status.ok()) {
      return status;
    }
  }
  if (shares_copy_ && order_ == Order::kSideBySide) {
    return EnqueueBranches(branches, memory);
  }
  for (int part = 0; part < count; ++part) {
    // The last one is on the call's stream, which has been given nothing before it.
    const Result<CUstream> stream = StreamOf(branches, part + 1 < count);
    const Status status = stream.ok() ? EnqueuePart(part, part > 0 && shares_copy_, *stream, memory)
                                      : stream.status();
    if (!status.ok()) {
      return status;
    }
  }
  return {};
}

Status CallPlan::Run(const internal::Launch& launch) {
  cuda::Branches alone(launch.stream);
  CallAddresses addresses{};
  std::ranges::copy(launch.operands, addresses.begin());
  return Enqueue(alone, addresses, launch.workspace);
}

}  // namespace gradsmith::conv
