#include "support/subject.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

#include "core/list_schema.h"

namespace gradsmith::support {

namespace {

reference::AttributeValue ToOracle(const AttributeValue& value) {
  struct Visitor {
    reference::AttributeValue operator()(std::int64_t v) const { return v; }
    reference::AttributeValue operator()(double v) const { return v; }
    reference::AttributeValue operator()(const std::string& v) const { return v; }
    reference::AttributeValue operator()(const IntList& v) const {
      return std::vector<std::int64_t>(v.begin(), v.end());
    }
    reference::AttributeValue operator()(bool v) const { return v; }
    reference::AttributeValue operator()(const FloatList& v) const {
      return std::vector<double>(v.begin(), v.end());
    }
  };
  return std::visit(Visitor{}, value.variant());
}

AttributeValue FromOracle(const reference::AttributeValue& value) {
  struct Visitor {
    AttributeValue operator()(std::int64_t v) const { return v; }
    AttributeValue operator()(double v) const { return v; }
    AttributeValue operator()(const std::string& v) const { return v; }
    AttributeValue operator()(const std::vector<std::int64_t>& v) const { return ToIntList(v); }
    AttributeValue operator()(bool v) const { return v; }
    AttributeValue operator()(const std::vector<double>& v) const {
      return FloatList(std::span(v));
    }
  };
  return std::visit(Visitor{}, value);
}

bool AllPoison(const std::vector<std::byte>& bytes) {
  return std::all_of(
      bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0xFF}; });
}

}  // namespace

void Report::FailIfNot(const Status& status, const std::string& doing) {
  if (!status.ok()) {
    Fail(doing + ": " + std::string(ToString(status.code())) + ": " + status.message());
  }
}

DataType Subject::TypeOf(const TensorSpec& tensor) const {
  return tensor.type_parameter < 0 ? tensor.fixed_type : row->types[tensor.type_parameter];
}

DataType Subject::AccumulatorType() const {
  const bool all_double = std::all_of(row->types.begin(), row->types.end(), [](DataType type) {
    return type == DataType::kDouble || !IsFloating(type);
  });
  return all_double ? DataType::kDouble : DataType::kFloat;
}

const Row& RowForLists(const Row& row, int length) {
  if (!row.op->has_lists) {
    return row;
  }
  struct Spelled {
    std::shared_ptr<const OpSchema> op;
    Row row;
  };
  static std::map<std::pair<const Row*, int>, Spelled> rows;
  const auto [entry, inserted] = rows.try_emplace({&row, length});
  Spelled& spelled = entry->second;
  if (inserted) {
    spelled = {internal::SpellOut(*row.op, length), row};
    spelled.row.op = spelled.op.get();
  }
  return spelled.row;
}

const Row& RowForCase(const Row& row, const Case& problem) {
  const Result<int> length =
      internal::ListLength(*row.op, problem.inputs.size(), problem.outputs.size());
  return RowForLists(row, length.value());
}

const Context& SharedContext(Backend backend, int threads, bool deterministic) {
  static std::map<std::tuple<Backend, int, bool>, Context> contexts;
  const auto [entry, inserted] = contexts.try_emplace(
      {backend, threads, deterministic}, ContextOptions{
                                             .device = {backend, 0},
                                             .threads = threads,
                                             .deterministic = deterministic,
                                             .first_choice_seconds = 0});
  return entry->second;
}

const Context& ContextFor(const Row& row, int threads) {
  return SharedContext(row.backend, threads, row.repeatable != Repeatable::kNever);
}

std::vector<Present> PresentSubsets(std::span<const TensorSpec> tensors) {
  std::vector<Present> subsets{Present(tensors.size(), true)};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].optional) {
      continue;
    }
    const std::size_t count = subsets.size();
    for (std::size_t j = 0; j < count; ++j) {
      subsets.push_back(subsets[j]);
      subsets.back()[i] = false;
    }
  }
  return subsets;
}

std::string DescribePresent(std::span<const TensorSpec> tensors, const Present& present) {
  std::string text;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (present[i]) {
      text += (text.empty() ? "" : ", ") + std::string(tensors[i].name);
    }
  }
  return text.empty() ? "nothing" : text;
}

reference::Attributes OracleAttributes(const OpTests& tests, const std::vector<Attribute>& given) {
  reference::Attributes attributes;
  for (const std::span<const Attribute> list :
       {tests.defaults, std::span<const Attribute>(given)}) {
    for (const Attribute& attribute : list) {
      attributes[attribute.name] = ToOracle(attribute.value);
    }
  }
  return attributes;
}

std::vector<Attribute> ToAttributes(const reference::Attributes& attributes) {
  std::vector<Attribute> result;
  for (const auto& [name, value] : attributes) {
    result.push_back({name, FromOracle(value)});
  }
  return result;
}

reference::Shapes InputShapes(const Case& problem, const Present& present) {
  reference::Shapes shapes;
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
    if (present[i]) {
      shapes[problem.inputs[i].name] = problem.inputs[i].dims;
    }
  }
  return shapes;
}

reference::Tensors
WithHeldShapes(const OpSchema& op, const reference::Shapes& inputs, reference::Tensors data) {
  for (const TensorSpec& spec : op.inputs) {
    const auto held = inputs.find(spec.name);
    if (!spec.shape_of.empty() && held != inputs.end()) {
      data[held->first] = {held->second, {}};
    }
  }
  return data;
}

Arguments::Arguments(const Subject& subject, const Case& problem, const reference::Tensors& inputs)
    : subject_(&subject) {
  const OpSchema& op = subject.op();
  const bool broadcast = problem.layout == Layout::kBroadcast;
  const Layout layout = broadcast ? Layout::kContiguous : problem.layout;
  for (const TensorSpec& spec : op.inputs) {
    inputs_.emplace_back();
    input_bytes_.emplace_back();
    const auto given = inputs.find(spec.name);
    if (given != inputs.end() && !spec.shape_of.empty()) {
      const reference::Shape& held = given->second.dims;
      const reference::Shape dims{static_cast<std::int64_t>(held.size())};
      inputs_.back() = std::make_unique<TestTensor>(DataType::kInt64, dims, layout);
      inputs_.back()->Fill({held.begin(), held.end()});
      input_bytes_.back() = inputs_.back()->AllBytes();
    } else if (given != inputs.end()) {
      const bool spread = broadcast && !spec.gradient_of.empty();
      inputs_.back() = std::make_unique<TestTensor>(
          subject.TypeOf(spec), given->second.dims, spread ? problem.layout : layout,
          subject.device());
      inputs_.back()->Fill(given->second.values);
      input_bytes_.back() = inputs_.back()->AllBytes();
    }
  }
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    outputs_.emplace_back(
        subject.TypeOf(op.outputs[i]), problem.outputs[i].dims,
        problem.layout_of_outputs.value_or(layout), subject.device());
  }
}

std::vector<ConstTensorRef> Arguments::InputRefs() const {
  std::vector<ConstTensorRef> refs(inputs_.size());
  std::transform(inputs_.begin(), inputs_.end(), refs.begin(), [](const auto& input) {
    return input != nullptr ? ConstTensorRef(input->Ref()) : ConstTensorRef();
  });
  return refs;
}

std::vector<TensorRef> Arguments::OutputRefs(const Present& present) const {
  std::vector<TensorRef> refs(outputs_.size());
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (present[i]) {
      refs[i] = outputs_[i].Ref();
    }
  }
  return refs;
}

std::vector<TensorRef> Arguments::OutputRefs() const {
  return OutputRefs(Present(outputs_.size(), true));
}

reference::Tensors Arguments::InputValues() const {
  reference::Tensors values;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const TensorSpec& spec = subject_->op().inputs[i];
    if (inputs_[i] == nullptr) {
      continue;
    }
    const std::vector<double> held = inputs_[i]->Values();
    reference::Tensor& value = values[std::string(spec.name)];
    if (spec.shape_of.empty()) {
      value = {inputs_[i]->dims(), held};
    } else {
      value.dims.assign(held.begin(), held.end());
    }
  }
  return values;
}

void Arguments::PoisonOutputs() {
  for (TestTensor& output : outputs_) {
    output.Poison();
  }
}

void Arguments::CheckSurroundings(const Present& present, const std::string& doing, Report& report)
    const {
  const OpSchema& op = subject_->op();
  const auto fail = [&](const std::string& before, std::string_view name, const char* after) {
    report.Fail(doing + before + std::string(name) + after);
  };
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i] != nullptr && inputs_[i]->AllBytes() != input_bytes_[i]) {
      fail(": input ", op.inputs[i].name, " was written to");
    }
  }
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const std::string_view name = op.outputs[i].name;
    if (!outputs_[i].SurroundingsIntact()) {
      fail(": memory around output ", name, ", or between its elements, was written to");
    } else if (!present[i] && !AllPoison(outputs_[i].AllBytes())) {
      fail(": output ", name, " was not asked for and was written to");
    }
  }
}

}  // namespace gradsmith::support
