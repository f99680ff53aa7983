#include "problem_line.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
      const auto end = std::from_chars(value.data(), value.data() + value.size(), real);
      if (end.ec != std::errc() || end.ptr != value.data() + value.size()) {
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
    case AttributeKind::kEnum:
      break;
  }
  line->attributes.push_back({name, value});
  return {};
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
  for (const TensorSpec& input : op.inputs) {
    if (input.name == name) {
      Dims dims;
      if (!ParseList(value, 'x', &dims)) {
        return Wrong(word, "dims such as 128x64x56x56");
      }
      line->inputs[name] = dims;
      return {};
    }
  }
  for (const AttributeSpec& attribute : op.attributes) {
    if (attribute.name == name) {
      return AddAttribute(attribute, word, value, line);
    }
  }
  return Wrong(word, "layout, or an input or attribute of " + std::string(op.name));
}

std::vector<ConstTensorRef> InputRefs(const OpSchema& op, const ProblemLine& line) {
  std::vector<ConstTensorRef> refs;
  for (const TensorSpec& input : op.inputs) {
    const auto given = line.inputs.find(std::string(input.name));
    refs.emplace_back();
    if (given != line.inputs.end()) {
      refs.back() = ConstTensorRef(DataType::kFloat, nullptr, given->second);
    }
  }
  return refs;
}

/// Dims of what is the gradient of the forward's outputs: those of the outputs.
Status InferGradients(const Registry& registry, const OpSchema& op, ProblemLine* line) {
  const OpSchema* forward = FindOp(registry, op.gradient_of);
  if (forward == nullptr) {
    return {};
  }
  for (const TensorSpec& input : op.inputs) {
    if (input.gradient_of.empty() || line->inputs.contains(std::string(input.name))) {
      continue;
    }
    ProblemLine of_forward = *line;
    of_forward.op = forward->name;
    const Result<const Row*> row = FindRow(registry, of_forward, Backend::kCpu);
    if (!row.ok()) {
      return row.status();
    }
    const Result<Shapes> shapes = InferShapes(registry, of_forward, **row);
    if (!shapes.ok()) {
      return shapes.status();
    }
    for (std::size_t i = 0; i < forward->outputs.size(); ++i) {
      if (forward->outputs[i].name == input.gradient_of) {
        line->inputs[std::string(input.name)] = shapes->outputs[i];
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
    return Wrong(line.op, "the name of an op");
  }
  for (std::string word; words >> word;) {
    if (Status status = AddWord(*op, word, &line); !status.ok()) {
      return status;
    }
  }
  return line;
}

Result<const Row*> FindRow(const Registry& registry, const ProblemLine& line, Backend backend) {
  std::string names;
  for (const Row* row : registry.rows()) {
    if (row->op->name != line.op || row->backend != backend) {
      continue;
    }
    if (row->name == line.row) {
      return row;
    }
    names += (names.empty() ? "" : ", ") + std::string(row->name);
  }
  return InvalidArgument(
      "'" + line.row + "': expected the name of a row of " + line.op + " on " +
      std::string(ToString(backend)) + ": " + (names.empty() ? "there is none" : names));
}

Result<Shapes> InferShapes(const Registry& registry, const ProblemLine& given, const Row& row) {
  ProblemLine line = given;
  if (Status status = InferGradients(registry, *row.op, &line); !status.ok()) {
    return status;
  }
  // Attributes that the op does not have belong to the forward alone.
  std::erase_if(line.attributes, [&](const Attribute& attribute) {
    return std::none_of(
        row.op->attributes.begin(), row.op->attributes.end(),
        [&](const AttributeSpec& spec) { return spec.name == attribute.name; });
  });
  const Result<Kernel> kernel = Kernel::Create(row, line.attributes);
  if (!kernel.ok()) {
    return kernel.status();
  }
  const std::vector<ConstTensorRef> refs = InputRefs(*row.op, line);
  Result<std::vector<Dims>> outputs = kernel->InferShapes(refs);
  if (!outputs.ok()) {
    return outputs.status();
  }
  Shapes shapes;
  for (const ConstTensorRef& ref : refs) {
    shapes.inputs.push_back(ref.dims);
  }
  shapes.outputs = std::move(*outputs);
  return shapes;
}

}  // namespace gradsmith::tools
