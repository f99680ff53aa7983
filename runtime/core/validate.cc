#include "core/validate.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/exceptions.h"
#include "core/held_shape.h"
#include "core/list_schema.h"
#include "core/shape_symbols.h"
#include "core/tensor_memory.h"
#include "core/text.h"

namespace gradsmith::internal {

namespace {

std::string LimitText(double value) {
  std::string text = std::to_string(value);
  if (std::nearbyint(value) == value && std::abs(value) < 1e15) {
    return std::to_string(static_cast<std::int64_t>(value));
  }
  return text;
}

std::string BoundsText(const AttributeSpec& spec) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  const bool has_minimum = spec.minimum > -kLargest;
  const bool has_maximum = spec.maximum < kLargest;
  if (has_minimum && has_maximum) {
    return LimitText(spec.minimum) + " to " + LimitText(spec.maximum);
  }
  if (has_minimum || has_maximum) {
    return has_minimum ? "at least " + LimitText(spec.minimum)
                       : "at most " + LimitText(spec.maximum);
  }
  return std::isinf(spec.minimum) || std::isinf(spec.maximum) ? "a number" : "a finite number";
}

Status OutOfRange(const AttributeSpec& spec, const std::string& value) {
  return InvalidArgument(
      "attribute " + std::string(spec.name) + " is " + value + "; expected " + BoundsText(spec));
}

template <typename Number>
bool InRange(const AttributeSpec& spec, Number value) {
  return static_cast<double>(value) >= spec.minimum && static_cast<double>(value) <= spec.maximum;
}

template <typename Number>
Status CheckNumber(const AttributeSpec& spec, Number value) {
  return InRange(spec, value) ? Status() : OutOfRange(spec, std::to_string(value));
}

template <typename Number>
Status CheckList(const AttributeSpec& spec, const BasicList<Number>& list) {
  if (list.too_long()) {
    return InvalidArgument(
        "attribute " + std::string(spec.name) + " is " + ToString(list) + "; expected at most " +
        std::to_string(IntList::kCapacity) + " values");
  }
  for (const Number value : list) {
    if (!InRange(spec, value)) {
      return InvalidArgument(
          "attribute " + std::string(spec.name) + " is " + ToString(list) + ", with " +
          std::to_string(value) + "; expected each " + BoundsText(spec));
    }
  }
  return {};
}

Status CheckEnum(const AttributeSpec& spec, std::uint8_t value) {
  return value < spec.choices.size()
             ? Status()
             : InvalidArgument(
                   "attribute " + std::string(spec.name) + " is the enumerator " +
                   std::to_string(value) + "; expected one below " +
                   std::to_string(spec.choices.size()));
}

/// Checks a value where it is there.
template <typename T, typename Check>
Status CheckValue(const AttributeSpec& spec, const void* attributes, Check check) {
  const T* value = FindAttribute<T>(spec, attributes);
  return value == nullptr ? Status() : check(spec, *value);
}

Status CheckAttribute(const AttributeSpec& spec, const void* attributes) {
  switch (spec.kind) {
    case AttributeKind::kInt:
      return CheckValue<std::int64_t>(spec, attributes, &CheckNumber<std::int64_t>);
    case AttributeKind::kFloat:
      return CheckValue<double>(spec, attributes, &CheckNumber<double>);
    case AttributeKind::kInts:
      return CheckValue<IntList>(spec, attributes, &CheckList<std::int64_t>);
    case AttributeKind::kFloats:
      return CheckValue<FloatList>(spec, attributes, &CheckList<double>);
    case AttributeKind::kEnum:
      return CheckEnum(spec, AttributeAt<std::uint8_t>(spec, attributes));
    case AttributeKind::kBool:
    case AttributeKind::kString:
      return {};
  }
  return Internal("attribute " + std::string(spec.name) + " has an unknown kind");
}

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
  const std::string name(spec.name);
  if (tensor.type != ExpectedType(row, spec)) {
    return InvalidArgument(
        name + " has type " + std::string(ToString(tensor.type)) + "; expected " +
        TypeText(row, spec));
  }
  if (!spec.shape_of.empty()) {
    if (Status status = CheckOnHost(spec, tensor); !status.ok()) {
      return status;
    }
  } else if (
      tensor.device != context.device() && !(spec.may_be_on_host && tensor.device == Device{})) {
    return InvalidArgument(
        name + " is on " + std::string(ToString(tensor.device.backend)) + " " +
        std::to_string(tensor.device.index) + "; expected the context's device, " +
        std::string(ToString(context.backend())) + " " + std::to_string(context.device().index) +
        (spec.may_be_on_host && context.device() != Device{} ? ", or cpu 0" : ""));
  }
  if (tensor.dims.too_long()) {
    return InvalidArgument(
        name + " has more than 8 dims; expected " + std::string(spec.shape_text));
  }
  if (tensor.accumulate && spec.gradient_of.empty()) {
    return InvalidArgument(name + " is to be added to; only the outputs of a gradient can be");
  }
  return CheckMemory(spec.name, tensor, spec.shape_only);
}

template <typename Ref>
const Ref& ArgumentAt(std::span<const Ref> arguments, std::size_t i) {
  static const Ref absent;
  return i < arguments.size() ? arguments[i] : absent;
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
    const Ref& tensor = ArgumentAt(arguments, i);
    if (!tensor.present) {
      if (!specs[i].optional) {
        return InvalidArgument(
            std::string(role) + " " + std::string(specs[i].name) + " is absent; it is required");
      }
      continue;
    }
    if (Status status = CheckTensor(row, context, specs[i], tensor); !status.ok()) {
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

/// Binds the dims that an input holds.
Status BindHeld(ShapeSymbols& symbols, const TensorSpec& spec, const ConstTensorRef& tensor) {
  const Result<Dims> held = HeldShape(spec, tensor);
  return held.ok() ? symbols.Bind(spec, *held) : held.status();
}

/// Binds the shapes of what is present, again and again while a shape of several lists of dims
/// waits for the tensor that tells where these end. What has been bound agrees with itself.
template <typename Ref>
Status BindShapes(
    ShapeSymbols& symbols,
    std::span<const TensorSpec> specs,
    std::span<const Ref> arguments) {
  std::size_t waiting = arguments.size();
  for (std::size_t before = waiting + 1; waiting > 0 && waiting < before;) {
    before = waiting;
    waiting = 0;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (!arguments[i].present) {
        continue;
      }
      if (!symbols.CanBind(specs[i])) {
        ++waiting;
        continue;
      }
      Status status = specs[i].shape_of.empty() ? symbols.Bind(specs[i], arguments[i].dims)
                                                : BindHeld(symbols, specs[i], arguments[i]);
      if (!status.ok()) {
        return status;
      }
    }
  }
  for (std::size_t i = 0; waiting > 0 && i < arguments.size(); ++i) {
    if (arguments[i].present && !symbols.CanBind(specs[i])) {
      return InvalidArgument(
          std::string(specs[i].name) + " has shape " + ToString(arguments[i].dims) +
          ", and nothing that is given tells how many dims each list of it has; expected " +
          std::string(specs[i].shape_text));
    }
  }
  return {};
}

/// Binds all that the inputs and the attributes say of the symbols.
Status
BindInputs(ShapeSymbols& symbols, const OpSchema& op, std::span<const ConstTensorRef> inputs) {
  if (Status status = symbols.SetAxes(inputs); !status.ok()) {
    return status;
  }
  if (Status status = BindShapes(symbols, op.inputs, inputs); !status.ok()) {
    return status;
  }
  if (Status status = symbols.CheckAttributeLengths(); !status.ok()) {
    return status;
  }
  return symbols.ApplyRules();
}

Status CheckShapes(
    const OpSchema& op,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  ShapeSymbols symbols(op, attributes);
  if (Status status = BindInputs(symbols, op, inputs); !status.ok()) {
    return status;
  }
  return BindShapes(symbols, op.outputs, outputs);
}

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

/// The bytes that an argument reaches over.
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

/// CheckOverlaps for an op of any number of tensors: of all pairs only those are compared whose
/// bytes lie among each other.
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

Status ValidateAttributes(const OpSchema& op, const void* attributes) {
  for (const AttributeSpec& spec : op.attributes) {
    if (Status status = CheckAttribute(spec, attributes); !status.ok()) {
      return status;
    }
  }
  return {};
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
  const OpSchema& op = *row.op;
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
  if (Status status = CheckWorkspace(context); !status.ok()) {
    return status;
  }
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
  return CheckOverlaps(op, inputs, outputs);
}

namespace {

Result<std::vector<Dims>> CheckAndInfer(
    const OpSchema& op,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const ConstTensorRef> outputs) {
  if (op.has_lists) {
    const Result<int> length = outputs.empty() ? ListLengthOf("input", op.inputs, inputs.size())
                                               : ListLength(op, inputs.size(), outputs.size());
    if (!length.ok()) {
      return length.status();
    }
    if (*length == 0) {
      return InvalidArgument("nothing tells how many tensors a list has; expected the outputs too");
    }
    return CheckAndInfer(*SpellOut(op, *length), attributes, inputs, outputs);
  }
  if (Status status = ValidateAttributes(op, attributes); !status.ok()) {
    return status;
  }
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
  ShapeSymbols symbols(op, attributes);
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const ConstTensorRef& input = ArgumentAt(inputs, i);
    if (!input.present && !op.inputs[i].optional) {
      return InvalidArgument(
          "input " + std::string(op.inputs[i].name) + " is absent; it is required");
    }
    const bool negative =
        std::any_of(input.dims.begin(), input.dims.end(), [](std::int64_t dim) { return dim < 0; });
    if (negative) {
      return InvalidArgument(
          std::string(op.inputs[i].name) + " has dims " + ToString(input.dims) +
          "; expected 0 or more");
    }
  }
  if (Status status = BindInputs(symbols, op, inputs); !status.ok()) {
    return status;
  }
  if (Status status = BindShapes(symbols, op.outputs, outputs); !status.ok()) {
    return status;
  }
  std::vector<Dims> shapes;
  for (const TensorSpec& output : op.outputs) {
    Result<Dims> dims = symbols.Expand(output);
    if (!dims.ok()) {
      return dims.status();
    }
    shapes.push_back(*dims);
  }
  return shapes;
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
