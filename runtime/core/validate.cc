#include "core/validate.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/argument_overlap.h"
#include "core/attribute_check.h"
#include "core/call_shapes.h"
#include "core/checked_call.h"
#include "core/exceptions.h"
#include "core/held_shape.h"
#include "core/list_schema.h"
#include "core/stub.h"
#include "core/tensor_memory.h"
#include "core/text.h"

namespace gradsmith::internal {

namespace {

DataType ExpectedType(const Row& row, const TensorSpec& spec) {
  return spec.type_parameter < 0 ? spec.fixed_type : row.types[spec.type_parameter];
}

std::string TypeText(const Row& row, const TensorSpec& spec) {
  std::string text(ToString(ExpectedType(row, spec)));
  if (spec.type_parameter >= 0) {
    text += " (" + std::string(row.op->type_parameters[spec.type_parameter]) + ")";
  }
  return text;
}

Status CheckTensor(
    const Row& row,
    const Context& context,
    const TensorSpec& spec,
    const ConstTensorRef& tensor) {
  if (tensor.type != ExpectedType(row, spec)) {
    return InvalidArgument(
        std::string(spec.name) + " has type " + std::string(ToString(tensor.type)) + "; expected " +
        TypeText(row, spec));
  }
  if (!spec.shape_of.empty()) {
    if (Status status = CheckOnHost(spec, tensor); !status.ok()) {
      return status;
    }
  } else if (
      tensor.device != context.device() && !(spec.may_be_on_host && tensor.device == Device{})) {
    return InvalidArgument(
        std::string(spec.name) + " is on " + std::string(ToString(tensor.device.backend)) + " " +
        std::to_string(tensor.device.index) + "; expected the context's device, " +
        std::string(ToString(context.backend())) + " " + std::to_string(context.device().index) +
        (spec.may_be_on_host && context.device() != Device{} ? ", or cpu 0" : ""));
  }
  if (tensor.dims.too_long()) {
    return InvalidArgument(
        std::string(spec.name) + " has more than 8 dims; expected " + std::string(spec.shape_text));
  }
  if (tensor.accumulate && spec.gradient_of.empty()) {
    return InvalidArgument(
        std::string(spec.name) + " is to be added to; only the outputs of a gradient can be");
  }
  return CheckMemory(spec.name, tensor, spec.shape_only);
}

template <typename Ref>
Status CheckTensors(
    const Row& row,
    const Context& context,
    std::string_view role,
    std::span<const TensorSpec> specs,
    std::span<const Ref> arguments) {
  if (arguments.size() > specs.size()) {
    return InvalidArgument(
        std::to_string(arguments.size()) + " " + std::string(role) +
        "s were given; expected at most " + std::to_string(specs.size()));
  }
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const Ref* tensor = ArgumentAt(arguments, i);
    if (tensor == nullptr) {
      if (!specs[i].optional) {
        return InvalidArgument(
            std::string(role) + " " + std::string(specs[i].name) + " is absent; it is required");
      }
      continue;
    }
    if (Status status = CheckTensor(row, context, specs[i], *tensor); !status.ok()) {
      return status;
    }
  }
  return {};
}

/// A call that asks for nothing is a mistake of whoever put it together.
Status CheckOutputIsAsked(const OpSchema& op, std::span<const TensorRef> outputs) {
  const auto is_present = [](const TensorRef& output) { return output.present; };
  if (op.outputs.empty() || std::any_of(outputs.begin(), outputs.end(), is_present)) {
    return {};
  }
  std::vector<std::string_view> names;
  for (const TensorSpec& spec : op.outputs) {
    names.push_back(spec.name);
  }
  return InvalidArgument("no output is asked for; expected at least one of " + Join(names));
}

/// CheckContext checks that a context is one for the row.
Status CheckContext(const Row& row, const Context& context) {
  if (context.backend() != row.backend) {
    return InvalidArgument(
        "the context is on " + std::string(ToString(context.backend())) + "; expected " +
        std::string(ToString(row.backend)));
  }
  if (row.backend == Backend::kCpu && context.device().index != 0) {
    return CheckCpuIndex(context.device().index).WithPrefix("the context's device: ");
  }
  if (row.repeatable == Repeatable::kNever && context.options().deterministic.value_or(false)) {
    return Unsupported(
        "two calls never give the same bits, and the context is deterministic; expected a context "
        "that is not");
  }
  return CheckWorkspace(context);
}

/// CheckArguments checks all but which tensors overlap.
Status CheckArguments(
    const Row& row,
    const Context& context,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  const OpSchema& op = *row.op;
  if (Status status = ValidateAttributes(op, attributes); !status.ok()) {
    return status;
  }
  if (Status status = CheckTensors(row, context, "input", op.inputs, inputs); !status.ok()) {
    return status;
  }
  if (Status status = CheckTensors(row, context, "output", op.outputs, outputs); !status.ok()) {
    return status;
  }
  if (Status status = CheckOutputIsAsked(op, outputs); !status.ok()) {
    return status;
  }
  if (Status status = CheckShapes(op, attributes, inputs, outputs); !status.ok()) {
    return status;
  }
  return CheckNoneIsShared(op, outputs);
}

/// AddressesFit returns whether each tensor has memory where its elements may lie, if it is more
/// than a shape. An empty tensor, which needs none, may be told to have none.
template <typename Ref>
bool AddressesFit(std::span<const TensorSpec> specs, std::span<const Ref> tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const bool fits =
        tensors[i].data == nullptr
            ? specs[i].shape_only || !tensors[i].present
            : reinterpret_cast<std::uintptr_t>(tensors[i].data) % SizeOf(tensors[i].type) == 0;
    if (!fits) {
      return false;
    }
  }
  return true;
}

}  // namespace

Status CheckWorkspace(const Context& context) {
  constexpr std::size_t kAlignment = 256;
  const ContextOptions& options = context.options();
  if (context.backend() != Backend::kCuda) {
    return {};
  }
  if (options.workspace == nullptr && options.workspace_size > 0) {
    return InvalidArgument(
        "the context's workspace is null; expected " + std::to_string(options.workspace_size) +
        " bytes, which workspace_size promises");
  }
  const std::size_t past = reinterpret_cast<std::uintptr_t>(options.workspace) % kAlignment;
  return past == 0 ? Status()
                   : InvalidArgument(
                         "the context's workspace is " +
                         Counted(static_cast<std::int64_t>(past), "byte") +
                         " past a multiple of 256; expected it aligned to 256 bytes");
}

Status CheckCpuIndex(int index) {
  return index == 0 ? Status()
                    : InvalidArgument(
                          "there is no cpu " + std::to_string(index) +
                          "; expected 0, which has all of the machine's processors");
}

Status ValidateCall(
    const Row& row,
    const Context& context,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  if (Status status = CheckContext(row, context); !status.ok()) {
    return status;
  }
  const CheckedCall call(row, context.device(), attributes, inputs, outputs);
  if (!call.HasPassed() || !AddressesFit(row.op->inputs, inputs) ||
      !AddressesFit(row.op->outputs, outputs)) {
    if (Status status = CheckArguments(row, context, attributes, inputs, outputs); !status.ok()) {
      return status;
    }
    call.NotePassed();
  }
  return CheckOverlaps(*row.op, inputs, outputs);
}

namespace {

/// CheckGiven checks what shapes are inferred from, before they are compared with each other.
Status CheckGiven(
    const OpSchema& op,
    std::span<const ConstTensorRef> inputs,
    std::span<const ConstTensorRef> outputs) {
  if (inputs.size() > op.inputs.size()) {
    return InvalidArgument(
        std::to_string(inputs.size()) + " inputs were given; expected at most " +
        std::to_string(op.inputs.size()));
  }
  if (outputs.size() > op.outputs.size()) {
    return InvalidArgument(
        std::to_string(outputs.size()) + " outputs were given; expected at most " +
        std::to_string(op.outputs.size()));
  }
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const ConstTensorRef* input = ArgumentAt(inputs, i);
    if (input == nullptr && !op.inputs[i].optional) {
      return InvalidArgument(
          "input " + std::string(op.inputs[i].name) + " is absent; it is required");
    }
    if (input != nullptr &&
        std::any_of(input->dims.begin(), input->dims.end(), [](auto dim) { return dim < 0; })) {
      return InvalidArgument(
          std::string(op.inputs[i].name) + " has dims " + ToString(input->dims) +
          "; expected 0 or more");
    }
  }
  return {};
}

/// InferSpelledOut is CheckAndInfer for an op without lists.
Result<std::vector<Dims>> InferSpelledOut(
    const OpSchema& op,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const ConstTensorRef> outputs) {
  if (Status status = ValidateAttributes(op, attributes); !status.ok()) {
    return status;
  }
  if (Status status = CheckGiven(op, inputs, outputs); !status.ok()) {
    return status;
  }
  return ShapesOfOutputs(op, attributes, inputs, outputs);
}

Result<std::vector<Dims>> CheckAndInfer(
    const OpSchema& op,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const ConstTensorRef> outputs) {
  if (!op.has_lists) {
    return InferSpelledOut(op, attributes, inputs, outputs);
  }
  const Result<int> length = outputs.empty() ? ListLengthOf("input", op.inputs, inputs.size())
                                             : ListLength(op, inputs.size(), outputs.size());
  if (!length.ok()) {
    return length.status();
  }
  if (*length == 0) {
    return InvalidArgument("nothing tells how many tensors a list has; expected the outputs too");
  }
  return InferSpelledOut(*SpellOut(op, *length), attributes, inputs, outputs);
}

}  // namespace

Result<std::vector<Dims>> InferShapes(
    const OpSchema& op,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const ConstTensorRef> outputs) {
  return CatchExceptions([&] { return CheckAndInfer(op, attributes, inputs, outputs); });
}

}  // namespace gradsmith::internal
