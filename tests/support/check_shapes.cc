#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "support/checks.h"
#include "support/run.h"

namespace gradsmith::support {

namespace {

std::vector<Dims> LiteralDims(const std::vector<NamedShape>& shapes) {
  std::vector<Dims> dims;
  for (const NamedShape& shape : shapes) {
    dims.push_back(ToIntList(shape.dims));
  }
  return dims;
}

void CompareDims(const Subject& subject, const Case& problem,
                 const Result<std::vector<Dims>>& actual, const std::string& source,
                 Report& report) {
  report.FailIfNot(actual.status(), source);
  if (!actual.ok()) {
    return;
  }
  const std::vector<Dims> expected = LiteralDims(problem.outputs);
  if (actual->size() != expected.size()) {
    report.Fail(source + " returned " + std::to_string(actual->size()) + " shapes; expected " +
                std::to_string(expected.size()));
    return;
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if ((*actual)[i] != expected[i]) {
      report.Fail(source + ": " + std::string(subject.op().outputs[i].name) + " has dims " +
                  gradsmith::ToString((*actual)[i]) + "; expected " +
                  gradsmith::ToString(expected[i]));
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
  CompareDims(subject, problem, subject.tests->infer_shapes({problem.typed_attributes, required}),
              "the typed InferShapes", report);
}

void CheckDynamicDoor(const Subject& subject, const Case& problem, const Kernel& kernel,
                      const Present& present, Report& report) {
  std::vector<ConstTensorRef> inputs;
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
    inputs.push_back(present[i] ? ConstTensorRef(subject.TypeOf(subject.op().inputs[i]), nullptr,
                                                 ToIntList(problem.inputs[i].dims))
                                : ConstTensorRef());
  }
  const std::string with = " with inputs " + DescribePresent(subject.op().inputs, present);
  CompareDims(subject, problem, kernel.InferShapes(inputs), "Kernel::InferShapes" + with, report);
  CompareDims(subject, problem, kernel.InferShapes(Trimmed(inputs)),
              "Kernel::InferShapes" + with + " in a shorter list", report);
}

void CheckOracle(const Subject& subject, const Case& problem, const Present& present,
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
  return report;
}

}  // namespace gradsmith::support
