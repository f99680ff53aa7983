#include "core/argument_overlap.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/tensor_memory.h"

namespace gradsmith::internal {

namespace {

bool SameMemory(const ConstTensorRef& a, const ConstTensorRef& b) {
  return a.data == b.data && a.type == b.type && a.dims == b.dims && a.strides == b.strides;
}

Status CheckOverlapsOf(
    const OpSchema& op,
    std::size_t i,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  const TensorSpec& spec = op.outputs[i];
  const ConstTensorRef output = outputs[i];
  if (Status status = CheckNotShared(spec.name, output); !status.ok()) {
    return status;
  }
  for (std::size_t j = 0; j < inputs.size(); ++j) {
    const bool in_place = spec.in_place_of == static_cast<int>(j) && SameMemory(output, inputs[j]);
    if (in_place) {
      continue;
    }
    if (Status status = CheckDisjoint(spec.name, output, {"input", op.inputs[j].name}, inputs[j]);
        !status.ok()) {
      return status;
    }
  }
  for (std::size_t j = 0; j < i; ++j) {
    if (Status status =
            CheckDisjoint(spec.name, output, {"output", op.outputs[j].name}, outputs[j]);
        !status.ok()) {
      return status;
    }
  }
  return {};
}

/// Reach is the bytes that an argument reaches over.
struct Reach {
  std::uintptr_t begin;
  std::uintptr_t end;
  const TensorSpec* spec;
  const ConstTensorRef* tensor;
  int input;  ///< its index where it is an input, -1 where it is an output
};

template <typename Ref>
void AddReaches(
    std::span<const TensorSpec> specs,
    std::span<const Ref> arguments,
    bool are_inputs,
    std::vector<Reach>& reaches) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const ConstTensorRef& tensor = arguments[i];
    const std::size_t bytes = tensor.present && tensor.data != nullptr ? SpanBytes(tensor) : 0;
    if (bytes > 0) {
      const auto begin = reinterpret_cast<std::uintptr_t>(tensor.data);
      reaches.push_back(
          {begin, begin + bytes, &specs[i], &tensor, are_inputs ? static_cast<int>(i) : -1});
    }
  }
}

Status CheckPair(const Reach& a, const Reach& b) {
  const bool a_is_output = a.input < 0;
  const Reach& output = a_is_output ? a : b;
  const Reach& other = a_is_output ? b : a;
  const bool in_place = other.input >= 0 && output.spec->in_place_of == other.input &&
                        SameMemory(*output.tensor, *other.tensor);
  if (output.input >= 0 || in_place) {
    return {};
  }
  return CheckDisjoint(
      output.spec->name, *output.tensor, {other.input < 0 ? "output" : "input", other.spec->name},
      *other.tensor);
}

/// CheckManyOverlaps is CheckOverlaps for an op of any number of tensors: of all pairs only those
/// are compared whose bytes lie among each other.
Status CheckManyOverlaps(
    const OpSchema& op,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  const std::vector<ConstTensorRef> written(outputs.begin(), outputs.end());
  std::vector<Reach> reaches;
  AddReaches(op.inputs, inputs, true, reaches);
  AddReaches(op.outputs, std::span<const ConstTensorRef>(written), false, reaches);
  std::sort(reaches.begin(), reaches.end(), [](const Reach& a, const Reach& b) {
    return a.begin < b.begin;
  });
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (Status status = CheckNotShared(op.outputs[i].name, written[i]); !status.ok()) {
      return status;
    }
  }
  for (std::size_t i = 0; i < reaches.size(); ++i) {
    for (std::size_t j = i + 1; j < reaches.size() && reaches[j].begin < reaches[i].end; ++j) {
      if (Status status = CheckPair(reaches[i], reaches[j]); !status.ok()) {
        return status;
      }
    }
  }
  return {};
}

}  // namespace

Status CheckOverlaps(
    const OpSchema& op,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  if (op.list_length > 0) {
    return CheckManyOverlaps(op, inputs, outputs);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (Status status = CheckOverlapsOf(op, i, inputs, outputs); !status.ok()) {
      return status;
    }
  }
  return {};
}

}  // namespace gradsmith::internal
