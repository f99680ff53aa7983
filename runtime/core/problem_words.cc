#include "core/problem_words.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/held_shape.h"
#include "core/list_schema.h"
#include "core/text.h"

namespace gradsmith::internal {

namespace {

std::string ValueText(std::int64_t value) {
  return std::to_string(value);
}
std::string ValueText(double value) {
  return NumberText(value);
}

template <typename Number>
std::string ListText(const BasicList<Number>& list, char separator) {
  std::string text;
  for (const Number value : list) {
    text += (text.empty() ? "" : std::string(1, separator)) + ValueText(value);
  }
  return text;
}

std::string DimsText(const Dims& dims) {
  return dims.empty() ? "scalar" : ListText(dims, 'x');
}

/// Whether a text is one word of a line; those of attributes are names.
bool IsWord(std::string_view text) {
  return std::ranges::all_of(text, [](char character) {
    return (character >= '0' && character <= '9') || (character >= 'A' && character <= 'Z') ||
           (character >= 'a' && character <= 'z') || character == '_' || character == '-' ||
           character == '.';
  });
}

std::string ValueText(bool value) {
  return value ? "true" : "false";
}
std::string ValueText(const IntList& value) {
  return ListText(value, ',');
}
std::string ValueText(const FloatList& value) {
  return ListText(value, ',');
}
std::string ValueText(const std::string& value) {
  return value;
}

/// The value of a field; none where it is absent.
template <typename T>
std::optional<std::string> FieldText(const AttributeSpec& spec, const std::byte* field) {
  if (!spec.optional) {
    return ValueText(*reinterpret_cast<const T*>(field));
  }
  const auto& value = *reinterpret_cast<const std::optional<T>*>(field);
  return value ? std::optional(ValueText(*value)) : std::nullopt;
}

std::optional<std::string> AttributeText(const AttributeSpec& spec, const void* attributes) {
  const std::byte* field = static_cast<const std::byte*>(attributes) + spec.offset;
  switch (spec.kind) {
    case AttributeKind::kInt:
      return FieldText<std::int64_t>(spec, field);
    case AttributeKind::kFloat:
      return FieldText<double>(spec, field);
    case AttributeKind::kInts:
      return FieldText<IntList>(spec, field);
    case AttributeKind::kBool:
      return FieldText<bool>(spec, field);
    case AttributeKind::kFloats:
      return FieldText<FloatList>(spec, field);
    case AttributeKind::kString:
      return FieldText<std::string>(spec, field);
    case AttributeKind::kEnum:
      break;
  }
  return std::string(spec.choices[static_cast<std::size_t>(*field)]);
}

/// " name=value", or nothing of a default; none where the attribute has no words.
std::optional<std::string>
AttributeWord(const AttributeSpec& spec, const void* attributes, const void* defaults) {
  const std::optional<std::string> value = AttributeText(spec, attributes);
  if (!value || value == AttributeText(spec, defaults)) {
    return "";
  }
  if (value->empty() || (spec.kind == AttributeKind::kString && !IsWord(*value))) {
    return std::nullopt;
  }
  return " " + std::string(spec.name) + "=" + *value;
}

/// The dims of an argument, or those that it holds.
std::string ArgumentText(const TensorSpec& spec, const ConstTensorRef& tensor) {
  if (spec.shape_of.empty()) {
    return DimsText(tensor.dims);
  }
  const Result<Dims> held = HeldShape(spec, tensor);
  return held.ok() ? DimsText(*held) : "";
}

/// An argument as `ops.yaml` has it: a tensor, or a list of so many.
struct Argument {
  std::string name;
  const TensorSpec* spec;
  std::size_t count;
};

/// The arguments of an op, also of one that is spelled out, whose tensors W[0] and W[1] are a list
/// W.
std::vector<Argument> ArgumentsOf(std::span<const TensorSpec> specs, std::size_t list_length) {
  std::vector<Argument> arguments;
  for (std::size_t i = 0; i < specs.size();) {
    const std::size_t bracket = specs[i].name.find('[');
    const bool is_spelled_out = bracket != std::string_view::npos;
    const bool is_list = is_spelled_out || !specs[i].list.empty();
    arguments.push_back(
        {std::string(specs[i].name.substr(0, bracket)), &specs[i], is_list ? list_length : 1});
    i += is_spelled_out ? list_length : 1;
  }
  return arguments;
}

/// Takes the tensors of an argument from the front of those that are left.
template <typename Ref>
std::span<const Ref> Take(std::size_t count, std::span<const Ref>* left) {
  const std::span<const Ref> own = left->first(std::min(count, left->size()));
  *left = left->subspan(own.size());
  return own;
}

/// Adds the dims of the inputs that are present. False where a list lacks some of its tensors, for
/// which there are no words.
bool AddInputs(
    const OpSchema& op,
    std::span<const ConstTensorRef> inputs,
    std::size_t list_length,
    std::string* line) {
  for (const Argument& argument : ArgumentsOf(op.inputs, list_length)) {
    std::size_t present = 0;
    std::string text;
    for (const ConstTensorRef& input : Take(argument.count, &inputs)) {
      if (input.present) {
        text += (text.empty() ? "" : ",") + ArgumentText(*argument.spec, input);
        present += 1;
      }
    }
    if (present > 0 && present < argument.count) {
      return false;
    }
    if (!text.empty()) {
      *line += " " + argument.name + "=" + text;
    }
  }
  return true;
}

/// Whether the first image among the inputs has its channels innermost, and not in NCHW as well.
bool IsChannelsLast(std::span<const ConstTensorRef> inputs) {
  const auto image = std::ranges::find_if(
      inputs, [](const ConstTensorRef& input) { return input.present && input.dims.size() > 2; });
  return image != inputs.end() && image->strides == ChannelsLastStrides(image->dims) &&
         image->strides != ContiguousStrides(image->dims);
}

/// Adds a name to those that commas part.
void AddName(const std::string& name, std::string* names) {
  *names += (names->empty() ? "" : ",") + name;
}

/// Adds " outputs=" where some are left out, and " accumulate=" where some are added to. False
/// where that is so of some tensors of a list alone, for which there are no words.
bool AddOutputs(
    const OpSchema& op,
    std::span<const TensorRef> outputs,
    std::size_t list_length,
    std::string* line) {
  std::string present;
  std::string accumulated;
  bool is_complete = true;
  for (const Argument& argument : ArgumentsOf(op.outputs, list_length)) {
    const std::span<const TensorRef> own = Take(argument.count, &outputs);
    const auto there = static_cast<std::size_t>(std::ranges::count_if(own, &TensorRef::present));
    const auto added = static_cast<std::size_t>(std::ranges::count_if(
        own, [](const TensorRef& one) { return one.present && one.accumulate; }));
    if ((there > 0 && there < argument.count) || (added > 0 && added < argument.count)) {
      return false;
    }
    is_complete = is_complete && there > 0;
    if (there > 0) {
      AddName(argument.name, &present);
    }
    if (added > 0) {
      AddName(argument.name, &accumulated);
    }
  }
  *line += is_complete ? "" : " outputs=" + present;
  *line += accumulated.empty() ? "" : " accumulate=" + accumulated;
  return true;
}

}  // namespace

std::string ProblemWords(
    const Row& row,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  const OpSchema& op = *row.op;
  std::string line = std::string(op.name) + " " + std::string(row.name);
  auto list_length = static_cast<std::size_t>(op.list_length);
  if (op.has_lists) {
    const Result<int> length = ListLength(op, inputs.size(), outputs.size());
    list_length = length.ok() ? static_cast<std::size_t>(*length) : 0;
  }
  if (!AddInputs(op, inputs, list_length, &line)) {
    return "";
  }
  const std::shared_ptr<void> defaults = op.attributes.empty() ? nullptr : op.make_attributes();
  for (const AttributeSpec& spec : op.attributes) {
    const std::optional<std::string> word = AttributeWord(spec, attributes, defaults.get());
    if (!word) {
      return "";
    }
    line += *word;
  }
  line += IsChannelsLast(inputs) ? " layout=NHWC" : "";
  return AddOutputs(op, outputs, list_length, &line) ? line : "";
}

}  // namespace gradsmith::internal
