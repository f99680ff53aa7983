#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/checks.h"
#include "support/refusal.h"
#include "support/run.h"

namespace gradsmith::support {

namespace {

std::vector<Dims> LiteralDims(const std::vector<NamedShape>& shapes) {
  std::vector<Dims> dims(shapes.size());
  std::transform(shapes.begin(), shapes.end(), dims.begin(), [](const NamedShape& shape) {
    return ToIntList(shape.dims);
  });
  return dims;
}

void CompareDims(
    const Subject& subject,
    const Case& problem,
    const Result<std::vector<Dims>>& actual,
    const std::string& source,
    Report& report) {
  report.FailIfNot(actual.status(), source);
  if (!actual.ok()) {
    return;
  }
  const std::vector<Dims> expected = LiteralDims(problem.outputs);
  if (actual->size() != expected.size()) {
    report.Fail(
        source + " returned " + std::to_string(actual->size()) + " shapes; expected " +
        std::to_string(expected.size()));
    return;
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if ((*actual)[i] != expected[i]) {
      report.Fail(
          source + ": " + std::string(subject.op().outputs[i].name) + " has dims " +
          gradsmith::ToString((*actual)[i]) + "; expected " + gradsmith::ToString(expected[i]));
    }
  }
}

void CheckTypedDoor(const Subject& subject, const Case& problem, Report& report) {
  std::vector<Dims> required;
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
    if (!subject.op().inputs[i].optional) {
      required.push_back(ToIntList(problem.inputs[i].dims));
    }
  }
  CompareDims(
      subject, problem, subject.tests->infer_shapes({problem.typed_attributes, required}),
      "the typed InferShapes", report);
}

/// Views without data, but for shapes that inputs hold.
std::vector<ConstTensorRef>
ShapeRefs(const Subject& subject, const Case& problem, const Present& present) {
  std::vector<ConstTensorRef> inputs;
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
    const TensorSpec& spec = subject.op().inputs[i];
    const reference::Shape& dims = problem.inputs[i].dims;
    inputs.emplace_back();
    if (present[i] && spec.shape_of.empty()) {
      inputs.back() = {subject.TypeOf(spec), nullptr, ToIntList(dims)};
    } else if (present[i]) {
      inputs.back() = {DataType::kInt64, dims.data(), {static_cast<std::int64_t>(dims.size())}};
    }
  }
  return inputs;
}

void CheckDynamicDoor(
    const Subject& subject,
    const Case& problem,
    const Kernel& kernel,
    const Present& present,
    Report& report) {
  const std::vector<ConstTensorRef> inputs = ShapeRefs(subject, problem, present);
  const std::string with = " with inputs " + DescribePresent(subject.op().inputs, present);
  CompareDims(subject, problem, kernel.InferShapes(inputs), "Kernel::InferShapes" + with, report);
  CompareDims(
      subject, problem, kernel.InferShapes(Trimmed(inputs)),
      "Kernel::InferShapes" + with + " in a shorter list", report);
}

void CheckOracle(
    const Subject& subject,
    const Case& problem,
    const Present& present,
    Report& report) {
  const std::optional<reference::Shapes> shapes = subject.oracle().OutputShapes(
      InputShapes(problem, present), OracleAttributes(*subject.tests, problem.attributes));
  if (!shapes) {
    report.Fail("the oracle says that the inputs do not fit together");
    return;
  }
  std::vector<Dims> dims;
  for (const TensorSpec& spec : subject.op().outputs) {
    dims.push_back(ToIntList(shapes->find(spec.name)->second));
  }
  CompareDims(subject, problem, dims, "the oracle", report);
}

/// Values of an attribute that the schema allows, near the least.
std::vector<AttributeValue>
VariedValues(const Subject& subject, const Case& problem, const AttributeSpec& spec) {
  constexpr std::int64_t kMost = 3;
  std::vector<AttributeValue> values;
  if (spec.kind == AttributeKind::kEnum) {
    for (const std::string_view choice : spec.choices) {
      values.emplace_back(std::string(choice));
    }
    return values;
  }
  if (spec.kind == AttributeKind::kBool) {
    return {true, false};
  }
  const auto least = static_cast<std::int64_t>(IsBound(spec.minimum) ? spec.minimum : 0);
  const auto most =
      static_cast<std::int64_t>(std::min(spec.maximum, static_cast<double>(least + kMost)));
  for (std::int64_t value = least; value <= most; ++value) {
    if (spec.kind == AttributeKind::kInt) {
      values.emplace_back(value);
    }
    const int length =
        spec.kind == AttributeKind::kInts ? ListLength(subject, problem, spec).value_or(0) : 0;
    for (int i = 0; i < length; ++i) {
      IntList list = IntList::Filled(length, least);
      list[i] = value;
      values.emplace_back(list);
    }
  }
  return values;
}

std::vector<Attribute> WithValue(std::vector<Attribute> attributes, const Attribute& changed) {
  std::erase_if(attributes, [&](const Attribute& other) { return other.name == changed.name; });
  attributes.push_back(changed);
  return attributes;
}

/// All inputs but optional ones that hold a shape, which an attribute that is changed may give.
Present AllButHeldShapes(const OpSchema& op) {
  Present present;
  for (const TensorSpec& spec : op.inputs) {
    present.push_back(spec.shape_of.empty() || !spec.optional);
  }
  return present;
}

/// Runs with outputs of these dims: what no shape rule can say, such as that group divides M, the
/// kernel refuses.
Status RunWithOutputs(
    const Subject& subject,
    Case problem,
    const Kernel& kernel,
    const std::vector<Dims>& dims) {
  for (std::size_t i = 0; i < dims.size(); ++i) {
    problem.outputs[i].dims.assign(dims[i].begin(), dims[i].end());
  }
  const Arguments arguments = MakeRandomArguments(
      subject, problem, AllButHeldShapes(subject.op()), std::string(subject.op().name));
  return subject.run(
      kernel, ContextFor(*subject.row, 1), arguments.InputRefs(), arguments.OutputRefs());
}

/// The library takes and refuses the same attributes as the oracle, and works out the same dims.
void CheckVariedAttribute(
    const Subject& subject,
    const Case& problem,
    const Attribute& changed,
    Report& report) {
  const std::vector<Attribute> attributes = WithValue(problem.attributes, changed);
  const std::optional<Kernel> kernel = MakeKernel(subject, attributes, report);
  if (!kernel) {
    return;
  }
  const Present all = AllButHeldShapes(subject.op());
  const reference::Attributes given = OracleAttributes(*subject.tests, attributes);
  const auto expected = subject.oracle().OutputShapes(InputShapes(problem, all), given);
  const std::string source = "Kernel::InferShapes with another " + changed.name;
  const Result<std::vector<Dims>> actual = kernel->InferShapes(ShapeRefs(subject, problem, all));
  if (!expected) {
    const Status status =
        actual.ok() ? RunWithOutputs(subject, problem, *kernel, *actual) : actual.status();
    VerifyRefusal(subject, source + ", which the oracle refuses,", status, {}, report);
    return;
  }
  Case changed_problem = problem;
  for (NamedShape& output : changed_problem.outputs) {
    output.dims = expected->at(output.name);
  }
  CompareDims(subject, changed_problem, actual, source + ", which the oracle takes,", report);
}

void CheckVariedAttributes(const Subject& subject, const Case& problem, Report& report) {
  for (const AttributeSpec& spec : subject.op().attributes) {
    for (const AttributeValue& value : VariedValues(subject, problem, spec)) {
      CheckVariedAttribute(subject, problem, {std::string(spec.name), value}, report);
    }
  }
}

}  // namespace

Report CheckShapes(const Subject& subject, const Case& problem, const std::string& /*seed*/) {
  Report report;
  const std::optional<Kernel> kernel = MakeKernel(subject, problem.attributes, report);
  for (const Present& present : PresentSubsets(subject.op().inputs)) {
    if (kernel) {
      CheckDynamicDoor(subject, problem, *kernel, present, report);
    }
    CheckOracle(subject, problem, present, report);
  }
  CheckTypedDoor(subject, problem, report);
  CheckVariedAttributes(subject, problem, report);
  return report;
}

}  // namespace gradsmith::support
