#include "batch_norm/cuda/form.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "cuda/selected_run.h"
#include "cuda/tensor_ops.h"

namespace gradsmith::batch_norm {

namespace {

constexpr std::size_t kAlignment = 256;
constexpr int kVector = 16;

bool IsAligned(const TensorRef& tensor) {
  return cuda::AlignmentClass(tensor.data, tensor.type) == kVector;
}

/// Dims of size 1 may have any stride.
bool Matches(const TensorRef& tensor, const Strides& strides) {
  for (int i = 0; i < tensor.rank(); ++i) {
    if (tensor.dims[i] > 1 && tensor.strides[i] != strides[i]) {
      return false;
    }
  }
  return true;
}

/// The layout that X has, or else the first other large tensor that has one: channels last, or not.
/// None where all are strided: copying all of them is never worth it.
std::optional<bool> PickLayout(const Task& task, bool channels_last_first) {
  const auto layout_of = [&](const TensorRef& tensor) -> std::optional<bool> {
    for (const bool channels_last : {channels_last_first, !channels_last_first}) {
      if (Matches(tensor, DenseStrides(tensor.dims, channels_last))) {
        return channels_last;
      }
    }
    return std::nullopt;
  };
  std::optional<bool> layout = layout_of(XOf(task));
  for (int i = 0; i < OperandsOf(task.direction) && !layout; ++i) {
    const TensorRef& tensor = task.tensors.at(i);
    if (tensor.present && IsLarge(tensor)) {
      layout = layout_of(tensor);
    }
  }
  return layout;
}

/// Puts a tensor that is as cuDNN wants it, of `type` and `strides`, into the form in an operand's
/// place. It is the operand itself where that suits, and staged where not.
void Place(
    const Task& task,
    int operand,
    DataType type,
    const Dims& dims,
    const Strides& strides,
    bool adds,
    Form* form) {
  const TensorRef& outer = task.tensors.at(operand);
  TensorRef& inner = form->inner.tensors.at(operand);
  inner = TensorRef(type, nullptr, dims, strides);
  const bool suits = outer.present && outer.type == type && Matches(outer, strides) &&
                     IsAligned(outer) && (adds || !outer.accumulate);
  form->staged.at(operand) = !suits;
  inner.accumulate = suits && outer.accumulate;
}

void PlaceLarge(const Task& task, int operand, DataType type, bool adds, Form* form) {
  const Dims& dims = XOf(task).dims;
  Place(task, operand, type, dims, DenseStrides(dims, form->channels_last), adds, form);
}

void PlaceParameter(const Task& task, int operand, DataType type, bool adds, Form* form) {
  Place(task, operand, type, {XOf(task).dims[1]}, {1}, adds, form);
}

/// A form of the task's layout without operands yet.
Result<Form> EmptyForm(const Task& task, bool channels_last_first) {
  const std::optional<bool> channels_last = PickLayout(task, channels_last_first);
  if (!channels_last) {
    return Unsupported("no large tensor is dense");
  }
  Form form;
  form.inner.direction = task.direction;
  form.inner.activation = task.activation;
  form.channels_last = *channels_last;
  return form;
}

/// Both outputs of a pair are given to cuDNN, or neither.
bool IsWanted(const Task& task, int first, int second) {
  return task.tensors.at(first).present || task.tensors.at(second).present;
}

DataType LegacyParameterType(const Task& task) {
  return XOf(task).type == DataType::kDouble ? DataType::kDouble : DataType::kFloat;
}

Form LegacyForwardForm(const Task& task, const Form& empty) {
  Form form = empty;
  using namespace forward;  // NOLINT(google-build-using-namespace): names of one list
  const DataType type = LegacyParameterType(task);
  for (const Operand operand : {kX, kY}) {
    PlaceLarge(task, operand, XOf(task).type, false, &form);
  }
  for (const Operand operand : {kScale, kB}) {
    PlaceParameter(task, operand, type, false, &form);
  }
  if (IsWanted(task, kNewMean, kNewVar)) {
    for (const Operand operand : {kRunningMean, kRunningVar, kNewMean, kNewVar}) {
      PlaceParameter(task, operand, type, false, &form);
    }
  }
  if (IsWanted(task, kSavedMean, kSavedInvStd)) {
    for (const Operand operand : {kSavedMean, kSavedInvStd}) {
      PlaceParameter(task, operand, type, false, &form);
    }
  }
  return form;
}

Form LegacyBackwardForm(const Task& task, const Form& empty) {
  Form form = empty;
  using namespace backward;  // NOLINT(google-build-using-namespace): names of one list
  const DataType type = LegacyParameterType(task);
  for (const Operand operand : {kDY, kX, kDX}) {
    PlaceLarge(task, operand, XOf(task).type, true, &form);
  }
  for (const Operand operand : {kScale, kSavedMean, kSavedInvStd}) {
    PlaceParameter(task, operand, type, true, &form);
  }
  // One factor says for both whether they are added to.
  const bool adds = task.tensors[kDScale].accumulate && task.tensors[kDBias].accumulate;
  for (const Operand operand : {kDScale, kDBias}) {
    PlaceParameter(task, operand, type, adds, &form);
  }
  if (form.staged[kDScale] != form.staged[kDBias]) {
    for (const Operand operand : {kDScale, kDBias}) {
      form.inner.tensors.at(operand).accumulate = false;
      form.staged.at(operand) = form.staged.at(operand) || task.tensors.at(operand).accumulate;
    }
  }
  return form;
}

std::size_t BytesOf(const TensorRef& tensor) {
  const std::size_t bytes =
      static_cast<std::size_t>(NumElements(tensor.dims)) * SizeOf(tensor.type);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

class StagedPlan final : public internal::Plan {
 public:
  StagedPlan(
      const cuda::DeviceInfo& device,
      const Task& task,
      const Form& form,
      std::unique_ptr<internal::Plan> inner)
      : device_(device), task_(task), form_(form), inner_(std::move(inner)) {}

  [[nodiscard]] std::size_t workspace() const override {
    return StagedBytes(form_) + inner_->workspace();
  }

  Status Run(const internal::Launch& launch) override {
    std::array<void*, kMaxOperands> operands{};
    auto* place = static_cast<std::byte*>(launch.workspace);
    for (int i = 0; i < OperandsOf(task_.direction); ++i) {
      operands.at(i) = launch.operands[i];
      if (form_.staged.at(i)) {
        operands.at(i) = place;
        place += BytesOf(form_.inner.tensors.at(i));
      }
      Bind(i, launch.operands[i], operands.at(i));
    }
    auto* stream = static_cast<CUstream>(launch.stream);
    if (Status status = CopyIn(stream); !status.ok()) {
      return status;
    }
    if (Status status = inner_->Run({launch.stream, operands, place, launch.scalars});
        !status.ok()) {
      return status;
    }
    return CopyOut(stream);
  }

 private:
  void Bind(int operand, void* outer, void* inner) {
    task_.tensors.at(operand).data = outer;
    form_.inner.tensors.at(operand).data = inner;
  }

  Status CopyIn(CUstream stream) {
    for (int i = 0; i < InputsOf(task_.direction); ++i) {
      if (!form_.staged.at(i)) {
        continue;
      }
      if (Status status =
              cuda::CopyTensor(device_, stream, task_.tensors.at(i), form_.inner.tensors.at(i));
          !status.ok()) {
        return status;
      }
    }
    return {};
  }

  Status CopyOut(CUstream stream) {
    for (int i = InputsOf(task_.direction); i < OperandsOf(task_.direction); ++i) {
      const TensorRef& to = task_.tensors.at(i);
      if (!form_.staged.at(i) || !to.present) {
        continue;
      }
      const TensorRef& from = form_.inner.tensors.at(i);
      if (Status status = to.accumulate ? cuda::AddTensor(device_, stream, from, to)
                                        : cuda::CopyTensor(device_, stream, from, to);
          !status.ok()) {
        return status;
      }
    }
    return {};
  }

  const cuda::DeviceInfo& device_;
  Task task_;
  Form form_;
  std::unique_ptr<internal::Plan> inner_;
};

}  // namespace

Result<Form> GraphForm(const Task& task) {
  using namespace backward;  // NOLINT(google-build-using-namespace): names of one list
  if (task.direction != Direction::kBackward) {
    return Unsupported("the graph API is used for the gradient only");
  }
  if (!task.tensors[kDX].present) {
    return Unsupported("dX is not wanted, which the graph API always writes");
  }
  for (int i = 0; i < kOperands; ++i) {
    if (task.tensors.at(i).present && task.tensors.at(i).type == DataType::kDouble) {
      return Unsupported("the graph API has no batch normalization of double");
    }
  }
  const DataType type = XOf(task).type;
  const std::int64_t multiple = type == DataType::kFloat ? 4 : 8;
  if (XOf(task).dims[1] % multiple != 0) {
    return Unsupported(
        std::to_string(XOf(task).dims[1]) + " channels; the graph API takes multiples of " +
        std::to_string(multiple));
  }
  Result<Form> form = EmptyForm(task, true);
  if (!form.ok()) {
    return form;
  }
  if (!form->channels_last) {
    // 9.19 lists engines for it that leave part of dX unwritten.
    return Unsupported("NCHW; the graph API is used for NHWC only");
  }
  for (const Operand operand : {kDY, kX}) {
    PlaceLarge(task, operand, type, false, &*form);
  }
  // What is added to something is rounded once, with the sum.
  PlaceLarge(task, kDX, task.tensors[kDX].accumulate ? DataType::kFloat : type, false, &*form);
  for (const Operand operand : {kScale, kB, kSavedMean, kSavedInvStd}) {
    const TensorRef& outer = task.tensors.at(operand);
    if (outer.present) {
      // What ReLU was given is computed from these, in float alone.
      const bool has_activation = task.activation != Activation::kNone;
      PlaceParameter(task, operand, has_activation ? DataType::kFloat : outer.type, false, &*form);
    }
  }
  for (const Operand operand : {kDScale, kDBias}) {
    const TensorRef& outer = task.tensors.at(operand);
    const bool own_type = outer.present && !outer.accumulate;
    PlaceParameter(task, operand, own_type ? outer.type : DataType::kFloat, false, &*form);
  }
  return form;
}

Result<Form> LegacyForm(const Task& task) {
  if (task.activation != Activation::kNone) {
    return Unsupported("the legacy API takes gradients of ReLU from what its own forward has kept");
  }
  const bool is_forward = task.direction == Direction::kForward;
  if (!is_forward && !task.tensors[backward::kDX].present) {
    return Unsupported("dX is not wanted, which the legacy API always writes");
  }
  Result<Form> form = EmptyForm(task, false);
  if (!form.ok()) {
    return form;
  }
  return is_forward ? LegacyForwardForm(task, *form) : LegacyBackwardForm(task, *form);
}

Dims Expanded(const Dims& dims) {
  constexpr int kLeastRank = 4;
  // (N, C, L) becomes (N, C, 1, L).
  Dims expanded = {dims[0], dims[1]};
  for (int i = dims.size(); i < kLeastRank; ++i) {
    expanded.push_back(1);
  }
  for (int i = 2; i < dims.size(); ++i) {
    expanded.push_back(dims[i]);
  }
  return expanded;
}

Strides DenseStrides(const Dims& dims, bool channels_last) {
  return channels_last ? ChannelsLastStrides(dims) : ContiguousStrides(dims);
}

std::size_t StagedBytes(const Form& form) {
  std::size_t bytes = 0;
  for (int i = 0; i < OperandsOf(form.inner.direction); ++i) {
    bytes += form.staged.at(i) ? BytesOf(form.inner.tensors.at(i)) : 0;
  }
  return bytes;
}

std::unique_ptr<internal::Plan> WrapPlan(
    const cuda::DeviceInfo& device,
    const Task& task,
    const Form& form,
    std::unique_ptr<internal::Plan> inner) {
  if (StagedBytes(form) == 0) {
    return inner;
  }
  return std::make_unique<StagedPlan>(device, task, form, std::move(inner));
}

}  // namespace gradsmith::batch_norm
