#include "conv/cuda/together_space.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conv/cuda/conv_trial_space.h"
#include "conv/cuda/depthwise.h"
#include "conv/cuda/form.h"
#include "conv/cuda/search_space.h"
#include "conv/trial_data.h"
#include "core/rounding.h"
#include "core/tensor_memory.h"
#include "cuda/buffer.h"
#include "cuda/exactness.h"
#include "cuda/tensor_ops.h"
#include "cuda/trial.h"
#include "cuda/workspace_arena.h"

namespace gradsmith::conv {

namespace {

using internal::Arrangement;
using internal::Candidate;
using internal::CandidateName;
using internal::KernelName;
using internal::Plan;
using internal::Rejection;

/// A call as it will be launched when it comes back: recorded by its first run.
class RecordedCall final : public Plan {
 public:
  RecordedCall(CallPlan& plan, cuda::CallGraphs& graphs) : plan_(plan), graphs_(graphs) {}

  [[nodiscard]] std::size_t workspace() const override { return plan_.workspace(); }

  Status Run(const internal::Launch& launch) override {
    if (graph_.empty() || workspace_ != launch.workspace) {
      Result<cuda::CallGraph> graph = graphs_.Record([&](cuda::Branches& branches) {
        internal::Launch on_branches = launch;
        on_branches.stream = branches.stream();
        return plan_.Enqueue(branches, on_branches);
      });
      if (!graph.ok()) {
        return graph.status();
      }
      graph_ = std::move(*graph);
      workspace_ = launch.workspace;
    }
    return graph_.Launch(launch.stream);
  }

 private:
  CallPlan& plan_;
  cuda::CallGraphs& graphs_;
  cuda::CallGraph graph_;
  void* workspace_ = nullptr;
};

/// Two of a call's primitives, and its bias gradient where it has one, as a problem of their own. A
/// candidate's id is the arrangement of two kernels, or of one that computes all.
class TogetherSpace final : public ConvTrialSpace {
 public:
  TogetherSpace(const ReadyCall& call, ChoicesAlone alone, Order likely)
      : ConvTrialSpace(
            call.op.device,
            call.op.stream(),
            cuda::PolicyOf(call.op.context, call.op.type())),
        call_(call),
        alone_(std::move(alone)),
        likely_(likely) {}

  [[nodiscard]] std::string Describe() const override {
    return std::string(ToString(call_.tasks[0].task.primitive)) +
           (call_.sums ? ", sums of channels" : "") + " and " + conv::Describe(call_.tasks[1].task);
  }

  [[nodiscard]] int batches() const override { return 1; }

  std::vector<Candidate> List(int /*batch*/, std::vector<Rejection>* /*rejections*/) override {
    std::vector<Candidate> candidates;
    const auto add_name = [&](const CandidateName& name) {
      const std::string id = name.Write();
      candidates.push_back({.id = id, .engine = id, .notes = {.varies = true}});
    };
    const bool may_be_aside =
        policy().mode == SearchMode::kBenchmark ||
        PlanInOrder(call_, Order::kSideBySide)->extra_workspace() <= kMostForSideBySide;
    const auto add = [&](const KernelName& first, const KernelName& second) {
      const Order other = likely_ == Order::kInTurn ? Order::kSideBySide : Order::kInTurn;
      for (const Order order : {likely_, other}) {
        if (order == Order::kInTurn || may_be_aside) {
          add_name({ArrangementOf(order), {first, second}});
        }
      }
    };
    const OnePass one_pass = InOnePass(call_);
    const std::optional<KernelName> one_kernel = KernelName::Read(one_pass.id);
    const KernelName& first_alone = alone_[0].kernel;
    const KernelName& second_alone = alone_[1].kernel;
    if (one_kernel && one_pass.is_promising) {
      add_name({Arrangement::kInOnePass, {*one_kernel}});
    }
    add(first_alone, second_alone);
    if (one_kernel && !one_pass.is_promising) {
      add_name({Arrangement::kInOnePass, {*one_kernel}});
    }
    for (const KernelName& first : Kernels(0)) {
      for (const KernelName& second : Kernels(1)) {
        const bool is_new = first != first_alone || second != second_alone;
        if (is_new && MayShareCopies(first, second)) {
          add(first, second);
        }
      }
    }
    const std::optional<KernelName> tiles = KernelName::Read(kDepthwiseTiles);
    if (tiles && SumsByTiles(0)) {
      add(*tiles, second_alone);
    }
    if (tiles && SumsByTiles(1)) {
      add(first_alone, *tiles);
    }
    return candidates;
  }

  Result<std::unique_ptr<Plan>> Build(const std::string& id) override {
    const std::optional<CandidateName> name = CandidateName::Read(id);
    if (!name) {
      return InvalidArgument("'" + id + "' does not fit the problem");
    }
    switch (name->arrangement) {
      case Arrangement::kInTurn:
        return BuildParts(Order::kInTurn, name->kernels);
      case Arrangement::kSideBySide:
        return BuildParts(Order::kSideBySide, name->kernels);
      case Arrangement::kInOnePass:
        return BuildInOnePass(name->kernels.front());
      case Arrangement::kAlone:
        break;
    }
    return InvalidArgument("'" + id + "' does not fit the problem");
  }

 private:
  static Arrangement ArrangementOf(Order order) {
    return order == Order::kInTurn ? Arrangement::kInTurn : Arrangement::kSideBySide;
  }

  /// Whether both make copies, of the same form. What is computed in parts shares none.
  static bool MayShareCopies(const KernelName& first, const KernelName& second) {
    return !first.form.empty() && first.form == second.form && first.parts == 1 &&
           second.parts == 1;
  }

  /// The choice alone, then the quickest in other forms. Those were not compared with what is added
  /// to, which has to be rounded once.
  [[nodiscard]] std::vector<KernelName> Kernels(int part) const {
    const Task& task = call_.tasks[part].task;
    std::vector<KernelName> kernels = {alone_.at(part).kernel};
    if (!task.accumulate || SizeOf(task.problem.type) > 2) {
      for (const std::string& id : alone_.at(part).decision.of_other_forms) {
        if (std::optional<KernelName> kernel = KernelName::Read(id)) {
          kernels.push_back(std::move(*kernel));
        }
      }
    }
    return kernels;
  }

  /// Whether kernels that were not chosen for a part alone would sum the bias gradient as well.
  [[nodiscard]] bool SumsByTiles(int part) const {
    const Task& task = call_.tasks[part].task;
    return call_.sums && IsFilter(task) && alone_.at(part).decision.id != kDepthwiseTiles &&
           DepthwiseTilesOf(task).has_value();
  }

  Result<std::unique_ptr<Plan>> BuildParts(Order order, const std::vector<KernelName>& kernels) {
    std::vector<Part> parts;
    for (int i = 0; i < 2; ++i) {
      const ReadyTask& ready = call_.tasks[i];
      Part part{.primitive = ready.task.primitive, .plan = ready.plan};
      if (kernels.at(i) != alone_.at(i).kernel) {
        Result<std::unique_ptr<Plan>> plan =
            ConvSearchSpace(
                device(), stream(), ready.task,
                OperandsOf(ready.task.primitive, cuda::AddressesOf(call_.op.task)), policy())
                .Build(kernels.at(i));
        if (!plan.ok()) {
          return plan;
        }
        part.plan = std::move(*plan);
      }
      parts.push_back(std::move(part));
    }
    return WithinLimit(std::move(parts), order);
  }

  Result<std::unique_ptr<Plan>> BuildInOnePass(const KernelName& kernel) {
    if (kernel.Write() != InOnePass(call_).id) {
      return InvalidArgument("'" + kernel.Write() + "' does not compute the gradients in one pass");
    }
    Result<std::unique_ptr<Plan>> plan =
        MakeOnePassPlan(device(), call_.tasks[0].task, call_.tasks[1].task);
    if (!plan.ok()) {
      return plan;
    }
    std::vector<Part> parts;
    parts.push_back({.plan = std::move(*plan), .is_whole = true});
    return WithinLimit(std::move(parts), Order::kInTurn);
  }

  /// What is remembered may have been chosen under another limit.
  Result<std::unique_ptr<Plan>> WithinLimit(std::vector<Part> parts, Order order) {
    std::unique_ptr<CallPlan> plan = MakeCallPlan(call_, std::move(parts), order);
    if (plan->workspace() > call_.limit()) {
      return Unsupported("needs more workspace than the context's limit");
    }
    return std::unique_ptr<Plan>(std::move(plan));
  }

  [[nodiscard]] std::vector<cuda::TrialOperand> TrialOperands() const override {
    return cuda::TrialOperandsOf(call_.op.task);
  }

  /// What both primitives share is the factor, of which the bias gradient's sums stay small.
  [[nodiscard]] std::vector<cuda::UniformRange> ValuesOf(TrialData data) const override {
    double terms = 1;
    for (const ReadyTask& ready : call_.tasks) {
      terms = std::max(terms, TermsOf(ready.task));
    }
    std::vector<cuda::UniformRange> values(kCallTensors);
    for (const ReadyTask& ready : call_.tasks) {
      const Operand result = ResultOf(ready.task.primitive);
      for (const Operand operand : {kX, kW, kY}) {
        if (operand != result) {
          values.at(PlaceOf(result, operand)) = operand == SharedOf(call_.op.task)
                                                    ? RangeOfFactor(data, terms)
                                                    : RangeOfData(data, ready.task.problem.type);
        }
      }
    }
    return values;
  }

  [[nodiscard]] std::vector<TriedTask> TriedTasks() const override {
    std::vector<TriedTask> tried;
    for (const ReadyTask& ready : call_.tasks) {
      const Operand result = ResultOf(ready.task.primitive);
      TriedTask& one = tried.emplace_back(TriedTask{.task = &ready.task});
      for (const Operand operand : {kX, kW, kY}) {
        one.at.at(operand) = PlaceOf(result, operand);
      }
    }
    return tried;
  }

  Result<double> Compare(const Plan& plan, TrialData data) override {
    const auto& call_plan = dynamic_cast<const CallPlan&>(plan);
    double error = 0;
    for (int part = 0; part < 2; ++part) {
      const Result<double> found =
          IsAsAlone(part, call_plan) ? alone_.at(part).decision.error : CompareAnew(part, data);
      if (!found.ok()) {
        return found;
      }
      error = std::max(error, *found);
    }
    const Status sums = call_.sums ? CheckSums(*call_.sums) : Status();
    return sums.ok() ? Result<double>(error) : sums;
  }

  /// Whether the trial's last run left the very numbers that the choice alone, where it is part of
  /// the plan, computes of the same operands. These were compared when it was chosen, and computing
  /// them again takes less time than that, unless it is slow. What once computes other numbers adds
  /// up in another order each time: it is not tried again.
  bool IsAsAlone(int part, const CallPlan& plan) {
    constexpr double kSlow = 4;
    const double milliseconds = alone_.at(part).decision.milliseconds;
    const bool is_quick = milliseconds > 0 && milliseconds < kSlow;
    if (!is_quick || !repeats_.at(part) || !plan.HasChoiceAlone(part)) {
      return false;
    }
    repeats_.at(part) = ComputesTheSame(part);
    return repeats_.at(part);
  }

  bool ComputesTheSame(int part) {
    const ReadyTask& ready = call_.tasks[part];
    const Operand result = ResultOf(ready.task.primitive);
    const Result<Expected> expected = MakeExpected(kResults + result, ready.plan->workspace());
    if (!expected.ok()) {
      return false;
    }
    std::array<void*, kOperands> operands = OperandsOf(ready.task.primitive, trial().operands());
    operands.at(result) = expected->tensor.data;
    const Status status =
        ready.plan->Run({trial().stream(), operands, expected->workspace, TrialScalars()});
    if (!status.ok()) {
      return false;
    }
    const Result<cuda::Difference> difference = CompareWith(*expected, kResults + result);
    return difference.ok() && difference->not_finite == 0 && difference->largest_error == 0;
  }

  /// Compares a result with the definition. That results are rounded once is not asked again: what
  /// rounds twice was chosen alone only where there was nothing else.
  Result<double> CompareAnew(int part, TrialData data) {
    const ReadyTask& ready = call_.tasks[part];
    const Primitive primitive = ready.task.primitive;
    return CheckResult(
        trial(), device(), ready.task, OperandsOf(primitive, trial().operands()),
        trial().Before(kResults + ResultOf(primitive)), data,
        {.rounds_once = false, .keeps_promise = KeepsPromise(part)}, policy());
  }

  /// An output that is computed in another way, and workspace for it.
  struct Expected {
    cuda::Buffer memory;
    TensorRef tensor;
    void* workspace = nullptr;
  };

  /// Makes room for an output, which holds what the trial's output is added to.
  Result<Expected> MakeExpected(int output, std::size_t workspace) {
    Expected expected;
    expected.tensor = trial().Ref(output);
    const std::size_t bytes = internal::SpanBytes(expected.tensor);
    Result<cuda::Buffer> memory =
        cuda::Buffer::Allocate(AlignedWorkspace(bytes) + workspace, trial().stream());
    if (!memory.ok()) {
      return memory.status();
    }
    expected.memory = std::move(*memory);
    expected.tensor.data = expected.memory.data();
    expected.workspace = static_cast<std::byte*>(expected.memory.data()) + AlignedWorkspace(bytes);
    Status status = trial().CopyBefore(output, expected.tensor.data);
    return status.ok() ? Result<Expected>(std::move(expected)) : status;
  }

  Result<cuda::Difference> CompareWith(const Expected& expected, int output) {
    const Status status = cuda::CompareTensors(
        device(), trial().stream(), trial().Ref(output), expected.tensor, trial().difference());
    return status.ok() ? trial().Read() : status;
  }

  /// Whether the choice for a task alone keeps the promise: then the choice for both does.
  [[nodiscard]] bool KeepsPromise(int part) const {
    return alone_.at(part).decision.error <= internal::kPromisedOfFloat;
  }

  /// The bias gradient of the trial's last run, for which a plan may have left partial sums, beside
  /// that of a pass of its own.
  Status CheckSums(const BiasSums& sums) {
    const cuda::SumPlan& plan = sums.plan;
    const Result<Expected> expected = MakeExpected(kSums, plan.workspace);
    if (!expected.ok()) {
      return expected.status();
    }
    ConstTensorRef from = sums.from;
    from.data = trial().operands()[kInputs + SharedOf(call_.op.task)];
    if (Status status =
            cuda::SumChannels(trial().stream(), plan, from, expected->tensor, expected->workspace);
        !status.ok()) {
      return status;
    }
    const Result<cuda::Difference> difference = CompareWith(*expected, kSums);
    if (!difference.ok()) {
      return difference.status();
    }
    const TensorRef& found = expected->tensor;
    const std::int64_t terms = NumElements(from.dims) / found.dims[0];
    return cuda::CheckDifference(
               *difference, found.type, static_cast<double>(terms), cuda::Exactness::kUsual)
        .WithPrefix("the bias gradient ");
  }

  /// Tried returns the plan as it will be launched.
  Plan& Tried(Plan& plan) override {
    if (recorded_serial_ != plan.serial()) {
      recorded_ = std::make_unique<RecordedCall>(
          dynamic_cast<CallPlan&>(plan), cuda::ThreadState::OfThisThread(device()).call_graphs());
      recorded_serial_ = plan.serial();
    }
    return *recorded_;
  }

  const ReadyCall& call_;
  ChoicesAlone alone_;
  /// Whether each choice alone has computed the same numbers each time.
  std::array<bool, 2> repeats_ = {true, true};
  Order likely_;
  std::unique_ptr<RecordedCall> recorded_;
  std::uint64_t recorded_serial_ = 0;
};

}  // namespace

std::size_t ReadyCall::limit() const {
  return op.context.workspace_arena()->limit();
}

std::unique_ptr<CallPlan>
MakeCallPlan(const ReadyCall& call, std::vector<Part> parts, Order order) {
  std::vector<std::shared_ptr<Plan>> alone;
  alone.reserve(call.tasks.size());
  for (const ReadyTask& ready : call.tasks) {
    alone.push_back(ready.plan);
  }
  return std::make_unique<CallPlan>(CallParts{
      .parts = std::move(parts),
      .sums = call.sums,
      .shared = SharedOf(call.op.task),
      .order = order,
      .limit = call.limit(),
      .alone = std::move(alone)});
}

std::unique_ptr<CallPlan> PlanInOrder(const ReadyCall& call, Order order) {
  std::vector<Part> parts;
  parts.reserve(call.tasks.size());
  for (const ReadyTask& ready : call.tasks) {
    parts.push_back({.primitive = ready.task.primitive, .plan = ready.plan});
  }
  return MakeCallPlan(call, std::move(parts), order);
}

OnePass InOnePass(const ReadyCall& call) {
  return call.tasks.size() < 2 || SharedOf(call.op.task) != kY
             ? OnePass()
             : OnePassOf(
                   call.op.device.compute_capability(), call.tasks[0].task, call.tasks[1].task);
}

std::unique_ptr<internal::SearchSpace>
MakeTogetherSpace(const ReadyCall& call, ChoicesAlone alone, Order likely) {
  return std::make_unique<TogetherSpace>(call, std::move(alone), likely);
}

}  // namespace gradsmith::conv
