#include "batch_norm/cuda/form.h"

#include <cstdint>
#include <optional>
#include <string>

#include "cuda/alignment.h"

namespace gradsmith::batch_norm {

namespace {

using cuda::OpTask;

bool IsAligned(const TensorRef& tensor) {
  return cuda::AlignmentClass(tensor.data, tensor.type) == cuda::kVectorBytes;
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
std::optional<bool> PickLayout(const OpTask& task, bool channels_last_first) {
  const auto layout_of = [&](const TensorRef& tensor) -> std::optional<bool> {
    for (const bool channels_last : {channels_last_first, !channels_last_first}) {
      if (Matches(tensor, DenseStrides(tensor.dims, channels_last))) {
        return channels_last;
      }
    }
    return std::nullopt;
  };
  std::optional<bool> layout = layout_of(XOf(task));
  for (int i = 0; i < task.operands() && !layout; ++i) {
    const TensorRef& tensor = task.tensors[i];
    if (tensor.present && IsPerElement(tensor)) {
      layout = layout_of(tensor);
    }
  }
  return layout;
}

/// Puts a tensor that is as cuDNN wants it, of `type` and `strides`, into the form in an operand's
/// place. It is the operand itself where that suits, and staged where not.
void Place(
    const OpTask& task,
    int operand,
    DataType type,
    const Dims& dims,
    const Strides& strides,
    bool adds,
    StagedForm* form) {
  const TensorRef& outer = task.tensors[operand];
  TensorRef& inner = form->inner.tensors[operand];
  inner = TensorRef(type, nullptr, dims, strides);
  const bool suits = outer.present && outer.type == type && Matches(outer, strides) &&
                     IsAligned(outer) && (adds || !outer.accumulate);
  form->staged.at(operand) = !suits;
  inner.accumulate = suits && outer.accumulate;
}

void PlaceLarge(const OpTask& task, int operand, DataType type, bool adds, StagedForm* form) {
  const Dims& dims = XOf(task).dims;
  Place(task, operand, type, dims, DenseStrides(dims, form->channels_last), adds, form);
}

void PlaceParameter(const OpTask& task, int operand, DataType type, bool adds, StagedForm* form) {
  Place(task, operand, type, {XOf(task).dims[1]}, {1}, adds, form);
}

/// A form of the task's layout without operands yet.
Result<StagedForm> EmptyForm(const OpTask& task, bool channels_last_first) {
  const std::optional<bool> channels_last = PickLayout(task, channels_last_first);
  if (!channels_last) {
    return Unsupported("no large tensor is dense");
  }
  StagedForm form;
  form.inner.op = task.op;
  form.inner.tensors.resize(task.operands());
  form.channels_last = *channels_last;
  return form;
}

/// Both outputs of a pair are given to cuDNN, or neither.
bool IsWanted(const OpTask& task, int first, int second) {
  return task.tensors[first].present || task.tensors[second].present;
}

DataType LegacyParameterType(const OpTask& task) {
  return XOf(task).type == DataType::kDouble ? DataType::kDouble : DataType::kFloat;
}

StagedForm LegacyForwardForm(const OpTask& task, const StagedForm& empty) {
  StagedForm form = empty;
  using namespace forward;  // NOLINT(google-build-using-namespace): names of one list
  const DataType type = LegacyParameterType(task);
  for (const Operand operand : {kX, kY}) {
    PlaceLarge(task, operand, XOf(task).type, false, &form);
  }
  for (const Operand operand : {kScale, kB}) {
    PlaceParameter(task, operand, type, false, &form);
  }
  if (IsWanted(task, kNewRunningMean, kNewRunningVar)) {
    for (const Operand operand : {kRunningMean, kRunningVar, kNewRunningMean, kNewRunningVar}) {
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

StagedForm LegacyBackwardForm(const OpTask& task, const StagedForm& empty) {
  StagedForm form = empty;
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
      form.inner.tensors[operand].accumulate = false;
      form.staged.at(operand) = form.staged.at(operand) || task.tensors[operand].accumulate;
    }
  }
  return form;
}

}  // namespace

Result<StagedForm> GraphForm(const OpTask& task) {
  using namespace backward;  // NOLINT(google-build-using-namespace): names of one list
  if (DirectionOf(task) != Direction::kBackward) {
    return Unsupported("the graph API is used for the gradient only");
  }
  if (!task.tensors[kDX].present) {
    return Unsupported("dX is not wanted, which the graph API always writes");
  }
  for (int i = 0; i < kOperands; ++i) {
    if (task.tensors[i].present && task.tensors[i].type == DataType::kDouble) {
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
  Result<StagedForm> form = EmptyForm(task, true);
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
    const TensorRef& outer = task.tensors[operand];
    if (outer.present) {
      // What ReLU was given is computed from these, in float alone.
      const bool has_activation = ActivationOf(task) != Activation::kNone;
      PlaceParameter(task, operand, has_activation ? DataType::kFloat : outer.type, false, &*form);
    }
  }
  for (const Operand operand : {kDScale, kDBias}) {
    const TensorRef& outer = task.tensors[operand];
    const bool own_type = outer.present && !outer.accumulate;
    PlaceParameter(task, operand, own_type ? outer.type : DataType::kFloat, false, &*form);
  }
  return form;
}

Result<StagedForm> LegacyForm(const OpTask& task) {
  if (ActivationOf(task) != Activation::kNone) {
    return Unsupported("the legacy API takes gradients of ReLU from what its own forward has kept");
  }
  const bool is_forward = DirectionOf(task) == Direction::kForward;
  if (!is_forward && !task.tensors[backward::kDX].present) {
    return Unsupported("dX is not wanted, which the legacy API always writes");
  }
  Result<StagedForm> form = EmptyForm(task, false);
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

}  // namespace gradsmith::batch_norm
