#include "cuda/staged_plan.h"

#include <span>
#include <string>
#include <utility>

#include "core/tiles.h"
#include "cuda/staging.h"
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

Staging::Operands OperandsOf(const OpTask& task, const StagedTask& staged) {
  Staging::Operands operands;
  for (int i = 0; i < task.operands(); ++i) {
    if (!staged.staged.at(static_cast<std::size_t>(i))) {
      operands.push_back({});
      continue;
    }
    const bool is_present = task.tensors[i].present;
    operands.push_back(
        {.bytes = BytesOf(staged.inner.tensors[i]),
         .is_read = is_present && !task.is_output(i),
         .is_written = is_present && task.is_output(i)});
  }
  return operands;
}

class StagedPlan final : public internal::Plan {
 public:
  StagedPlan(
      const DeviceInfo& device,
      const OpTask& task,
      const StagedTask& staged,
      std::unique_ptr<internal::Plan> inner)
      : device_(device),
        outer_(task.tensors),
        inner_(staged.inner.tensors),
        staging_(OperandsOf(task, staged), std::move(inner)) {}

  [[nodiscard]] std::size_t workspace() const override { return staging_.workspace(); }

  Status Run(const internal::Launch& launch) override {
    const auto copy_in = [&](int operand, void* from, void* to) {
      return Move(device_, launch.stream, At(outer_[operand], from), At(inner_[operand], to));
    };
    const auto copy_out = [&](int operand, void* from, void* to) {
      return Move(device_, launch.stream, At(inner_[operand], from), At(outer_[operand], to));
    };
    return staging_.Run(launch, {}, copy_in, copy_out);
  }

 private:
  static TensorRef At(const TensorRef& tensor, void* address) {
    TensorRef moved = tensor;
    moved.data = address;
    return moved;
  }

  const DeviceInfo& device_;
  internal::InlineVector<TensorRef, kMaxOperands> outer_;
  internal::InlineVector<TensorRef, kMaxOperands> inner_;
  Staging staging_;
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
