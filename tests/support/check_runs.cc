#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "support/checks.h"
#include "support/refusal.h"
#include "support/run.h"

/// Checks that compare runs with each other.
namespace gradsmith::support {

namespace {

constexpr int kThreads = 2;

/// A kernel, its arguments, and the outputs of one full run.
struct Baseline {
  Kernel kernel;
  Arguments arguments;
  OutputBytes bytes;
};

std::optional<Baseline>
RunBaseline(const Subject& subject, const Case& problem, Arguments arguments, Report& report) {
  const std::optional<Kernel> kernel = MakeKernel(subject, problem.attributes, report);
  if (!kernel) {
    return std::nullopt;
  }
  const Context& context = ContextFor(*subject.row, kThreads);
  if (!RunPoisoned(
          subject, *kernel, context, arguments, AllPresent(subject.op().outputs),
          "with all outputs", report)) {
    return std::nullopt;
  }
  OutputBytes bytes = BytesOf(subject, arguments);
  return Baseline{*kernel, std::move(arguments), std::move(bytes)};
}

std::optional<Baseline>
RunBaseline(const Subject& subject, const Case& problem, const std::string& seed, Report& report) {
  const Present all = AllPresent(subject.op().inputs);
  return RunBaseline(subject, problem, MakeRandomArguments(subject, problem, all, seed), report);
}

/// Absent arguments at the end may also be left out.
void CheckLeavingOut(
    const Subject& subject,
    Baseline& baseline,
    const Present& present,
    const std::string& doing,
    Report& report) {
  baseline.arguments.PoisonOutputs();
  report.FailIfNot(
      subject.run(
          baseline.kernel, ContextFor(*subject.row, kThreads), baseline.arguments.InputRefs(),
          Trimmed(baseline.arguments.OutputRefs(present))),
      doing);
  baseline.arguments.CheckSurroundings(present, doing, report);
  CompareBytes(
      subject, BytesOf(subject, baseline.arguments), baseline.bytes, present, doing, report);
}

/// Runs with the outputs for which `in_place` is true written over their inputs.
void RunInPlace(
    const Subject& subject,
    const Case& problem,
    const std::string& seed,
    const Baseline& baseline,
    const Present& in_place,
    Report& report) {
  const auto specs = subject.op().outputs;
  const std::string doing = "with " + DescribePresent(specs, in_place) + " written in place";
  Arguments arguments =
      MakeRandomArguments(subject, problem, AllPresent(subject.op().inputs), seed);
  std::vector<TensorRef> outputs = arguments.OutputRefs();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (in_place[i]) {
      outputs[i] = arguments.input(specs[i].in_place_of).Ref();
    }
  }
  report.FailIfNot(
      subject.run(
          baseline.kernel, ContextFor(*subject.row, kThreads), arguments.InputRefs(), outputs),
      doing);
  OutputBytes bytes = BytesOf(subject, arguments);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (in_place[i]) {
      const TestTensor& input = arguments.input(specs[i].in_place_of);
      bytes[i] = input.ElementBytes();
      if (!input.SurroundingsIntact()) {
        report.Fail(doing + ": memory around " + std::string(specs[i].name) + " was written to");
      }
    }
  }
  CompareBytes(subject, bytes, baseline.bytes, AllPresent(specs), doing, report);
}

/// Runs the typed function and the dynamic door on the same arguments, for each subset of the
/// outputs.
void CompareDoors(
    const Subject& subject,
    const Case& problem,
    const std::string& seed,
    const Kernel& kernel,
    const Present& inputs,
    Report& report) {
  const Context& context = ContextFor(*subject.row, kThreads);
  Arguments arguments = MakeRandomArguments(subject, problem, inputs, seed);
  for (const Present& outputs : OutputSubsets(subject)) {
    const std::string doing = "with inputs " + DescribePresent(subject.op().inputs, inputs) +
                              " and outputs " + DescribePresent(subject.op().outputs, outputs);
    if (!RunPoisoned(subject, kernel, context, arguments, outputs, doing, report)) {
      continue;
    }
    const OutputBytes expected = BytesOf(subject, arguments);
    arguments.PoisonOutputs();
    const std::string typed = "the typed function, " + doing;
    report.FailIfNot(
        subject.typed(
            {context, problem.typed_attributes, arguments.InputRefs(),
             arguments.OutputRefs(outputs)}),
        typed);
    arguments.CheckSurroundings(outputs, typed, report);
    CompareBytes(subject, BytesOf(subject, arguments), expected, outputs, typed, report);
  }
}

/// Both doors give the same error.
void CompareErrors(
    const Subject& subject,
    const Case& problem,
    const std::string& seed,
    const Kernel& kernel,
    Report& report) {
  const Context& context = ContextFor(*subject.row, kThreads);
  const Arguments arguments =
      MakeRandomArguments(subject, problem, AllPresent(subject.op().inputs), seed);
  std::vector<ConstTensorRef> inputs = arguments.InputRefs();
  inputs[0].device.index = 1;
  const std::vector<TensorRef> outputs = arguments.OutputRefs();
  const Status typed = subject.typed({context, problem.typed_attributes, inputs, outputs});
  const Status dynamic = kernel.Run(context, inputs, outputs);
  if (typed.code() != dynamic.code() || typed.message() != dynamic.message()) {
    report.Fail(
        "the typed function's error is '" + typed.message() + "', the dynamic door's '" +
        dynamic.message() + "'");
  }
}

/// Runs again in a context, and compares bit by bit.
void RunAgain(
    const Subject& subject,
    const Context& context,
    const std::string& where,
    Baseline& baseline,
    Report& report) {
  const Present all = AllPresent(subject.op().outputs);
  const std::string doing = "run again " + where;
  if (RunPoisoned(subject, baseline.kernel, context, baseline.arguments, all, doing, report)) {
    CompareBytes(subject, BytesOf(subject, baseline.arguments), baseline.bytes, all, doing, report);
  }
}

/// A row gives the same bits where a policy asks for them: on any number of threads, and in a
/// context that has chosen nothing yet.
void CheckRepeatUnderPolicy(const Subject& subject, Baseline& baseline, Report& report) {
  for (const int threads : {kThreads, 1, 3}) {
    const std::string where = "on " + std::to_string(threads) + " threads";
    RunAgain(subject, ContextFor(*subject.row, threads), where, baseline, report);
  }
  const Context context(
      ContextOptions{.device = subject.device(), .threads = kThreads, .deterministic = true});
  RunAgain(subject, context, "in another deterministic context", baseline, report);
}

/// A row gives these bits where no policy asks for them, too, and kernels are chosen by the clock.
void CheckRepeatAlways(const Subject& subject, Baseline& baseline, Report& report) {
  const Context context(
      ContextOptions{.device = subject.device(), .threads = kThreads, .deterministic = false});
  RunAgain(subject, context, "in a context that is not deterministic", baseline, report);
}

/// A row that never gives the same bits says so where a policy asks for them, and writes nothing.
void CheckRepeatNever(const Subject& subject, Baseline& baseline, Report& report) {
  const std::string doing = "run in a deterministic context";
  baseline.arguments.PoisonOutputs();
  const Status status = subject.run(
      baseline.kernel, SharedContext(subject.row->backend, kThreads),
      baseline.arguments.InputRefs(), baseline.arguments.OutputRefs());
  VerifyPhrases(
      doing, status, StatusCode::kUnsupported, {"never give the same bits", "deterministic"},
      report);
  baseline.arguments.CheckSurroundings(Present(subject.op().outputs.size(), false), doing, report);
}

}  // namespace

Report CheckOutputSubsets(const Subject& subject, const Case& problem, const std::string& seed) {
  Report report;
  const Present inputs = AllPresent(subject.op().inputs);
  std::optional<Baseline> baseline = RunBaseline(
      subject, problem,
      HasOneOrder(*subject.row) ? MakeRandomArguments(subject, problem, inputs, seed)
                                : MakeExactArguments(subject, problem, inputs, seed),
      report);
  if (!baseline) {
    return report;
  }
  for (const Present& present : OutputSubsets(subject)) {
    const std::string doing = "asking for " + DescribePresent(subject.op().outputs, present);
    if (RunPoisoned(
            subject, baseline->kernel, ContextFor(*subject.row, kThreads), baseline->arguments,
            present, doing, report)) {
      CompareBytes(
          subject, BytesOf(subject, baseline->arguments), baseline->bytes, present, doing, report);
    }
    CheckLeavingOut(subject, *baseline, present, doing + " in a shorter list", report);
  }
  return report;
}

Report CheckInPlace(const Subject& subject, const Case& problem, const std::string& seed) {
  Case dense = problem;
  if (dense.layout == Layout::kBroadcast) {
    dense.layout = Layout::kContiguous;  // elements that share memory cannot be written
  }
  Report report;
  const std::optional<Baseline> baseline = RunBaseline(subject, dense, seed, report);
  if (!baseline) {
    return report;
  }
  const auto specs = subject.op().outputs;
  Present all(specs.size(), false);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].in_place_of < 0) {
      continue;
    }
    all[i] = true;
    Present one(specs.size(), false);
    one[i] = true;
    RunInPlace(subject, dense, seed, *baseline, one, report);
  }
  RunInPlace(subject, dense, seed, *baseline, all, report);
  return report;
}

Report CheckRepeat(const Subject& subject, const Case& problem, const std::string& seed) {
  Report report;
  std::optional<Baseline> baseline = RunBaseline(subject, problem, seed, report);
  if (!baseline) {
    return report;
  }
  switch (subject.row->repeatable) {
    case Repeatable::kNever:
      CheckRepeatNever(subject, *baseline, report);
      break;
    case Repeatable::kPolicy:
      CheckRepeatUnderPolicy(subject, *baseline, report);
      break;
    case Repeatable::kAlways:
      CheckRepeatUnderPolicy(subject, *baseline, report);
      CheckRepeatAlways(subject, *baseline, report);
      break;
  }
  return report;
}

Report CheckShapeOnly(const Subject& subject, const Case& problem, const std::string& seed) {
  Report report;
  std::optional<Baseline> baseline = RunBaseline(subject, problem, seed, report);
  if (!baseline) {
    return report;
  }
  const std::string doing = "with null data where only the shape is needed";
  std::vector<ConstTensorRef> inputs = baseline->arguments.InputRefs();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    inputs[i].data = subject.op().inputs[i].shape_only ? nullptr : inputs[i].data;
  }
  baseline->arguments.PoisonOutputs();
  report.FailIfNot(
      subject.run(
          baseline->kernel, ContextFor(*subject.row, kThreads), inputs,
          baseline->arguments.OutputRefs()),
      doing);
  CompareBytes(
      subject, BytesOf(subject, baseline->arguments), baseline->bytes,
      AllPresent(subject.op().outputs), doing, report);
  return report;
}

Report CheckDoors(const Subject& subject, const Case& problem, const std::string& seed) {
  Report report;
  const std::optional<Kernel> kernel = MakeKernel(subject, problem.attributes, report);
  if (!kernel) {
    return report;
  }
  for (const Present& inputs : PresentSubsets(subject.op().inputs)) {
    CompareDoors(subject, problem, seed, *kernel, inputs, report);
  }
  CompareErrors(subject, problem, seed, *kernel, report);
  return report;
}

}  // namespace gradsmith::support
