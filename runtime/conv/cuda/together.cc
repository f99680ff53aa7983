#include "conv/cuda/together.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "conv/cuda/conv_trial_space.h"
#include "conv/cuda/depthwise.h"
#include "conv/cuda/form.h"
#include "conv/cuda/one_pass.h"
#include "conv/cuda/parts.h"
#include "conv/cuda/search_space.h"
#include "conv/trial_data.h"
#include "core/candidate_name.h"
#include "core/decision_cache.h"
#include "core/ready_plan.h"
#include "core/rounding.h"
#include "core/selection.h"
#include "core/tensor_memory.h"
#include "core/warning.h"
#include "cuda/buffer.h"
#include "cuda/call_graph.h"
#include "cuda/capture.h"
#include "cuda/driver.h"
#include "cuda/exactness.h"
#include "cuda/selected_run.h"
#include "cuda/tensor_ops.h"
#include "cuda/thread_state.h"
#include "cuda/trial.h"
#include "cuda/workspace_arena.h"

namespace gradsmith::conv {

namespace {

using cuda::DeviceInfo;
using internal::Arrangement;
using internal::Candidate;
using internal::CandidateName;
using internal::Decision;
using internal::KernelName;
using internal::Plan;
using internal::ProblemKey;
using internal::ReadyPlan;
using internal::Rejection;

/// A call as it is asked for.
struct Call {
  const Context& context;
  const DeviceInfo& device;
  std::span<const ReadyTask> tasks;
  const BiasSums* sums;
  Operand shared;
  const CallAddresses& addresses;

  [[nodiscard]] const Problem& problem() const { return tasks.front().task.problem; }
  [[nodiscard]] std::size_t limit() const { return context.workspace_arena()->limit(); }
};

/// What was chosen for a primitive alone.
struct ChoiceAlone {
  Decision decision;
  KernelName kernel;
};
using ChoicesAlone = std::array<ChoiceAlone, 2>;

/// The first word of keys, beside those of the three primitives.
constexpr std::int64_t kTogether = 0x103;

void AddSums(const BiasSums* sums, ProblemKey* key) {
  if (sums == nullptr) {
    return;
  }
  key->Add(static_cast<std::int64_t>(sums->from.type) + (sums->to.accumulate ? 256 : 0));
  key->Add(sums->from.dims);
  key->Add(sums->from.strides);
  key->Add(sums->to.strides);
}

/// What the thread finds the plan by. A plan's number stands for its problem and its policies.
ProblemKey KeyInThread(const Call& call) {
  ProblemKey key;
  key.Add(kTogether);
  key.Add(static_cast<std::int64_t>(call.limit()));
  key.Add(call.shared);
  for (const ReadyTask& ready : call.tasks) {
    key.Add(static_cast<std::int64_t>(ready.plan->serial()));
  }
  AddSums(call.sums, &key);
  return key;
}

/// Whether the gradients of x and w are likely to be quicker side by side than one after the other:
/// what one leaves of the device, the other fills. But those of half and bf16 that wait for memory
/// evict from the cache what they both read (docs/lab/gradients-together.md).
bool ArePromisingSideBySide(const Problem& problem) {
  constexpr double kEnoughForEachByte = 95;  // multiplications and additions
  const double terms = TermsOf({.primitive = Primitive::kForward, .problem = problem});
  const auto x = static_cast<double>(NumElements(DimsOf(problem, kX)));
  const auto y = static_cast<double>(NumElements(DimsOf(problem, kY)));
  const auto size = static_cast<double>(SizeOf(problem.type));
  return SizeOf(problem.type) > 2 || 4 * y * terms >= kEnoughForEachByte * (2 * x + y) * size;
}

/// How a call's gradients are computed in one pass.
OnePass InOnePass(const Call& call) {
  return call.tasks.size() < 2 || call.shared != kY
             ? OnePass()
             : OnePassOf(call.device.compute_capability(), call.tasks[0].task, call.tasks[1].task);
}

std::unique_ptr<CallPlan> PlanInOrder(const Call& call, Order order) {
  std::vector<Part> parts;
  for (const ReadyTask& ready : call.tasks) {
    parts.push_back({ready.task.primitive, ready.plan});
  }
  return std::make_unique<CallPlan>(std::move(parts), call.sums, call.shared, order);
}

/// Without a search no more memory is taken for going side by side.
constexpr std::size_t kMostForSideBySide = std::size_t{256} << 20U;

/// Without timing.
std::unique_ptr<CallPlan> PlanByRule(const Call& call) {
  if (!call.tasks.empty() && ArePromisingSideBySide(call.problem())) {
    std::unique_ptr<CallPlan> aside = PlanInOrder(call, Order::kSideBySide);
    if (aside->workspace() <= call.limit() && aside->extra_workspace() <= kMostForSideBySide) {
      return aside;
    }
  }
  return PlanInOrder(call, Order::kInTurn);
}

/// A call as it will be launched when it comes back: recorded by its first run.
class RecordedCall final : public Plan {
 public:
  RecordedCall(const CallPlan& plan, cuda::CallGraphs& graphs) : plan_(plan), graphs_(graphs) {}

  [[nodiscard]] std::size_t workspace() const override { return plan_.workspace(); }

  Status Run(const internal::Launch& launch) override {
    if (graph_.empty() || workspace_ != launch.workspace) {
      CallAddresses addresses{};
      std::ranges::copy(launch.operands, addresses.begin());
      Result<cuda::CallGraph> graph = graphs_.Record([&](cuda::Branches& branches) {
        return plan_.Enqueue(branches, addresses, launch.workspace);
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
  const CallPlan& plan_;
  cuda::CallGraphs& graphs_;
  cuda::CallGraph graph_;
  void* workspace_ = nullptr;
};

/// Two of a call's primitives, and its bias gradient where it has one, as a problem of their own. A
/// candidate's id is the arrangement of two kernels, or of one that computes all.
class TogetherSpace final : public ConvTrialSpace {
 public:
  /// `alone` are the choices for each primitive alone.
  TogetherSpace(const Call& call, ChoicesAlone alone, Order likely)
      : ConvTrialSpace(
            call.device,
            static_cast<CUstream>(call.context.options().stream),
            cuda::PolicyOf(call.context, call.problem().type)),
        call_(call),
        alone_(std::move(alone)),
        likely_(likely) {}

  [[nodiscard]] std::string Describe() const override {
    return std::string(ToString(call_.tasks[0].task.primitive)) +
           (call_.sums == nullptr ? "" : ", sums of channels") + " and " +
           conv::Describe(call_.tasks[1].task);
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
    return call_.sums != nullptr && IsFilter(task) &&
           alone_.at(part).decision.id != kDepthwiseTiles && DepthwiseTilesOf(task).has_value();
  }

  Result<std::unique_ptr<Plan>> BuildParts(Order order, const std::vector<KernelName>& kernels) {
    std::vector<Part> parts;
    for (int i = 0; i < 2; ++i) {
      const ReadyTask& ready = call_.tasks[i];
      Part part{ready.task.primitive, ready.plan};
      if (kernels.at(i) != alone_.at(i).kernel) {
        Result<std::unique_ptr<Plan>> plan =
            ConvSearchSpace(
                call_.device, stream(), ready.task,
                OperandsOf(ready.task.primitive, call_.addresses), policy())
                .Build(kernels.at(i));
        if (!plan.ok()) {
          return plan;
        }
        part.own = std::move(*plan);
        part.plan = part.own.get();
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
        MakeOnePassPlan(call_.device, call_.tasks[0].task, call_.tasks[1].task);
    if (!plan.ok()) {
      return plan;
    }
    std::vector<Part> parts;
    Plan* whole = plan->get();
    parts.push_back({.plan = whole, .own = std::move(*plan), .is_whole = true});
    return WithinLimit(std::move(parts), Order::kInTurn);
  }

  /// What is remembered may have been chosen under another limit.
  Result<std::unique_ptr<Plan>> WithinLimit(std::vector<Part> parts, Order order) {
    auto plan = std::make_unique<CallPlan>(std::move(parts), call_.sums, call_.shared, order);
    if (plan->workspace() > call_.limit()) {
      return Unsupported("needs more workspace than the context's limit");
    }
    return std::unique_ptr<Plan>(std::move(plan));
  }

  [[nodiscard]] std::vector<cuda::TrialOperand> TrialOperands() const override {
    std::vector<cuda::TrialOperand> operands(kCallTensors);
    for (const ReadyTask& ready : call_.tasks) {
      const Operand result = ResultOf(ready.task.primitive);
      for (const Operand operand : {kX, kW, kY}) {
        const int place = PlaceOf(result, operand);
        ConstTensorRef tensor(
            ready.task.problem.type, call_.addresses.at(place), DimsOf(ready.task.problem, operand),
            StridesOf(ready.task.problem, operand));
        tensor.accumulate = operand == result && ready.task.accumulate;
        operands.at(place) = {tensor, operand == result};
      }
    }
    if (call_.sums != nullptr) {
      TensorRef sums = call_.sums->to;
      sums.data = call_.addresses.at(kSums);
      operands.at(kSums) = {sums, true};
    }
    return operands;
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
          values.at(PlaceOf(result, operand)) = operand == call_.shared
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

  Result<double> Compare(TrialData data) override {
    CallAddresses addresses{};
    std::ranges::copy(trial().operands(), addresses.begin());
    double error = 0;
    for (const ReadyTask& ready : call_.tasks) {
      const Primitive primitive = ready.task.primitive;
      // Who rounds twice or is less exact was not chosen alone either, unless there is no other.
      const Result<double> found = CheckResult(
          trial(), call_.device, ready.task, OperandsOf(primitive, addresses),
          trial().Before(kResults + ResultOf(primitive)), data,
          {.rounds_once = false, .keeps_promise = KeepsPromise(ready.task)}, policy());
      if (!found.ok()) {
        return found;
      }
      error = std::max(error, *found);
    }
    const Status sums = call_.sums == nullptr ? Status() : CheckSums(addresses);
    return sums.ok() ? Result<double>(error) : sums;
  }

  /// Whether the choice for a task alone keeps the promise: then the choice for both does.
  [[nodiscard]] bool KeepsPromise(const Task& task) const {
    const int part = &task == &call_.tasks[0].task ? 0 : 1;
    return alone_.at(part).decision.error <= internal::kPromisedOfFloat;
  }

  /// The bias gradient of the trial's last run, for which a plan may have left partial sums, beside
  /// that of a pass of its own.
  Status CheckSums(const CallAddresses& addresses) {
    const TensorRef found = trial().Ref(kSums);
    const std::size_t bytes = internal::SpanBytes(found);
    const cuda::SumPlan& plan = call_.sums->plan;
    Result<cuda::Buffer> memory =
        cuda::Buffer::Allocate(AlignedWorkspace(bytes) + plan.workspace, trial().stream());
    if (!memory.ok()) {
      return memory.status();
    }
    TensorRef expected = found;
    expected.data = memory->data();
    ConstTensorRef from = call_.sums->from;
    from.data = addresses.at(kInputs + call_.shared);
    Status status;
    if (const void* before = trial().Before(kSums)) {
      status = cuda::ToStatus(
          cuda::Driver().cuMemcpyAsync(
              reinterpret_cast<CUdeviceptr>(expected.data), reinterpret_cast<CUdeviceptr>(before),
              bytes, trial().stream()),
          "copying a bias gradient");
    }
    if (status.ok()) {
      status = cuda::SumChannels(
          trial().stream(), plan, from, expected,
          static_cast<std::byte*>(memory->data()) + AlignedWorkspace(bytes));
    }
    if (status.ok()) {
      status = cuda::CompareTensors(
          call_.device, trial().stream(), found, expected, trial().difference());
    }
    if (!status.ok()) {
      return status;
    }
    const Result<cuda::Difference> difference = trial().Read();
    if (!difference.ok()) {
      return difference.status();
    }
    const std::int64_t terms = NumElements(from.dims) / found.dims[0];
    return cuda::CheckDifference(
               *difference, found.type, static_cast<double>(terms), cuda::Exactness::kUsual)
        .WithPrefix("the bias gradient ");
  }

  /// As it will be launched.
  Plan& Tried(Plan& plan) override {
    if (recorded_serial_ != plan.serial()) {
      recorded_ = std::make_unique<RecordedCall>(
          dynamic_cast<const CallPlan&>(plan),
          cuda::ThreadState::OfThisThread(call_.device).call_graphs());
      recorded_serial_ = plan.serial();
    }
    return *recorded_;
  }

  Call call_;
  ChoicesAlone alone_;
  Order likely_;
  std::unique_ptr<RecordedCall> recorded_;
  std::uint64_t recorded_serial_ = 0;
};

/// What a choice for a call is remembered by: the problems, and what was chosen for each alone.
ProblemKey KeyOf(const Call& call, const ChoicesAlone& alone) {
  ProblemKey key;
  key.Add(kTogether);
  for (int i = 0; i < 2; ++i) {
    key.Add(static_cast<std::int64_t>(call.tasks[i].key.hash()));
    key.AddText(alone.at(i).decision.id);
  }
  AddSums(call.sums, &key);
  return key;
}

/// The choices for each primitive alone; none where one has been dropped since.
std::optional<ChoicesAlone> FindChoicesAlone(const Call& call) {
  ChoicesAlone alone;
  for (int i = 0; i < 2; ++i) {
    std::optional<Decision> found =
        call.context.decisions()->Find(call.tasks[i].key, call.context.search_mode());
    std::optional<KernelName> kernel = found ? KernelName::Read(found->id) : std::nullopt;
    if (!found || !kernel) {
      return std::nullopt;
    }
    alone.at(i) = {std::move(*found), std::move(*kernel)};
  }
  return alone;
}

bool MaySearch(const Call& call) {
  return call.context.search_mode() == SearchMode::kBenchmark &&
         !cuda::IsCapturing(static_cast<CUstream>(call.context.options().stream));
}

/// Whether a quick choice is to be made among the candidates: beside others for a moment, or of
/// gradients in one pass, which is likely to be the best.
bool MayChoose(const Call& call) {
  if (call.context.search_mode() != SearchMode::kHeuristic ||
      cuda::IsCapturing(static_cast<CUstream>(call.context.options().stream))) {
    return false;
  }
  return internal::FirstChoiceSeconds(call.context) > 0 || InOnePass(call).is_promising;
}

/// The plan for a call that is remembered, or that timing makes where that is allowed.
Result<ReadyPlan> MakeReady(const Call& call, const ProblemKey& key, TogetherSpace& space) {
  return internal::MakeReady(call.context, key, space, [&]() -> Result<internal::Selected> {
    if (!MaySearch(call) && !MayChoose(call)) {
      return Unsupported("the rule is to decide");
    }
    internal::SearchPolicy policy = cuda::PolicyOf(call.context, call.problem().type);
    // There are few, whose kernels are loaded.
    policy.first_choice_seconds /= 2;
    return internal::Select(space, policy);
  });
}

/// Brings the plan for two primitives up to date: what is still the choice is kept.
void Update(const Call& call, ReadyPlan* ready) {
  const cuda::RelaxedCapture relaxed;
  const std::uint64_t generation = call.context.decisions()->generation();
  std::unique_ptr<CallPlan> by_rule = PlanByRule(call);
  SearchMode mode = SearchMode::kHeuristic;
  if (std::optional<ChoicesAlone> alone = FindChoicesAlone(call)) {
    const ProblemKey key = KeyOf(call, *alone);
    if (ready->plan != nullptr && internal::Serves(call.context, key, ready)) {
      return;
    }
    TogetherSpace space(call, std::move(*alone), by_rule->order());
    Result<ReadyPlan> made = MakeReady(call, key, space);
    if (made.ok()) {
      *ready = std::move(*made);
      return;
    }
    if (MaySearch(call)) {
      internal::Warn(space.Describe() + ": not timed together: " + made.status().message());
      mode = SearchMode::kBenchmark;  // timing would fail again
    }
  }
  if (ready->plan == nullptr || !ready->id.empty()) {
    ready->plan = std::move(by_rule);
    ready->id.clear();
  }
  ready->mode = mode;
  ready->generation = generation;
}

bool IsUpToDate(const Call& call, const ReadyPlan& ready) {
  return call.tasks.size() < 2 ||
         (ready.plan != nullptr && ready.generation == call.context.decisions()->generation() &&
          (call.context.search_mode() != SearchMode::kBenchmark ||
           ready.mode == SearchMode::kBenchmark));
}

}  // namespace

CallPlan& FindCallPlan(
    const Context& context,
    const DeviceInfo& device,
    std::span<const ReadyTask> tasks,
    const BiasSums* sums,
    Operand shared,
    const CallAddresses& addresses) {
  const Call call{context, device, tasks, sums, shared, addresses};
  auto& plans = cuda::ThreadState::OfThisThread(device).plans();
  const ProblemKey key = KeyInThread(call);
  ReadyPlan* ready = plans.Find(key);
  if (ready == nullptr) {
    ready = &plans.Insert(key, ReadyPlan());
    ready->plan = tasks.size() < 2 ? PlanByRule(call) : nullptr;
  }
  if (!IsUpToDate(call, *ready)) {
    Update(call, ready);
  }
  return static_cast<CallPlan&>(*ready->plan);
}

}  // namespace gradsmith::conv
