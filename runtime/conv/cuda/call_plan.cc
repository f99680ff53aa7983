#include "conv/cuda/call_plan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace gradsmith::conv {

namespace {

std::size_t RoundedUp(std::size_t bytes) {
  constexpr std::size_t kAlignment = 256;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

CallPlan::CallPlan(std::vector<Part> parts, const BiasSums* sums, Operand shared, Order order)
    : parts_(std::move(parts)),
      has_sums_(sums != nullptr),
      sums_(sums != nullptr ? *sums : BiasSums()),
      shared_(shared),
      order_(order),
      shares_copy_(SharesCopy()),
      summing_part_(SummingPart()) {
  Place();
}

int CallPlan::SummingPart() const {
  for (int i = 0; has_sums_ && i < static_cast<int>(parts_.size()); ++i) {
    if (parts_.at(i).plan->PartialSumRows(shared_) > 0) {
      return i;
    }
  }
  return -1;
}

bool CallPlan::SharesCopy() const {
  if (parts_.size() < 2) {
    return false;
  }
  const internal::OperandCopy* first = parts_[0].plan->CopyOf(shared_);
  const internal::OperandCopy* second = parts_[1].plan->CopyOf(shared_);
  return first != nullptr && second != nullptr && *first == *second;
}

/// One behind the other where they may go side by side, all at the beginning where not; but what a
/// copy leaves of sums stays until it is added up.
void CallPlan::Place() {
  std::size_t for_sums = has_sums_ ? RoundedUp(sums_.plan.workspace) : 0;
  if (summing_part_ >= 0) {
    partial_rows_ = parts_.at(summing_part_).plan->PartialSumRows(shared_);
    for_sums =
        RoundedUp(static_cast<std::size_t>(partial_rows_ * sums_.to.dims[0]) * sizeof(float));
  }
  workspace_ = largest_ = for_sums;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const std::size_t size = RoundedUp(parts_[i].plan->workspace());
    largest_ = std::max(largest_, size);
    if (order_ == Order::kSideBySide) {
      offsets_.at(i) = i > 0 && shares_copy_ ? offsets_[0] : workspace_;
    } else if (summing_part_ >= 0) {
      offsets_.at(i) = for_sums;
    }
    workspace_ = std::max(workspace_, offsets_.at(i) + size);
  }
}

Result<CUstream> CallPlan::StreamOf(cuda::Branches& branches, bool may_fork) const {
  return may_fork && order_ == Order::kSideBySide ? branches.Fork() : branches.stream();
}

Status CallPlan::EnqueueSums(CUstream stream, const CallAddresses& addresses, void* workspace)
    const {
  ConstTensorRef from = sums_.from;
  TensorRef to = sums_.to;
  from.data = addresses.at(kInputs + shared_);
  to.data = addresses.at(kSums);
  return cuda::SumChannels(stream, sums_.plan, from, to, workspace);
}

Status CallPlan::EnqueuePart(
    int part,
    CUstream stream,
    const CallAddresses& addresses,
    void* workspace) const {
  internal::Plan& plan = *parts_.at(part).plan;
  const auto operands = OperandsOf(parts_.at(part).primitive, addresses);
  const bool is_summing = part == summing_part_;
  const Status status = plan.Run(
      {.stream = stream,
       .operands = operands,
       .workspace = static_cast<std::byte*>(workspace) + offsets_.at(part),
       .first_copied = plan.CopyOf(shared_) == nullptr ? -1 : shared_,
       .is_copied = shares_copy_ && part > 0,
       .partial_sums = is_summing ? workspace : nullptr});
  if (!status.ok() || !is_summing) {
    return status;
  }
  TensorRef to = sums_.to;
  to.data = addresses.at(kSums);
  return cuda::SumPartials(stream, partial_rows_, workspace, to);
}

Status CallPlan::Enqueue(cuda::Branches& branches, const CallAddresses& addresses, void* workspace)
    const {
  const auto count = static_cast<int>(parts_.size());
  // What is summed is still in the cache for those who read it next.
  if (has_sums_ && summing_part_ < 0) {
    const Result<CUstream> stream = StreamOf(branches, count > 0);
    const Status status =
        stream.ok() ? EnqueueSums(*stream, addresses, workspace) : stream.status();
    if (!status.ok()) {
      return status;
    }
  }
  for (int part = 0; part < count; ++part) {
    // The last one is on the call's stream, which has been given nothing before it.
    const Result<CUstream> stream = StreamOf(branches, part + 1 < count && !shares_copy_);
    const Status status =
        stream.ok() ? EnqueuePart(part, *stream, addresses, workspace) : stream.status();
    if (!status.ok()) {
      return status;
    }
  }
  return {};
}

Status CallPlan::Run(const internal::Launch& launch) {
  cuda::Branches alone(static_cast<CUstream>(launch.stream));
  CallAddresses addresses{};
  std::copy_n(launch.operands.begin(), kCallTensors, addresses.begin());
  return Enqueue(alone, addresses, launch.workspace);
}

}  // namespace gradsmith::conv
