#include "support/run.h"

#include <algorithm>

namespace gradsmith::support {

std::optional<Kernel>
MakeKernel(const Subject& subject, const std::vector<Attribute>& attributes, Report& report) {
  const Result<Kernel> kernel = Kernel::Create(*subject.row, attributes);
  report.FailIfNot(kernel.status(), "creating the kernel");
  return kernel.ok() ? std::optional(*kernel) : std::nullopt;
}

Present AllPresent(std::span<const TensorSpec> tensors) {
  Present all(tensors.size(), true);
  return all;
}

std::optional<int>
ListLength(const Subject& subject, const Case& problem, const AttributeSpec& spec) {
  for (std::size_t i = 0; i < problem.inputs.size() && spec.length_of >= 0; ++i) {
    const auto shape = subject.op().inputs[i].shape;
    const bool shows = std::any_of(shape.begin(), shape.end(), [&](const DimSpec& dim) {
      return dim.kind == DimSpec::Kind::kSymbol && dim.symbol == spec.length_of;
    });
    const bool has_one_list =
        1 == std::count_if(shape.begin(), shape.end(), [&](const DimSpec& dim) {
          return dim.kind == DimSpec::Kind::kSymbol && subject.op().symbols[dim.symbol].is_list;
        });
    if (shows && has_one_list) {
      const std::size_t length = problem.inputs[i].dims.size() + 1 - shape.size();
      return spec.length_factor * static_cast<int>(length);
    }
  }
  return std::nullopt;
}

std::vector<Present> OutputSubsets(const Subject& subject) {
  std::vector<Present> subsets = PresentSubsets(subject.op().outputs);
  std::erase(subsets, Present(subject.op().outputs.size(), false));
  return subsets;
}

bool HasOneOrder(const Row& row) {
  return row.backend == Backend::kCpu || row.repeatable == Repeatable::kAlways;
}

Arguments MakeExactArguments(
    const Subject& subject,
    const Case& problem,
    const Present& inputs,
    const std::string& seed) {
  reference::Random random(seed);
  const reference::Shapes shapes = InputShapes(problem, inputs);
  const reference::Attributes attributes = OracleAttributes(*subject.tests, problem.attributes);
  const reference::Tensors data =
      subject.oracle().MakeExactData(shapes, attributes, 0, random).value().inputs;
  return {subject, problem, WithHeldShapes(subject.op(), shapes, data)};
}

Arguments MakeRandomArguments(
    const Subject& subject,
    const Case& problem,
    const Present& inputs,
    const std::string& seed) {
  if (subject.row->repeatable == Repeatable::kNever) {
    return MakeExactArguments(subject, problem, inputs, seed);
  }
  reference::Random random(seed);
  const reference::Shapes shapes = InputShapes(problem, inputs);
  const reference::Attributes attributes = OracleAttributes(*subject.tests, problem.attributes);
  const reference::Tensors data = subject.oracle().MakeRandomData(shapes, attributes, random);
  return {subject, problem, WithHeldShapes(subject.op(), shapes, data)};
}

bool RunPoisoned(
    const Subject& subject,
    const Kernel& kernel,
    const Context& context,
    Arguments& arguments,
    const Present& present,
    const std::string& doing,
    Report& report) {
  arguments.PoisonOutputs();
  const Status status =
      subject.run(kernel, context, arguments.InputRefs(), arguments.OutputRefs(present));
  report.FailIfNot(status, doing);
  arguments.CheckSurroundings(present, doing, report);
  return status.ok();
}

OutputBytes BytesOf(const Subject& subject, const Arguments& arguments) {
  OutputBytes bytes;
  for (std::size_t i = 0; i < subject.op().outputs.size(); ++i) {
    bytes.push_back(arguments.output(i).ElementBytes());
  }
  return bytes;
}

void CompareBytes(
    const Subject& subject,
    const OutputBytes& actual,
    const OutputBytes& expected,
    const Present& present,
    const std::string& doing,
    Report& report) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!present[i] || actual[i] == expected[i]) {
      continue;
    }
    const TensorSpec& spec = subject.op().outputs[i];
    const auto differing = std::mismatch(actual[i].begin(), actual[i].end(), expected[i].begin());
    const auto byte = static_cast<std::size_t>(differing.first - actual[i].begin());
    report.Fail(
        doing + ": output " + std::string(spec.name) + " has other bits, first in element " +
        std::to_string(byte / SizeOf(subject.TypeOf(spec))));
  }
}

}  // namespace gradsmith::support
