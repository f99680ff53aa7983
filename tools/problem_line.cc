#include "problem_line.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/stub.h"
#include "core/text.h"

namespace gradsmith::tools {

namespace {

bool ParseNumber(std::string_view text, std::int64_t* number) {
  const auto end = std::from_chars(text.data(), text.data() + text.size(), *number);
  return end.ec == std::errc() && end.ptr == text.data() + text.size();
}

/// "128x64" or "1,1": numbers with `separator` between.
bool ParseList(std::string_view text, char separator, IntList* list) {
  while (true) {
    const std::size_t end = std::min(text.find(separator), text.size());
    std::int64_t number = 0;
    if (!ParseNumber(text.substr(0, end), &number)) {
      return false;
    }
    list->push_back(number);
    if (end == text.size()) {
      return !list->too_long();
    }
    text.remove_prefix(end + 1);
  }
}

bool ParseReal(std::string_view text, double* number) {
  const auto end = std::from_chars(text.data(), text.data() + text.size(), *number);
  return end.ec == std::errc() && end.ptr == text.data() + text.size();
}

bool ParseReals(std::string_view text, FloatList* list) {
  while (true) {
    const std::size_t end = std::min(text.find(','), text.size());
    double number = 0;
    if (!ParseReal(text.substr(0, end), &number)) {
      return false;
    }
    list->push_back(number);
    if (end == text.size()) {
      return !list->too_long();
    }
    text.remove_prefix(end + 1);
  }
}

const OpSchema* FindOp(const Registry& registry, std::string_view name) {
  for (const Row* row : registry.rows()) {
    if (row->op->name == name) {
      return row->op;
    }
  }
  return nullptr;
}

Status Wrong(const std::string& word, const std::string& expected) {
  return InvalidArgument("'" + word + "': expected " + expected);
}

/// The names, and the one of them that was most likely meant.
std::string OneOf(std::string_view given, const std::vector<std::string_view>& names) {
  // Every name is near to a single letter.
  const std::string nearest = given.size() > 1 ? internal::DidYouMean(given, names) : "";
  return internal::Join(names) + nearest;
}

Status UnknownOp(const Registry& registry, const std::string& name) {
  std::vector<std::string_view> names;
  for (const Row* row : registry.rows()) {
    if (names.empty() || names.back() != row->op->name) {
      names.push_back(row->op->name);
    }
  }
  const std::string nearest = name.size() > 1 ? internal::DidYouMean(name, names) : "";
  return Wrong(
      name, "the name of one of the " + internal::Counted(std::ssize(names), "op") + nearest);
}

Status UnknownName(const OpSchema& op, const std::string& word, std::string_view name) {
  std::vector<std::string_view> names = {"layout", "outputs", "accumulate"};
  for (const TensorSpec& input : op.inputs) {
    names.push_back(input.name);
  }
  for (const AttributeSpec& attribute : op.attributes) {
    names.push_back(attribute.name);
  }
  return Wrong(
      word, "layout, outputs, accumulate, or an input or attribute of " + std::string(op.name) +
                ": " + OneOf(name, names));
}

Status AddAttribute(
    const AttributeSpec& spec,
    const std::string& word,
    const std::string& value,
    ProblemLine* line) {
  IntList list;
  std::int64_t number = 0;
  const std::string name(spec.name);
  switch (spec.kind) {
    case AttributeKind::kInt:
      if (!ParseNumber(value, &number)) {
        return Wrong(word, "a whole number");
      }
      line->attributes.push_back({name, number});
      return {};
    case AttributeKind::kFloat: {
      double real = 0;
      if (!ParseReal(value, &real)) {
        return Wrong(word, "a number");
      }
      line->attributes.push_back({name, real});
      return {};
    }
    case AttributeKind::kInts:
      if (!ParseList(value, ',', &list)) {
        return Wrong(word, "up to eight whole numbers with commas between");
      }
      line->attributes.push_back({name, list});
      return {};
    case AttributeKind::kBool:
      if (value != "true" && value != "false") {
        return Wrong(word, "true or false");
      }
      line->attributes.push_back({name, value == "true"});
      return {};
    case AttributeKind::kFloats: {
      FloatList reals;
      if (!ParseReals(value, &reals)) {
        return Wrong(word, "up to eight numbers with commas between");
      }
      line->attributes.push_back({name, reals});
      return {};
    }
    case AttributeKind::kEnum:
    case AttributeKind::kString:
      break;
  }
  line->attributes.push_back({name, value});
  return {};
}

/// The outputs that can be added to.
std::vector<std::string_view> GradientsOf(const OpSchema& op) {
  std::vector<std::string_view> names;
  for (const TensorSpec& output : op.outputs) {
    if (!output.gradient_of.empty()) {
      names.push_back(output.name);
    }
  }
  return names;
}

std::vector<std::string_view> OutputsOf(const OpSchema& op) {
  std::vector<std::string_view> names;
  for (const TensorSpec& output : op.outputs) {
    names.push_back(output.name);
  }
  return names;
}

/// Adds the names of "dW,dB" to `listed`; `what` is what is expected, and `known` which there are.
Status AddNames(
    const std::string& word,
    std::string_view value,
    const std::string& what,
    const std::vector<std::string_view>& known,
    std::set<std::string>* listed) {
  while (true) {
    const std::size_t end = std::min(value.find(','), value.size());
    const std::string_view name = value.substr(0, end);
    if (std::ranges::find(known, name) == known.end()) {
      return Wrong(
          word, what + ", with commas between: " +
                    (known.empty() ? "there is none" : OneOf(name, known)));
    }
    listed->emplace(name);
    if (end == value.size()) {
      return {};
    }
    value.remove_prefix(end + 1);
  }
}

/// "2x3", or "scalar".
bool ParseDims(std::string_view text, Dims* dims) {
  return text == "scalar" || ParseList(text, 'x', dims);
}

/// Dims of an input, or of the tensors of a list.
Status AddInput(
    const TensorSpec& spec,
    const std::string& word,
    std::string_view value,
    ProblemLine* line) {
  std::vector<Dims>& dims = line->inputs[std::string(spec.name)];
  dims.clear();
  while (true) {
    const std::size_t end =
        spec.list.empty() ? value.size() : std::min(value.find(','), value.size());
    if (!ParseDims(value.substr(0, end), &dims.emplace_back())) {
      return Wrong(
          word, spec.list.empty() ? "dims such as 128x64x56x56, or scalar"
                                  : "dims such as 128x64 or scalar, with commas between");
    }
    if (end == value.size()) {
      return {};
    }
    value.remove_prefix(end + 1);
  }
}

Status AddWord(const OpSchema& op, const std::string& word, ProblemLine* line) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos) {
    return Wrong(word, "<name>=<value>");
  }
  const std::string name = word.substr(0, equals);
  const std::string value = word.substr(equals + 1);
  if (name == "layout") {
    if (value != "NCHW" && value != "NHWC") {
      return Wrong(word, "NCHW or NHWC");
    }
    line->channels_last = value == "NHWC";
    return {};
  }
  const std::string op_name(op.name);
  if (name == "outputs") {
    return AddNames(word, value, "outputs of " + op_name, OutputsOf(op), &line->outputs);
  }
  if (name == "accumulate") {
    return AddNames(word, value, "gradients of " + op_name, GradientsOf(op), &line->accumulated);
  }
  for (const TensorSpec& input : op.inputs) {
    if (input.name == name) {
      return AddInput(input, word, value, line);
    }
  }
  for (const AttributeSpec& attribute : op.attributes) {
    if (attribute.name == name) {
      return AddAttribute(attribute, word, value, line);
    }
  }
  return UnknownName(op, word, name);
}

/// How many tensors the lists of a line have: 1 where the op has none.
Result<int> LengthOfLists(const OpSchema& op, const ProblemLine& line) {
  std::string first;
  std::size_t length = 1;
  for (const TensorSpec& input : op.inputs) {
    const auto given = line.inputs.find(std::string(input.name));
    if (input.list.empty() || given == line.inputs.end()) {
      continue;
    }
    const std::size_t count = given->second.size();
    if (!first.empty() && count != length) {
      return InvalidArgument(
          given->first + " has " + internal::Counted(static_cast<std::int64_t>(count), "tensor") +
          "; expected " + std::to_string(length) + ", as many as " + first);
    }
    first = first.empty() ? given->first : first;
    length = count;
  }
  if (op.has_lists && first.empty()) {
    return InvalidArgument("no list of tensors is given, which would tell how many each list has");
  }
  return static_cast<int>(length);
}

std::vector<std::optional<Dims>>
DimsOfInputs(const OpSchema& op, const ProblemLine& line, int list_length) {
  std::vector<std::optional<Dims>> dims;
  for (const TensorSpec& input : op.inputs) {
    const auto given = line.inputs.find(std::string(input.name));
    const int count = input.list.empty() ? 1 : list_length;
    for (int i = 0; i < count; ++i) {
      dims.emplace_back();
      if (given != line.inputs.end()) {
        dims.back() = given->second[static_cast<std::size_t>(i)];
      }
    }
  }
  return dims;
}

std::vector<ConstTensorRef> InputRefs(const OpSchema& op, const Shapes& shapes) {
  const std::vector<const TensorSpec*> specs = SpecsOf(op.inputs, shapes.list_length);
  std::vector<ConstTensorRef> refs;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    refs.emplace_back();
    if (const std::optional<Dims>& dims = shapes.inputs[i]; dims) {
      refs.back() = specs[i]->shape_of.empty() ? ConstTensorRef(DataType::kFloat, nullptr, *dims)
                                               : internal::HoldingShape(*dims);
    }
  }
  return refs;
}

bool IsLeftOut(const ProblemLine& line, const TensorSpec& input) {
  return !line.inputs.contains(std::string(input.name));
}

/// Whether the dims of the input are to be those of an output of the forward. An optional one that
/// is left out is absent.
bool IsInferred(const ProblemLine& line, const TensorSpec& input) {
  return !input.gradient_of.empty() && !input.optional && IsLeftOut(line, input);
}

/// Whether the line gives all that the forward needs to say what its outputs' dims are.
Status CheckForwardInputs(const ProblemLine& line, const OpSchema& op, const OpSchema& forward) {
  for (const TensorSpec& input : op.inputs) {
    if (input.gradient_of.empty() && !input.optional && IsLeftOut(line, input)) {
      return InvalidArgument("input " + std::string(input.name) + " is absent; it is required");
    }
  }
  for (const TensorSpec& input : op.inputs) {
    const auto missing = std::find_if(
        forward.inputs.begin(), forward.inputs.end(),
        [&](const TensorSpec& needed) { return !needed.optional && IsLeftOut(line, needed); });
    if (IsInferred(line, input) && missing != forward.inputs.end()) {
      return InvalidArgument(
          "input " + std::string(input.name) +
          " is absent; expected its dims, which would follow from " + std::string(missing->name) +
          " of " + std::string(forward.name) + " alone");
    }
  }
  return {};
}

/// What the forward's outputs are like. A fault is told without the name of the forward's row: the
/// op of the line has the tensor, or the attribute, as well.
Result<Shapes>
ShapesOfForward(const Registry& registry, const ProblemLine& line, const OpSchema& forward) {
  for (const Row* row : registry.rows()) {
    if (row->op == &forward && row->name == line.row) {  // on any backend: shapes are the same
      Result<Shapes> shapes = InferShapes(registry, line, *row);
      if (shapes.ok()) {
        return shapes;
      }
      const Status status = shapes.status();
      const std::string prefix = ToString(*row) + ": ";
      const bool is_prefixed = status.message().starts_with(prefix);
      return Status(status.code(), status.message().substr(is_prefixed ? prefix.size() : 0));
    }
  }
  return InvalidArgument(
      "the dims of its gradients must be given: " + std::string(forward.name) + " has no row " +
      line.row);
}

/// Dims of what is the gradient of the forward's outputs: those of the outputs.
Status InferGradients(const Registry& registry, const OpSchema& op, ProblemLine* line) {
  const OpSchema* forward = FindOp(registry, op.gradient_of);
  const bool is_complete = std::none_of(
      op.inputs.begin(), op.inputs.end(),
      [&](const TensorSpec& input) { return IsInferred(*line, input); });
  if (forward == nullptr || is_complete) {
    return {};
  }
  if (Status status = CheckForwardInputs(*line, op, *forward); !status.ok()) {
    return status;
  }
  const Result<Shapes> shapes = ShapesOfForward(registry, *line, *forward);
  if (!shapes.ok()) {
    return shapes.status();
  }
  const std::vector<const TensorSpec*> specs = SpecsOf(forward->outputs, shapes->list_length);
  for (const TensorSpec& input : op.inputs) {
    if (!IsInferred(*line, input)) {
      continue;
    }
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const std::optional<Dims>& dims = shapes->outputs[i];
      if (dims && specs[i]->name == input.gradient_of.front()) {
        line->inputs[std::string(input.name)].push_back(*dims);
      }
    }
  }
  return {};
}

}  // namespace

Result<ProblemLine> ParseProblemLine(const Registry& registry, const std::string& text) {
  std::istringstream words(text);
  ProblemLine line;
  if (!(words >> line.op >> line.row)) {
    return Wrong(text, "an op, the name of a row, and dims");
  }
  const OpSchema* op = FindOp(registry, line.op);
  if (op == nullptr) {
    return UnknownOp(registry, line.op);
  }
  for (std::string word; words >> word;) {
    if (Status status = AddWord(*op, word, &line); !status.ok()) {
      return status;
    }
  }
  return line;
}

Result<const Row*> FindRow(const Registry& registry, const ProblemLine& line, Backend backend) {
  std::vector<std::string_view> names;
  for (const Row* row : registry.rows()) {
    if (row->op->name != line.op || row->backend != backend) {
      continue;
    }
    if (row->name == line.row) {
      return row;
    }
    names.push_back(row->name);
  }
  return InvalidArgument(
      "'" + line.row + "': expected the name of a row of " + line.op + " on " +
      std::string(ToString(backend)) + ": " +
      (names.empty() ? "there is none" : OneOf(line.row, names)));
}

Result<Shapes> InferShapes(const Registry& registry, const ProblemLine& given, const Row& row) {
  ProblemLine line = given;
  const Result<Kernel> kernel = Kernel::Create(row, line.attributes);
  if (!kernel.ok()) {
    return kernel.status();
  }
  if (Status status = InferGradients(registry, *row.op, &line); !status.ok()) {
    return status.WithPrefix(ToString(row) + ": ");
  }
  const Result<int> length = LengthOfLists(*row.op, line);
  if (!length.ok()) {
    return length.status().WithPrefix(ToString(row) + ": ");
  }
  Shapes shapes = {
      .inputs = DimsOfInputs(*row.op, line, *length), .outputs = {}, .list_length = *length};
  const std::vector<ConstTensorRef> refs = InputRefs(*row.op, shapes);
  const Result<std::vector<Dims>> outputs = kernel->InferShapes(refs);
  if (!outputs.ok()) {
    return outputs.status();
  }
  shapes.outputs.assign(outputs->begin(), outputs->end());
  return shapes;
}

std::vector<const TensorSpec*> SpecsOf(std::span<const TensorSpec> specs, int list_length) {
  std::vector<const TensorSpec*> all;
  for (const TensorSpec& spec : specs) {
    all.insert(all.end(), static_cast<std::size_t>(spec.list.empty() ? 1 : list_length), &spec);
  }
  return all;
}

void SetOutputs(
    const OpSchema& op,
    const ProblemLine& line,
    int list_length,
    std::span<TensorRef> outputs) {
  const std::vector<const TensorSpec*> specs = SpecsOf(op.outputs, list_length);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string name(specs[i]->name);
    if (!line.outputs.empty() && !line.outputs.contains(name)) {
      outputs[i] = TensorRef();
    }
    outputs[i].accumulate = line.accumulated.contains(name);
  }
}

}  // namespace gradsmith::tools
