#include "conv/cuda/parts.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "conv/cuda/form.h"
#include "core/tensor_memory.h"
#include "core/tiles.h"
#include "cuda/tensor_ops.h"

namespace gradsmith::conv {

namespace {

/// The bytes from a part of an operand to the next.
std::int64_t BytesOfPart(const Task& task, std::int64_t parts, Operand operand) {
  const std::int64_t images = operand == kW ? 0 : task.problem.batch / parts;
  return images * StridesOf(task.problem, operand)[0] *
         static_cast<std::int64_t>(SizeOf(task.problem.type));
}

/// Elements from a tensor's first to its last. Of one that overlaps itself that is less than it
/// has, which a dense copy has as well.
std::int64_t ReachOf(const Problem& problem, Operand operand) {
  const Dims dims = DimsOf(problem, operand);
  std::int64_t reach = 1;
  for (int i = 0; i < dims.size(); ++i) {
    reach += (dims[i] - 1) * StridesOf(problem, operand)[i];
  }
  return std::max(reach, NumElements(dims));
}

/// Whether parts of a filter's gradient are added up in float: each of them is rounded to 16 bits,
/// and the sum of many would drift.
bool IsSummedInFloat(const Task& task) {
  return IsFilter(task) && SizeOf(task.problem.type) == 2;
}

/// The filter's gradient, by the task's strides.
TensorRef FilterAt(const Task& task, void* data) {
  return {task.problem.type, data, DimsOf(task.problem, kW), StridesOf(task.problem, kW)};
}

/// Where such a gradient of a part lies in the workspace, and behind it the sum in float.
std::size_t BytesOfPartFilter(const Task& task) {
  return AlignedWorkspace(internal::SpanBytes(FilterAt(task, nullptr)));
}

class PartsPlan final : public internal::Plan {
 public:
  PartsPlan(
      const cuda::DeviceInfo& device,
      const Task& task,
      std::int64_t parts,
      std::unique_ptr<internal::Plan> first,
      std::unique_ptr<internal::Plan> others)
      : device_(device),
        task_(task),
        parts_(parts),
        first_(std::move(first)),
        others_(std::move(others)) {
    for (const Operand operand : {kX, kW, kY}) {
      steps_.at(operand) = BytesOfPart(task, parts, operand);
    }
  }

  [[nodiscard]] std::size_t workspace() const override {
    return PartSumsBytes(task_) +
           std::max(first_->workspace(), others_ == nullptr ? 0 : others_->workspace());
  }

  Status Run(const internal::Launch& launch) override {
    auto* workspace = static_cast<std::byte*>(launch.workspace);
    Status status;
    for (std::int64_t part = 0; part < parts_ && status.ok(); ++part) {
      std::array<void*, kOperands> operands{};
      for (const Operand operand : {kX, kW, kY}) {
        operands.at(operand) =
            static_cast<std::byte*>(launch.operands[operand]) + (part * steps_.at(operand));
      }
      if (IsSummedInFloat(task_)) {
        operands.at(kW) = workspace;
      }
      internal::Launch of_part = launch;
      of_part.operands = operands;
      of_part.workspace = workspace + PartSumsBytes(task_);
      status = (part == 0 || others_ == nullptr ? first_ : others_)->Run(of_part);
      if (status.ok() && IsSummedInFloat(task_)) {
        status = AddPart(launch, part);
      }
    }
    return status;
  }

 private:
  /// Adds a part's gradient to the sum, and the last sum to the result.
  Status AddPart(const internal::Launch& launch, std::int64_t part) {
    CUstream stream = launch.stream;
    auto* workspace = static_cast<std::byte*>(launch.workspace);
    const Dims dims = DimsOf(task_.problem, kW);
    const TensorRef of_part = FilterAt(task_, workspace);
    const TensorRef sum(
        DataType::kFloat, workspace + BytesOfPartFilter(task_), dims, ContiguousStrides(dims));
    Status status = part == 0 ? cuda::CopyTensor(device_, stream, of_part, sum)
                              : cuda::AddTensor(device_, stream, of_part, sum);
    if (!status.ok() || part + 1 < parts_) {
      return status;
    }
    const TensorRef result = FilterAt(task_, launch.operands[kW]);
    return task_.accumulate ? cuda::AddTensor(device_, stream, sum, result)
                            : cuda::CopyTensor(device_, stream, sum, result);
  }

  const cuda::DeviceInfo& device_;
  Task task_;
  std::int64_t parts_;
  std::unique_ptr<internal::Plan> first_;
  std::unique_ptr<internal::Plan> others_;
  std::array<std::int64_t, kOperands> steps_{};
};

}  // namespace

bool CanBeCounted(const Problem& problem) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  return ReachOf(problem, kX) <= kMost && ReachOf(problem, kY) <= kMost;
}

std::int64_t PartsWithin(const Task& task, std::size_t bytes, std::size_t limit) {
  const auto all = static_cast<std::int64_t>(bytes);
  std::int64_t parts = 1;
  while (static_cast<std::size_t>(internal::CeilDivide(all, parts)) > limit) {
    parts *= 2;
    if (task.problem.batch % parts != 0) {
      return 1;
    }
  }
  return parts;
}

std::int64_t PartsToCount(const Task& task) {
  // More of them would be launches for little each.
  constexpr std::int64_t kMostParts = 1024;
  const std::int64_t batch = task.problem.batch;
  Problem part = task.problem;
  for (std::int64_t parts = 1; parts <= std::min(batch, kMostParts); ++parts) {
    part.batch = batch / parts;
    if (batch % parts == 0 && CanBeCounted(part)) {
      return parts;
    }
  }
  return 1;
}

Task PartOf(const Task& task, std::int64_t parts, bool is_first) {
  Task part = task;
  part.problem.batch /= parts;
  part.accumulate = !IsSummedInFloat(task) && (task.accumulate || (IsFilter(task) && !is_first));
  for (const Operand operand : {kX, kY}) {
    if (BytesOfPart(task, parts, operand) % task.alignment.at(operand) != 0) {
      part.alignment.at(operand) = static_cast<int>(SizeOf(task.problem.type));
    }
  }
  return part;
}

std::size_t PartSumsBytes(const Task& task) {
  const auto floats = static_cast<std::size_t>(NumElements(DimsOf(task.problem, kW)));
  return IsSummedInFloat(task) ? BytesOfPartFilter(task) + AlignedWorkspace(floats * sizeof(float))
                               : 0;
}

std::unique_ptr<internal::Plan> MakePartsPlan(
    const cuda::DeviceInfo& device,
    const Task& task,
    std::int64_t parts,
    std::unique_ptr<internal::Plan> first,
    std::unique_ptr<internal::Plan> others) {
  return std::make_unique<PartsPlan>(device, task, parts, std::move(first), std::move(others));
}

}  // namespace gradsmith::conv
