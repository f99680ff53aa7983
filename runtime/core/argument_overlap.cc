#include "core/argument_overlap.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/inline_vector.h"
#include "core/overlap.h"
#include "core/tensor_memory.h"

namespace gradsmith::internal {

namespace {

bool SameMemory(const ConstTensorRef& a, const ConstTensorRef& b) {
  return a.data == b.data && a.type == b.type && a.dims == b.dims && a.strides == b.strides;
}

/// The most inputs or outputs of an op whose pairs are all compared.
constexpr int kFew = 32;

/// The memory of inputs or outputs, in their order.
using Ranges = InlineVector<ByteRange, kFew>;

/// CheckOverlapsOf checks an output beside the inputs and the outputs before it. Nearly always the
/// ranges of bytes tell that two share nothing.
Status CheckOverlapsOf(
    const OpSchema& op,
    const ConstTensorRef& output,
    std::span<const ConstTensorRef> inputs,
    const Ranges& in_inputs,
    std::span<const TensorRef> outputs,
    const Ranges& in_outputs) {
  const int i = in_outputs.size() - 1;
  const TensorSpec& spec = op.outputs[static_cast<std::size_t>(i)];
  Status status;
  for (int j = 0; status.ok() && j < in_inputs.size(); ++j) {
    const ConstTensorRef& input = inputs[static_cast<std::size_t>(j)];
    const bool in_place = spec.in_place_of == j && SameMemory(output, input);
    if (!in_place && in_inputs[j].Meets(in_outputs[i])) {
      status = CheckDisjoint(spec.name, output, {"input", op.inputs[j].name}, input);
    }
  }
  for (int j = 0; status.ok() && j < i; ++j) {
    if (in_outputs[j].Meets(in_outputs[i])) {
      status = CheckDisjoint(spec.name, output, {"output", op.outputs[j].name}, outputs[j]);
    }
  }
  return status;
}

/// CheckFewOverlaps is CheckOverlaps for kFew inputs and outputs each, or less.
Status CheckFewOverlaps(
    const OpSchema& op,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  Ranges in_inputs;
  for (const ConstTensorRef& input : inputs) {
    in_inputs.push_back(BytesOf(input));
  }
  Ranges in_outputs;
  for (const TensorRef& given : outputs) {
    if (!given.present) {
      in_outputs.push_back({});
      continue;
    }
    const ConstTensorRef output = given;
    in_outputs.push_back(BytesOf(output));
    if (Status status = CheckOverlapsOf(op, output, inputs, in_inputs, outputs, in_outputs);
        !status.ok()) {
      return status;
    }
  }
  return {};
}

/// Reach is the bytes that an argument reaches over.
struct Reach {
  ByteRange range;
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
    const ByteRange range = BytesOf(tensor);
    if (range.end > 0) {
      reaches.push_back({range, &specs[i], &tensor, are_inputs ? static_cast<int>(i) : -1});
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
    return a.range.begin < b.range.begin;
  });
  for (std::size_t i = 0; i < reaches.size(); ++i) {
    for (std::size_t j = i + 1; j < reaches.size() && reaches[j].range.begin < reaches[i].range.end;
         ++j) {
      if (Status status = CheckPair(reaches[i], reaches[j]); !status.ok()) {
        return status;
      }
    }
  }
  return {};
}

}  // namespace

Status CheckNoneIsShared(const OpSchema& op, std::span<const TensorRef> outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].present) {
      continue;
    }
    if (Status status = CheckNotShared(op.outputs[i].name, outputs[i]); !status.ok()) {
      return status;
    }
  }
  return {};
}

Status CheckOverlaps(
    const OpSchema& op,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  const bool are_few = op.list_length == 0 && std::max(inputs.size(), outputs.size()) <= kFew;
  return are_few ? CheckFewOverlaps(op, inputs, outputs) : CheckManyOverlaps(op, inputs, outputs);
}

}  // namespace gradsmith::internal
