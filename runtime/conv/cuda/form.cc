#include "conv/cuda/form.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "cuda/tensor_ops.h"

namespace gradsmith::conv {

namespace {

constexpr std::size_t kAlignment = 256;
constexpr int kVector = 16;

std::size_t Rounded(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

bool HasZeroStride(const Dims& dims, const Strides& strides) {
  for (int i = 0; i < dims.size(); ++i) {
    if (dims[i] > 1 && strides[i] == 0) {
      return true;
    }
  }
  return false;
}

bool IsDense(const Dims& dims, const Strides& strides) {
  return strides == ContiguousStrides(dims) || strides == ChannelsLastStrides(dims);
}

/// Channels last where positions of the last axis are further apart than channels.
Strides DenseStrides(const Dims& dims, const Strides& strides) {
  const bool channels_last = strides[1] < strides[dims.size() - 1];
  return channels_last ? ChannelsLastStrides(dims) : ContiguousStrides(dims);
}

/// Dims of size 1 may have any stride; engines recognise a layout by the strides it would have.
Strides Normalized(const Dims& dims, const Strides& strides) {
  for (const Strides& dense : {ContiguousStrides(dims), ChannelsLastStrides(dims)}) {
    bool same = true;
    for (int i = 0; i < dims.size(); ++i) {
      same = same && (dims[i] == 1 || dims[i] == 0 || strides[i] == dense[i]);
    }
    if (same) {
      return dense;
    }
  }
  return strides;
}

std::size_t BytesOf(const Problem& problem, Operand operand) {
  return static_cast<std::size_t>(NumElements(DimsOf(problem, operand))) * SizeOf(problem.type);
}

/// The form with copies of what is odd; `needed` tells whether there is no way without.
Form Packed(const Task& task, bool* needed) {
  Form form{"packed ", task, {}};
  for (const Operand operand : {kX, kW, kY}) {
    const Dims dims = DimsOf(task.problem, operand);
    const Strides& strides = StridesOf(task.problem, operand);
    // Engines that take a declared alignment have read past it, which ends the whole CUDA context.
    const bool refused = HasZeroStride(dims, strides) || task.alignment.at(operand) < kVector;
    *needed = *needed || refused;
    if (refused || !IsDense(dims, strides)) {
      form.copied.at(operand) = true;
      form.inner.alignment.at(operand) = kVector;
      StridesOf(form.inner.problem, operand) = DenseStrides(dims, strides);
    }
  }
  return form;
}

class WrappedPlan final : public internal::Plan {
 public:
  WrappedPlan(
      const cuda::DeviceInfo& device,
      const Task& task,
      Form form,
      std::unique_ptr<internal::Plan> inner)
      : device_(device), task_(task), form_(std::move(form)), inner_(std::move(inner)) {}

  [[nodiscard]] std::size_t workspace() const override {
    return CopiesBytes(form_) + inner_->workspace();
  }

  Status Run(const internal::Launch& launch) override {
    auto* stream = static_cast<CUstream>(launch.stream);
    auto* place = static_cast<std::byte*>(launch.workspace);
    const Operand result = ResultOf(task_.primitive);
    std::array<void*, kOperands> operands{};
    for (const Operand operand : {kX, kW, kY}) {
      operands.at(operand) = launch.operands[operand];
      if (!form_.copied.at(operand)) {
        continue;
      }
      operands.at(operand) = place;
      place += Rounded(BytesOf(task_.problem, operand));
      // What is added to is copied as well, so that the sum is rounded once.
      if (operand != result || task_.accumulate) {
        const ConstTensorRef from = Ref(task_, operand, launch.operands[operand]);
        if (Status status = cuda::CopyTensor(
                device_, stream, from, Ref(form_.inner, operand, operands.at(operand)));
            !status.ok()) {
          return status;
        }
      }
    }
    if (Status status = inner_->Run({launch.stream, operands, place});
        !status.ok() || !form_.copied.at(result)) {
      return status;
    }
    const ConstTensorRef from = Ref(form_.inner, result, operands.at(result));
    const TensorRef to = Ref(task_, result, launch.operands[result]);
    return cuda::CopyTensor(device_, stream, from, to);
  }

 private:
  static TensorRef Ref(const Task& task, Operand operand, void* data) {
    return {
        task.problem.type, data, DimsOf(task.problem, operand), StridesOf(task.problem, operand)};
  }

  const cuda::DeviceInfo& device_;
  Task task_;
  Form form_;
  std::unique_ptr<internal::Plan> inner_;
};

}  // namespace

std::vector<Form> FormsOf(const Task& task) {
  Task normalized = task;
  for (const Operand operand : {kX, kW, kY}) {
    Strides& strides = StridesOf(normalized.problem, operand);
    strides = Normalized(DimsOf(normalized.problem, operand), strides);
  }
  bool needed = false;
  Form packed = Packed(normalized, &needed);
  const bool copies = packed.copied != std::array<bool, kOperands>{};
  std::vector<Form> forms;
  if (!needed) {
    forms.push_back({"", normalized, {}});
  }
  if (copies) {
    forms.push_back(std::move(packed));
  }
  return forms;
}

std::size_t CopiesBytes(const Form& form) {
  std::size_t bytes = 0;
  for (const Operand operand : {kX, kW, kY}) {
    bytes += form.copied.at(operand) ? Rounded(BytesOf(form.inner.problem, operand)) : 0;
  }
  return bytes;
}

std::unique_ptr<internal::Plan> WrapPlan(
    const cuda::DeviceInfo& device,
    const Task& task,
    const Form& form,
    std::unique_ptr<internal::Plan> inner) {
  if (CopiesBytes(form) == 0) {
    return inner;
  }
  return std::make_unique<WrappedPlan>(device, task, form, std::move(inner));
}

}  // namespace gradsmith::conv
