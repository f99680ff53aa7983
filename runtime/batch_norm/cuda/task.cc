#include "batch_norm/cuda/task.h"

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "cuda/selected_run.h"

namespace gradsmith::batch_norm {

namespace {

/// A number that no other family's keys begin with.
constexpr std::int64_t kFamily = 2;
constexpr int kVector = 16;

/// Family and operands, dims, then each operand's strides; policies and origin take five more.
constexpr int kMostWords = 2 + (2 + kMaxRank) + (3 * (1 + kMaxRank)) + (8 * 2) + 5;
static_assert(kMostWords <= internal::ProblemKey::kCapacity);

TensorRef ToRef(const ConstTensorRef* tensor) {
  if (tensor == nullptr || !tensor->present) {
    return {};
  }
  return {
      tensor->type, const_cast<void*>(tensor->data), tensor->dims, tensor->strides, tensor->device};
}

TensorRef ToRef(const TensorRef* tensor) {
  return tensor == nullptr || !tensor->present ? TensorRef() : *tensor;
}

/// Five bits: what a plan must know of an operand beside its strides.
std::int64_t TraitsOf(const TensorRef& tensor) {
  if (!tensor.present) {
    return 0;
  }
  const bool aligned = cuda::AlignmentClass(tensor.data, tensor.type) == kVector;
  return 1 + (tensor.accumulate ? 2 : 0) + (aligned ? 4 : 0) +
         (static_cast<std::int64_t>(tensor.type) << 3U);
}
constexpr unsigned kTraitBits = 5;
static_assert(kFloatingTypeCount <= 4);
static_assert((kMaxOperands + 1) * kTraitBits < 63);

bool IsInPlace(const Task& task, int input, int output) {
  const TensorRef& to = task.tensors.at(output);
  return to.present && to.data == task.tensors.at(input).data;
}

std::int64_t InPlaceBits(const Task& task) {
  if (task.direction == Direction::kBackward) {
    return 0;
  }
  return (IsInPlace(task, forward::kRunningMean, forward::kNewMean) ? 1 : 0) +
         (IsInPlace(task, forward::kRunningVar, forward::kNewVar) ? 2 : 0);
}

std::string LayoutText(const TensorRef& tensor) {
  if (tensor.strides == ContiguousStrides(tensor.dims)) {
    return IsLarge(tensor) ? " NCHW" : "";
  }
  return IsLarge(tensor) && tensor.strides == ChannelsLastStrides(tensor.dims)
             ? " NHWC"
             : " strides " + ToString(tensor.strides);
}

}  // namespace

Task MakeTask(
    Activation activation,
    const BatchNormalization::Inputs& inputs,
    const BatchNormalization::Outputs& outputs) {
  return {
      Direction::kForward,
      activation,
      {ToRef(inputs.X), ToRef(inputs.scale), ToRef(inputs.B), ToRef(inputs.running_mean),
       ToRef(inputs.running_var), ToRef(outputs.Y), ToRef(outputs.running_mean),
       ToRef(outputs.running_var), ToRef(outputs.saved_mean), ToRef(outputs.saved_inv_std)}};
}

Task MakeTask(
    const BatchNormalizationReluGrad::Inputs& inputs,
    const BatchNormalizationGrad::Outputs& outputs) {
  return {
      Direction::kBackward,
      ActivationOf(inputs),
      {ToRef(inputs.dY), ToRef(inputs.X), ToRef(inputs.scale), ToRef(inputs.B),
       ToRef(inputs.saved_mean), ToRef(inputs.saved_inv_std), ToRef(outputs.dX),
       ToRef(outputs.dScale), ToRef(outputs.dBias)}};
}

std::string_view NameOf(Direction direction, int operand) {
  constexpr std::array<std::string_view, forward::kOperands> kForward = {
      "X",
      "scale",
      "B",
      "running_mean",
      "running_var",
      "Y",
      "new running_mean",
      "new running_var",
      "saved_mean",
      "saved_inv_std"};
  constexpr std::array<std::string_view, backward::kOperands> kBackward = {
      "dY", "X", "scale", "B", "saved_mean", "saved_inv_std", "dX", "dScale", "dBias"};
  return direction == Direction::kForward ? kForward.at(operand) : kBackward.at(operand);
}

const TensorRef& XOf(const Task& task) {
  return task.direction == Direction::kForward ? task.tensors[forward::kX]
                                               : task.tensors[backward::kX];
}

bool IsLarge(const TensorRef& tensor) {
  return tensor.rank() > 1;
}

std::int64_t SamplesPerChannel(const Task& task) {
  const Dims& dims = XOf(task).dims;
  std::int64_t samples = 1;
  for (int i = 0; i < dims.size(); ++i) {
    samples *= i == 1 ? 1 : dims[i];
  }
  return samples;
}

std::array<void*, kMaxOperands> AddressesOf(const Task& task) {
  std::array<void*, kMaxOperands> addresses{};
  for (int i = 0; i < OperandsOf(task.direction); ++i) {
    addresses.at(i) = task.tensors.at(i).data;
  }
  return addresses;
}

void AddTo(const Task& task, internal::ProblemKey* key) {
  const int operands = OperandsOf(task.direction);
  std::int64_t traits = InPlaceBits(task);
  for (int i = 0; i < operands; ++i) {
    traits = (traits << kTraitBits) + TraitsOf(task.tensors.at(i));
  }
  key->Add(
      (kFamily << 8U) + (static_cast<std::int64_t>(task.activation) << 1U) +
      static_cast<std::int64_t>(task.direction));
  key->Add(traits);
  key->Add(XOf(task).dims);
  for (int i = 0; i < operands; ++i) {
    if (task.tensors.at(i).present) {
      key->Add(task.tensors.at(i).strides);
    }
  }
}

std::string OpOf(const Task& task) {
  return std::string("BatchNormalization") + (task.activation == Activation::kRelu ? "Relu" : "") +
         (task.direction == Direction::kBackward ? "Grad" : "");
}

std::string Describe(const Task& task) {
  std::string text = OpOf(task);
  for (int i = 0; i < OperandsOf(task.direction); ++i) {
    const TensorRef& tensor = task.tensors.at(i);
    if (!tensor.present) {
      continue;
    }
    text += ", " + std::string(NameOf(task.direction, i)) + " " +
            std::string(ToString(tensor.type)) + " " + ToString(tensor.dims) + LayoutText(tensor);
    if (const int alignment = cuda::AlignmentClass(tensor.data, tensor.type); alignment < kVector) {
      text += " aligned to " + std::to_string(alignment) + " bytes";
    }
    text += tensor.accumulate ? " accumulating" : "";
  }
  return text + (InPlaceBits(task) != 0 ? ", in place" : "");
}

}  // namespace gradsmith::batch_norm
