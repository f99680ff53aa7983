#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "conv/cuda/form.h"
#include "conv/cuda/sharing_plan.h"
#include "cuda/channel_copies.h"
#include "cuda/staging.h"
#include "cuda/tensor_ops.h"

namespace gradsmith::conv {

namespace {

std::size_t BytesOf(const Problem& problem, Operand operand) {
  return static_cast<std::size_t>(NumElements(DimsOf(problem, operand))) * SizeOf(problem.type);
}

/// An operand as the stacked form sees it, in the order of its planes there.
TensorRef StackedRef(const OperandForm& form, Operand operand, const TensorRef& whole) {
  const std::int64_t planes = DimsOf(form.inner.problem, operand)[2];
  const int dim = operand == kW ? 0 : 1;  // the dim of the channels that are planes
  const std::int64_t step = operand == kW ? -whole.strides[dim] : whole.strides[dim];
  TensorRef stacked(
      whole.type, whole.data, DimsOf(form.inner.problem, operand),
      StridesOf(form.inner.problem, operand));
  for (int i = 0; i < whole.rank(); ++i) {
    stacked.strides[i < 2 ? i : i + 1] = whole.strides[i];
  }
  stacked.strides[dim] *= planes;
  stacked.strides[2] = step;
  if (operand == kW) {
    stacked.data = static_cast<std::byte*>(whole.data) -
                   (planes - 1) * step * static_cast<std::int64_t>(SizeOf(whole.type));
  }
  return stacked;
}

/// What of an operand of the task is copied; of x not where it is by patches.
TensorRef OuterRef(const Task& task, const OperandForm& form, Operand operand, void* data) {
  const Problem& problem = form.patches ? form.patches->product : task.problem;
  Dims dims = DimsOf(problem, operand);
  Strides strides = StridesOf(problem, operand);
  if (operand == kX && form.subsampled) {
    for (int i = 0; i < task.problem.spatial_rank; ++i) {
      dims[2 + i] = task.problem.axes.at(i).y;
      strides[2 + i] *= task.problem.axes.at(i).stride;
    }
  }
  const TensorRef whole(task.problem.type, data, dims, strides);
  return form.stacked > 1 ? StackedRef(form, operand, whole) : whole;
}

/// The whole copy of an operand.
TensorRef InnerRef(const OperandForm& form, Operand operand, void* data) {
  const Problem& problem = form.inner.problem;
  return {problem.type, data, DimsOf(problem, operand), StridesOf(problem, operand)};
}

/// The zeros ahead of the task's own elements of an axis in a bordered copy of x.
std::int64_t ZerosAhead(const Task& task, const OperandForm& form, int axis) {
  return task.problem.axes.at(axis).pad_begin - form.inner.problem.axes.at(axis).pad_begin;
}

/// The part of a copy that has the task's own elements: all of it unless it is bordered.
TensorRef WithinBorder(const Task& task, const OperandForm& form, Operand operand, void* data) {
  TensorRef part = InnerRef(form, operand, data);
  for (int i = 0; operand == kX && form.bordered && i < task.problem.spatial_rank; ++i) {
    const std::int64_t ahead = ZerosAhead(task, form, i);
    part = cuda::PartOfDim(part, 2 + i, ahead, ahead + task.problem.axes.at(i).x);
  }
  return part;
}

Status FillBorder(
    const cuda::DeviceInfo& device,
    CUstream stream,
    const Task& task,
    const OperandForm& form,
    void* data) {
  const TensorRef whole = InnerRef(form, kX, data);
  for (int i = 0; i < task.problem.spatial_rank; ++i) {
    const int dim = 2 + i;
    const std::int64_t ahead = ZerosAhead(task, form, i);
    const std::int64_t end = ahead + task.problem.axes.at(i).x;
    for (const TensorRef& zeros :
         {cuda::PartOfDim(whole, dim, 0, ahead),
          cuda::PartOfDim(whole, dim, end, whole.dims[dim])}) {
      if (Status status = cuda::FillTensor(device, stream, 0, zeros); !status.ok()) {
        return status;
      }
    }
  }
  return {};
}

/// Whether each channel is copied several times, and a result is the sum of these.
bool IsRepeated(const OperandForm& form, Operand operand) {
  return operand == kX && form.repeats > 1;
}

/// What is added to is copied as well, so that the sum is rounded once.
cuda::Staging::Operands StagedOperandsOf(const Task& task, const OperandForm& form) {
  cuda::Staging::Operands operands;
  for (const Operand operand : {kX, kW, kY}) {
    const bool is_result = operand == ResultOf(task.primitive);
    operands.push_back(
        {.bytes = CopyBytes(form, operand),
         .is_read = !is_result || (task.accumulate && !IsRepeated(form, operand)),
         .is_written = is_result});
  }
  return operands;
}

class WrappedPlan final : public SharingPlan {
 public:
  WrappedPlan(
      const cuda::DeviceInfo& device,
      const Task& task,
      OperandForm form,
      std::unique_ptr<internal::Plan> inner)
      : device_(device),
        task_(task),
        form_(std::move(form)),
        staging_(StagedOperandsOf(task_, form_), std::move(inner)) {
    for (const Operand operand : {kX, kW, kY}) {
      const TensorRef copy = InnerRef(form_, operand, nullptr);
      copies_.at(operand) = {copy.dims, copy.strides, CopyBytes(form_, operand)};
    }
  }

  [[nodiscard]] std::size_t workspace() const override { return staging_.workspace(); }

  [[nodiscard]] const OperandCopy* CopyOf(int operand) const override {
    // A copy of patches, a subsampled, bordered, repeated or stacked one, is another than the dense
    // one of its dims.
    const bool is_whole =
        !form_.subsampled && form_.stacked == 1 &&
        ((!form_.patches && !form_.bordered && form_.repeats == 1) || operand == kY);
    return form_.copied.at(operand) && is_whole ? &copies_.at(operand) : nullptr;
  }

  [[nodiscard]] std::int64_t PartialSumRows(int operand) const override {
    const auto of = static_cast<Operand>(operand);
    return CopyOf(operand) == nullptr || of == ResultOf(task_.primitive)
               ? 0
               : cuda::CopySumRows(
                     OuterRef(task_, form_, of, nullptr), InnerRef(form_, of, nullptr));
  }

  Status Copy(const internal::Launch& launch, const Shared& shared) override {
    const auto operand = static_cast<Operand>(shared.operand);
    return CopyIn(
        launch.stream, operand, launch.operands[operand], shared.copy, shared.partial_sums);
  }

  Status RunShared(const internal::Launch& launch, const Shared& shared) override {
    const auto copy_in = [&](int operand, void* from, void* to) {
      return CopyIn(
          launch.stream, static_cast<Operand>(operand), from, to,
          operand == shared.operand ? shared.partial_sums : nullptr);
    };
    const auto copy_out = [&](int /*operand*/, void* from, void* to) {
      return CopyOut(launch.stream, from, to);
    };
    return staging_.Run(launch, {shared.operand, shared.copy, shared.is_copied}, copy_in, copy_out);
  }

 private:
  Status CopyIn(CUstream stream, Operand operand, void* from, void* to, void* partial_sums) {
    if (operand == kX && form_.patches) {
      return GatherPatches(device_, stream, *form_.patches, from, to);
    }
    if (operand == kX && form_.bordered) {
      if (Status status = FillBorder(device_, stream, task_, form_, to); !status.ok()) {
        return status;
      }
    }
    const ConstTensorRef outer = OuterRef(task_, form_, operand, from);
    const TensorRef inner = WithinBorder(task_, form_, operand, to);
    if (IsRepeated(form_, operand)) {
      return cuda::RepeatChannels(device_, stream, outer, inner);
    }
    if (partial_sums != nullptr) {
      return cuda::CopyAndSum(stream, outer, inner, partial_sums);
    }
    if (operand != kW || outer.dims == inner.dims) {
      return cuda::CopyChannels(device_, stream, outer, inner);
    }
    if (Status status = cuda::FillTensor(device_, stream, 0, inner); !status.ok()) {
      return status;
    }
    TensorRef part = inner;
    part.dims = outer.dims;
    return cuda::CopyTensor(device_, stream, outer, part);
  }

  Status CopyOut(CUstream stream, void* from, void* to) {
    const Operand result = ResultOf(task_.primitive);
    if (result == kX && form_.patches) {
      return ScatterPatches(device_, stream, *form_.patches, from, to, task_.accumulate);
    }
    TensorRef outer = OuterRef(task_, form_, result, to);
    ConstTensorRef inner = WithinBorder(task_, form_, result, from);
    if (IsRepeated(form_, result)) {
      outer.accumulate = task_.accumulate;
      return cuda::SumRepeatedChannels(device_, stream, inner, outer);
    }
    if (result == kX && form_.subsampled && !task_.accumulate) {
      const TensorRef whole(
          task_.problem.type, to, DimsOf(task_.problem, kX), task_.problem.x_strides);
      if (Status status = cuda::FillTensor(device_, stream, 0, whole); !status.ok()) {
        return status;
      }
    }
    if (result != kW) {
      return cuda::CopyChannels(device_, stream, inner, outer);
    }
    inner.dims = outer.dims;
    return cuda::CopyTensor(device_, stream, inner, outer);
  }

  const cuda::DeviceInfo& device_;
  Task task_;
  OperandForm form_;
  cuda::Staging staging_;
  std::array<OperandCopy, kOperands> copies_;
};

}  // namespace

std::size_t CopyBytes(const OperandForm& form, Operand operand) {
  return form.copied.at(operand) ? AlignedWorkspace(BytesOf(form.inner.problem, operand)) : 0;
}

std::size_t CopiesBytes(const OperandForm& form) {
  return CopyBytes(form, kX) + CopyBytes(form, kW) + CopyBytes(form, kY);
}

std::unique_ptr<internal::Plan> WrapPlan(
    const cuda::DeviceInfo& device,
    const Task& task,
    const OperandForm& form,
    std::unique_ptr<internal::Plan> inner) {
  if (CopiesBytes(form) == 0) {
    return inner;
  }
  return std::make_unique<WrappedPlan>(device, task, form, std::move(inner));
}

}  // namespace gradsmith::conv
