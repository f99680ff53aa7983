#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reference/definitions.h"
#include "support/checks.h"
#include "support/compare.h"
#include "support/elements.h"
#include "support/run.h"

namespace gradsmith::support {

namespace {

/// Data, and what the oracle makes of it.
struct Problem {
  Arguments arguments;
  reference::ExpectedOutputs expected;
  std::map<std::string, std::string, std::less<>> inexact;
};

using Inexact = decltype(Problem::inexact);

bool AllRepresentable(DataType type, const std::vector<double>& values) {
  return values == RoundAll(type, values);
}

/// An exact output can be stored as it is, and no partial result needs more bits than the
/// accumulator has.
bool IsExact(const Subject& subject, const TensorSpec& spec, const reference::Expected& expected) {
  const double largest = std::ldexp(1, Digits(subject.AccumulatorType()));
  return AllRepresentable(subject.TypeOf(spec), expected.value.values) &&
         std::all_of(expected.bound.begin(), expected.bound.end(), [&](double bound) {
           return bound <= largest;
         });
}

/// At least `part` of the elements that something is summed into are not zero. The bound of a sum
/// of terms that are all zero is zero as well; `terms` still counts them.
bool IsTelling(const reference::Expected& expected, double part) {
  std::size_t reached = 0;
  std::size_t nonzero = 0;
  for (std::size_t i = 0; i < expected.terms.size(); ++i) {
    reached += expected.terms[i] > 0 ? 1 : 0;
    nonzero += expected.value.values[i] != 0 ? 1 : 0;
  }
  return static_cast<double>(nonzero) >= part * static_cast<double>(reached);
}

bool IsFloatingInput(const Subject& subject, const std::string& name) {
  const auto specs = subject.op().inputs;
  return std::any_of(specs.begin(), specs.end(), [&](const TensorSpec& spec) {
    return spec.name == name && IsFloating(subject.TypeOf(spec));
  });
}

bool InputsAreTelling(const Subject& subject, const reference::Tensors& inputs) {
  constexpr double kPart = 1. / 64;
  return std::all_of(inputs.begin(), inputs.end(), [&](const auto& input) {
    if (!IsFloatingInput(subject, input.first)) {
      return true;
    }
    const std::vector<double>& values = input.second.values;
    const auto zeros = std::count(values.begin(), values.end(), 0.0);
    const auto nonzero = static_cast<double>(values.size()) - static_cast<double>(zeros);
    return values.empty() || (nonzero > 0 && nonzero >= kPart * static_cast<double>(values.size()));
  });
}

bool InputsAreExact(const Subject& subject, const reference::Tensors& inputs) {
  const auto specs = subject.op().inputs;
  return std::all_of(specs.begin(), specs.end(), [&](const TensorSpec& spec) {
    const auto input = inputs.find(spec.name);
    return input == inputs.end() || AllRepresentable(subject.TypeOf(spec), input->second.values);
  });
}

/// Notes the outputs that this data does not make exact, and returns how many.
int NoteInexactOutputs(const Subject& subject, Problem& problem) {
  constexpr double kPart = 1. / 8;
  int noted = 0;
  for (const TensorSpec& spec : subject.op().outputs) {
    if (!IsFloating(subject.TypeOf(spec))) {
      continue;  // a truth value or an integer is exact, also where it is zero
    }
    const reference::Expected& output = problem.expected.find(spec.name)->second;
    const bool exact = IsExact(subject, spec, output);
    if (!problem.inexact.contains(spec.name) && !(exact && IsTelling(output, kPart))) {
      problem.inexact[std::string(spec.name)] = exact ? "nearly all that integers give is zero"
                                                      : "integers give more bits than its type has";
      ++noted;
    }
  }
  return noted;
}

std::optional<Problem> MakeExactProblem(
    const Subject& subject,
    const Case& problem,
    const reference::Attributes& attributes,
    const reference::ExactData& data) {
  if (!InputsAreExact(subject, data.inputs)) {
    return std::nullopt;
  }
  Arguments arguments(subject, problem, data.inputs);
  const reference::Tensors inputs = arguments.InputValues();
  if (!InputsAreTelling(subject, inputs)) {
    return std::nullopt;
  }
  return Problem{std::move(arguments), subject.oracle().Run(inputs, attributes), data.inexact};
}

/// Takes the first level that makes all outputs exact that can be, or else the one that makes the
/// most. There is a second round because small tensors may come out all zero by chance.
std::optional<Problem> FindExactProblem(
    const Subject& subject,
    const Case& problem,
    const Present& present,
    const std::string& seed) {
  constexpr int kRounds = 2;
  const reference::Attributes attributes = OracleAttributes(*subject.tests, problem.attributes);
  const reference::Shapes shapes = InputShapes(problem, present);
  reference::Random random(seed);
  std::optional<Problem> best;
  int fewest = static_cast<int>(subject.op().outputs.size());
  for (int round = 0; round < kRounds; ++round) {
    for (int level = 0;; ++level) {
      auto data = subject.oracle().MakeExactData(shapes, attributes, level, random);
      if (!data) {
        break;
      }
      data->inputs = WithHeldShapes(subject.op(), shapes, std::move(data->inputs));
      std::optional<Problem> found = MakeExactProblem(subject, problem, attributes, *data);
      const int inexact = found ? NoteInexactOutputs(subject, *found) : fewest;
      if (inexact < fewest) {
        best = std::move(found);
        fewest = inexact;
      }
      if (best && fewest == 0) {
        return best;
      }
    }
  }
  return best;
}

/// Changes data before the oracle is asked.
using Change = std::function<void(reference::Tensors& inputs)>;

Problem MakeRandomProblem(
    const Subject& subject,
    const Case& problem,
    const Present& present,
    const std::string& seed,
    const Change& change = [](reference::Tensors&) {}) {
  const reference::Attributes attributes = OracleAttributes(*subject.tests, problem.attributes);
  reference::Random random(seed);
  const reference::Shapes shapes = InputShapes(problem, present);
  reference::Tensors data = WithHeldShapes(
      subject.op(), shapes, subject.oracle().MakeRandomData(shapes, attributes, random));
  change(data);
  Arguments arguments(subject, problem, data);
  reference::ExpectedOutputs expected = subject.oracle().Run(arguments.InputValues(), attributes);
  Inexact inexact;
  for (const TensorSpec& spec : subject.op().outputs) {
    if (IsFloating(subject.TypeOf(spec))) {
      inexact[std::string(spec.name)] = "the data are real numbers";
    }
  }
  return {std::move(arguments), std::move(expected), std::move(inexact)};
}

void CompareOutputs(
    const Subject& subject,
    const Problem& problem,
    const Present& present,
    const std::string& doing,
    Report& report) {
  for (std::size_t i = 0; i < subject.op().outputs.size(); ++i) {
    const TensorSpec& spec = subject.op().outputs[i];
    const TestTensor& actual = problem.arguments.output(i);
    const auto found = problem.expected.find(spec.name);
    if (!present[i] || found == problem.expected.end()) {
      continue;  // a seam says nothing of some
    }
    const reference::Expected& expected = found->second;
    if (problem.inexact.contains(spec.name)) {
      CompareWithin(subject, doing, spec, actual, expected, report);
    } else {
      CompareExactly(doing, spec, actual, expected, report);
    }
  }
}

/// Runs into outputs that hold the expected results, rounded, to which the results are added: all
/// become twice that, which is as exact.
void AccumulateAndCompare(
    const Subject& subject,
    const std::vector<Attribute>& attributes,
    Problem& problem,
    const std::string& doing,
    Report& report) {
  const std::optional<Kernel> kernel = MakeKernel(subject, attributes, report);
  if (!kernel) {
    return;
  }
  std::vector<TensorRef> outputs;
  for (std::size_t i = 0; i < subject.op().outputs.size(); ++i) {
    const TensorSpec& spec = subject.op().outputs[i];
    reference::Expected& expected = problem.expected.find(spec.name)->second;
    TestTensor& output = problem.arguments.output(i);
    const std::vector<double> held = RoundAll(subject.TypeOf(spec), expected.value.values);
    output.Fill(held);
    outputs.push_back(output.Ref().Accumulating());
    // Where a kernel does not add itself, its result is rounded before it is added.
    const double rounding =
        UnitRoundoff(subject.TypeOf(spec)) / UnitRoundoff(subject.AccumulatorType());
    for (std::size_t j = 0; j < held.size(); ++j) {
      expected.error[j] += std::abs(expected.value.values[j]) * rounding;
      expected.value.values[j] += held[j];
      expected.bound[j] *= 2;
      if (!expected.interim.empty()) {
        expected.interim[j] += std::abs(held[j]);
      }
    }
  }
  report.FailIfNot(
      subject.run(*kernel, ContextFor(*subject.row, 2), problem.arguments.InputRefs(), outputs),
      doing);
  const Present all = AllPresent(subject.op().outputs);
  problem.arguments.CheckSurroundings(all, doing, report);
  CompareOutputs(subject, problem, all, doing, report);
}

/// Runs with the outputs that are present, and compares these.
void RunAndCompare(
    const Subject& subject,
    const std::vector<Attribute>& attributes,
    Problem& problem,
    const Present& present,
    const std::string& doing,
    Report& report) {
  const std::optional<Kernel> kernel = MakeKernel(subject, attributes, report);
  const Context& context = ContextFor(*subject.row, 2);
  if (kernel && RunPoisoned(subject, *kernel, context, problem.arguments, present, doing, report)) {
    CompareOutputs(subject, problem, present, doing, report);
  }
}

void RunAndCompare(
    const Subject& subject,
    const std::vector<Attribute>& attributes,
    Problem& problem,
    const std::string& doing,
    Report& report) {
  RunAndCompare(subject, attributes, problem, AllPresent(subject.op().outputs), doing, report);
}

std::string Doing(const Subject& subject, const Present& present) {
  return "with inputs " + DescribePresent(subject.op().inputs, present);
}

/// Notes why outputs are not compared exactly; a failure where the oracle does not allow for it.
void NoteReasons(
    const Subject& subject,
    const Problem& problem,
    const std::string& doing,
    Report& report) {
  const std::set<std::string> allowed = subject.oracle().InexactOutputs();
  for (const auto& [name, reason] : problem.inexact) {
    if (allowed.contains(name)) {
      report.notes.push_back(name + " is compared within rounding: " + reason);
    } else {
      report.Fail(doing + ": " + name + " must be compared exactly, and cannot be: " + reason);
    }
  }
}

/// The case with the attributes that make more outputs exact, where the case leaves them open.
Case WithExactAttributes(const Subject& subject, Case problem) {
  const auto listed = [](std::span<const Attribute> attributes, const std::string& name) {
    return std::any_of(attributes.begin(), attributes.end(), [&](const Attribute& attribute) {
      return attribute.name == name;
    });
  };
  for (const Attribute& attribute : ToAttributes(subject.oracle().ExactAttributes())) {
    if (listed(subject.tests->defaults, attribute.name) &&
        !listed(problem.attributes, attribute.name)) {
      problem.attributes.push_back(attribute);
    }
  }
  return problem;
}

/// FindExactProblem, or a failure.
std::optional<Problem> ExactProblemOf(
    const Subject& subject,
    const Case& problem,
    const Present& present,
    const std::string& seed,
    const std::string& doing,
    Report& report) {
  auto exact = FindExactProblem(subject, problem, present, seed);
  if (!exact) {
    report.Fail(doing + ": no integers were found whose results the row's types hold exactly");
  }
  return exact;
}

}  // namespace

Report CheckExact(const Subject& subject, const Case& problem, const std::string& seed) {
  Report report;
  const Case adapted = WithExactAttributes(subject, problem);
  for (const Present& present : PresentSubsets(subject.op().inputs)) {
    const std::string doing = Doing(subject, present);
    if (auto exact = ExactProblemOf(subject, adapted, present, seed, doing, report)) {
      NoteReasons(subject, *exact, doing, report);
      RunAndCompare(subject, adapted.attributes, *exact, doing, report);
    }
  }
  return report;
}

Report CheckLayouts(const Subject& subject, const Case& problem, const std::string& seed) {
  Report report;
  const Present present = AllPresent(subject.op().inputs);
  for (const bool spread_outputs : {false, true}) {
    Case mixed = WithExactAttributes(subject, problem);
    mixed.layout = spread_outputs ? Layout::kContiguous : Layout::kStrided;
    mixed.layout_of_outputs = spread_outputs ? Layout::kStrided : Layout::kContiguous;
    const std::string doing = spread_outputs ? "with gaps in outputs" : "with gaps in inputs";
    if (auto exact = ExactProblemOf(subject, mixed, present, seed, doing, report)) {
      RunAndCompare(subject, mixed.attributes, *exact, doing, report);
    }
  }
  return report;
}

Report CheckAttributes(const Subject& subject, const Case& problem, const std::string& seed) {
  Report report;
  const Case adapted = WithExactAttributes(subject, problem);
  const Present present = AllPresent(subject.op().inputs);
  auto exact = ExactProblemOf(subject, adapted, present, seed, "after other calls", report);
  for (std::size_t i = 0; exact && i < adapted.attributes.size(); ++i) {
    std::vector<Attribute> without = adapted.attributes;
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
    // Other dims may come of it, so that the call is refused: it counts that it was made.
    if (const Result<Kernel> other = Kernel::Create(*subject.row, without); other.ok()) {
      (void)subject.run(
          *other, ContextFor(*subject.row, 2), exact->arguments.InputRefs(),
          exact->arguments.OutputRefs());
    }
    RunAndCompare(
        subject, adapted.attributes, *exact,
        "after a call without " + std::string(adapted.attributes[i].name), report);
  }
  return report;
}

Report CheckAccumulate(const Subject& subject, const Case& problem, const std::string& seed) {
  Report report;
  const Case adapted = WithExactAttributes(subject, problem);
  const Present present = AllPresent(subject.op().inputs);
  const std::string doing = "adding to the outputs";
  if (auto exact = ExactProblemOf(subject, adapted, present, seed, doing, report)) {
    AccumulateAndCompare(subject, adapted.attributes, *exact, doing, report);
  }
  return report;
}

Report CheckRandom(const Subject& subject, const Case& problem, const std::string& seed) {
  Report report;
  for (const Present& present : PresentSubsets(subject.op().inputs)) {
    Problem random = MakeRandomProblem(subject, problem, present, seed);
    RunAndCompare(subject, problem.attributes, random, Doing(subject, present), report);
  }
  if (!HasOneOrder(*subject.row)) {
    Problem random = MakeRandomProblem(subject, problem, AllPresent(subject.op().inputs), seed);
    for (const Present& outputs : OutputSubsets(subject)) {
      RunAndCompare(
          subject, problem.attributes, random, outputs,
          "asking for " + DescribePresent(subject.op().outputs, outputs), report);
    }
  }
  return report;
}

Report CheckDefinition(const Subject& subject, const Case& problem, const std::string& seed) {
  const reference::Attributes attributes = OracleAttributes(*subject.tests, problem.attributes);
  Report report;
  for (const Present& present : PresentSubsets(subject.op().inputs)) {
    Problem random = MakeRandomProblem(subject, problem, present, seed);
    const reference::Tensors defined =
        reference::DefinitionOf(subject.op().name)(random.arguments.InputValues(), attributes);
    for (const auto& [name, value] : defined) {
      random.expected.find(name)->second.value = value;
    }
    RunAndCompare(
        subject, problem.attributes, random, "by definition " + Doing(subject, present), report);
  }
  return report;
}

namespace {

/// What every element of an input is where a seam does not say it: short numbers, all different.
reference::Numbers NumbersBesideSeams(const Subject& subject) {
  reference::Numbers numbers;
  double next = 1.25;
  for (const TensorSpec& spec : subject.op().inputs) {
    const bool is_number = IsFloating(subject.TypeOf(spec));
    numbers[std::string(spec.name)] = is_number ? next : 0;
    next += is_number ? 0.25 : 0;
  }
  return numbers;
}

/// The inputs at a seam; nothing where the row's types do not hold the place.
std::optional<reference::Numbers>
NumbersAtSeam(const Subject& subject, const Seam& seam, const reference::Attributes& attributes) {
  const reference::Numbers beside = NumbersBesideSeams(subject);
  reference::Numbers numbers = beside;
  for (const SeamValue& at : seam.at) {
    const auto value = static_cast<double>(
        reference::NumberOf(subject.tests->seam_nodes, at.node, beside, attributes).value);
    const auto specs = subject.op().inputs;
    const auto spec = std::find_if(
        specs.begin(), specs.end(), [&](const TensorSpec& one) { return one.name == at.tensor; });
    const double held = RoundAll(subject.TypeOf(*spec), {value}).front();
    if (held != value && !std::isnan(value)) {
      return std::nullopt;
    }
    numbers[at.tensor] = value;
  }
  return numbers;
}

/// Has every element be its input's number, and the expected ones what the seam says.
Problem ProblemAtSeam(
    const Subject& subject,
    const Case& problem,
    const Seam& seam,
    const reference::Numbers& numbers,
    const std::string& seed) {
  const reference::Attributes attributes = OracleAttributes(*subject.tests, problem.attributes);
  Problem changed = MakeRandomProblem(
      subject, problem, AllPresent(subject.op().inputs), seed, [&](reference::Tensors& inputs) {
        for (auto& [name, tensor] : inputs) {
          std::fill(tensor.values.begin(), tensor.values.end(), numbers.at(name));
        }
      });
  reference::ExpectedOutputs expected;
  for (const SeamValue& gives : seam.gives) {
    reference::Expected& output = changed.expected.find(gives.tensor)->second;
    const reference::CountingNumber term =
        reference::NumberOf(subject.tests->seam_nodes, gives.node, numbers, attributes);
    for (std::size_t i = 0; i < output.terms.size(); ++i) {
      const double terms = output.terms[i];
      output.value.values[i] = terms == 0 ? 0 : terms * static_cast<double>(term.value);
      output.error[i] =
          terms * (static_cast<double>(term.error) + terms * std::abs(output.value.values[i]));
    }
    expected.insert(*changed.expected.find(gives.tensor));
  }
  changed.expected = std::move(expected);
  return changed;
}

}  // namespace

Report CheckSeams(const Subject& subject, const Case& problem, const std::string& seed) {
  Report report;
  const reference::Attributes attributes = OracleAttributes(*subject.tests, problem.attributes);
  for (const Seam& seam : subject.tests->seams) {
    const auto numbers = NumbersAtSeam(subject, seam, attributes);
    if (!numbers) {
      report.notes.push_back("no element is at " + seam.text);
      continue;
    }
    Problem at_seam = ProblemAtSeam(subject, problem, seam, *numbers, seed);
    RunAndCompare(subject, problem.attributes, at_seam, "where " + seam.text, report);
  }
  return report;
}

Report CheckNotFinite(const Subject& subject, const Case& problem, const std::string& seed) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Report report;
  const Present present = AllPresent(subject.op().inputs);
  for (const auto& [name, dims] : InputShapes(problem, present)) {
    if (dims.size() < 2 || reference::Count(dims) == 0 || !IsFloatingInput(subject, name)) {
      continue;
    }
    for (const double planted : {kInfinity, -kInfinity, std::nan("")}) {
      reference::Random random(seed + name);
      Problem changed = MakeRandomProblem(
          subject, problem, present, seed, [&, name = name](reference::Tensors& inputs) {
            std::vector<double>& values = inputs[name].values;
            values[random.Next() % values.size()] = planted;
          });
      RunAndCompare(
          subject, problem.attributes, changed, "with " + std::to_string(planted) + " in " + name,
          report);
    }
  }
  return report;
}

}  // namespace gradsmith::support
