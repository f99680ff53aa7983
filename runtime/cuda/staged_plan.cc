#include "cuda/staged_plan.h"

#include <span>
#include <string>
#include <utility>

#include "core/tiles.h"
#include "cuda/tensor_ops.h"

namespace gradsmith::cuda {

namespace {

constexpr std::size_t kAlignment = 256;
/// What CopyTensor and AddTensor take.
constexpr int kMaxCopiedRank = 5;

std::size_t BytesOf(const TensorRef& tensor) {
  const std::size_t bytes =
      static_cast<std::size_t>(NumElements(tensor.dims)) * SizeOf(tensor.type);
  return internal::RoundUp(bytes, kAlignment);
}

Strides DenseStridesLike(const TensorRef& tensor) {
  if (tensor.rank() > 2 && tensor.strides == ChannelsLastStrides(tensor.dims)) {
    return tensor.strides;
  }
  return ContiguousStrides(tensor.dims);
}

/// Both are the same elements one after the other, in the same order.
bool IsLine(const TensorRef& a, const TensorRef& b) {
  return a.strides == b.strides && a.strides == DenseStridesLike(a);
}

bool CanBeCopied(const TensorRef& from, const TensorRef& to) {
  return IsLine(from, to) || (from.rank() > 0 && from.rank() <= kMaxCopiedRank);
}

TensorRef AsLine(const TensorRef& tensor) {
  TensorRef line(tensor.type, tensor.data, {NumElements(tensor.dims)}, {1}, tensor.device);
  line.accumulate = tensor.accumulate;
  return line;
}

/// Copies a tensor, or adds it, whatever the ranks that CanBeCopied lets pass.
Status Move(const DeviceInfo& device, CUstream stream, const TensorRef& from, const TensorRef& to) {
  const bool is_line = IsLine(from, to);
  const TensorRef source = is_line ? AsLine(from) : from;
  const TensorRef target = is_line ? AsLine(to) : to;
  return to.accumulate ? AddTensor(device, stream, source, target)
                       : CopyTensor(device, stream, source, target);
}

class StagedPlan final : public internal::Plan {
 public:
  StagedPlan(
      const DeviceInfo& device,
      const OpTask& task,        // NOLINT(modernize-pass-by-value): to move a task is to copy it
      const StagedTask& staged,  // NOLINT(modernize-pass-by-value)
      std::unique_ptr<internal::Plan> inner)
      : device_(device), task_(task), staged_(staged), inner_(std::move(inner)) {}

  [[nodiscard]] std::size_t workspace() const override {
    return StagedBytes(staged_) + inner_->workspace();
  }

  Status Run(const internal::Launch& launch) override {
    std::array<void*, kMaxOperands> operands{};
    auto* place = static_cast<std::byte*>(launch.workspace);
    for (int i = 0; i < task_.operands(); ++i) {
      const auto operand = static_cast<std::size_t>(i);
      operands.at(operand) = launch.operands[operand];
      if (staged_.staged.at(operand)) {
        operands.at(operand) = place;
        place += BytesOf(staged_.inner.tensors[i]);
      }
      task_.tensors[i].data = launch.operands[operand];
      staged_.inner.tensors[i].data = operands.at(operand);
    }
    CUstream stream = launch.stream;
    if (Status status = CopyIn(stream); !status.ok()) {
      return status;
    }
    const std::span<void* const> inner(operands.data(), launch.operands.size());
    if (Status status = inner_->Run({launch.stream, inner, place, launch.scalars}); !status.ok()) {
      return status;
    }
    return CopyOut(stream);
  }

 private:
  Status CopyIn(CUstream stream) {
    for (int i = 0; i < task_.inputs(); ++i) {
      if (!staged_.staged.at(static_cast<std::size_t>(i)) || !task_.tensors[i].present) {
        continue;
      }
      if (Status status = Move(device_, stream, task_.tensors[i], staged_.inner.tensors[i]);
          !status.ok()) {
        return status;
      }
    }
    return {};
  }

  Status CopyOut(CUstream stream) {
    for (int i = task_.inputs(); i < task_.operands(); ++i) {
      if (!staged_.staged.at(static_cast<std::size_t>(i)) || !task_.tensors[i].present) {
        continue;
      }
      if (Status status = Move(device_, stream, staged_.inner.tensors[i], task_.tensors[i]);
          !status.ok()) {
        return status;
      }
    }
    return {};
  }

  const DeviceInfo& device_;
  OpTask task_;
  StagedTask staged_;
  std::unique_ptr<internal::Plan> inner_;
};

}  // namespace

Result<StagedTask> WithoutAdding(const OpTask& task) {
  StagedTask staged;
  staged.inner = task;
  for (int i = task.inputs(); i < task.operands(); ++i) {
    const TensorRef& outer = task.tensors[i];
    if (!outer.present || !outer.accumulate) {
      continue;
    }
    TensorRef& inner = staged.inner.tensors[i];
    inner = TensorRef(outer.type, nullptr, outer.dims, DenseStridesLike(outer), outer.device);
    staged.staged.at(static_cast<std::size_t>(i)) = true;
    if (!CanBeCopied(inner, outer)) {
      return Unsupported(
          std::string(task.op->operands[static_cast<std::size_t>(i)]) + " of rank " +
          std::to_string(outer.rank()) +
          " is added to and not dense; of such tensors only ranks 1 to " +
          std::to_string(kMaxCopiedRank) + " are added to");
    }
  }
  return staged;
}

std::size_t StagedBytes(const StagedTask& staged) {
  std::size_t bytes = 0;
  for (int i = 0; i < staged.inner.operands(); ++i) {
    bytes += staged.staged.at(static_cast<std::size_t>(i)) ? BytesOf(staged.inner.tensors[i]) : 0;
  }
  return bytes;
}

std::unique_ptr<internal::Plan> StagePlan(
    const DeviceInfo& device,
    const OpTask& task,
    const StagedTask& staged,
    std::unique_ptr<internal::Plan> inner) {
  if (StagedBytes(staged) == 0) {
    return inner;
  }
  return std::make_unique<StagedPlan>(device, task, staged, std::move(inner));
}

}  // namespace gradsmith::cuda
