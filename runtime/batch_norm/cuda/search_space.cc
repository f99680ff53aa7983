#include "batch_norm/cuda/search_space.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "batch_norm/cuda/check.h"
#include "batch_norm/cuda/graph.h"
#include "batch_norm/cuda/legacy.h"
#include "batch_norm/cuda/own.h"
#include "cuda/bad_engines.h"

namespace gradsmith::batch_norm {

namespace {

using internal::Candidate;
using internal::Plan;
using internal::Rejection;

constexpr const char* kOwn = "own";
constexpr const char* kGraph = "graph/";
constexpr const char* kSpatial = "legacy/spatial";
constexpr const char* kPersistent = "legacy/spatial_persistent";

/// Where candidates come from, in the order in which they are asked for.
enum Source : unsigned char { kOwnKernels, kGraphApi, kLegacyApi };
constexpr int kSources = 3;

/// They are all one engine with other knobs, each compiled for half a second; cuDNN lists the best
/// first.
constexpr std::size_t kMostGraphCandidates = 8;

/// What trials are run with.
constexpr std::array<double, 2> kTrialScalars = {1e-5, 0.9};

class OwnPlan final : public Plan {
 public:
  OwnPlan(const cuda::DeviceInfo& device, const Task& task)
      : device_(device),
        direction_(task.direction),
        activation_(task.activation),
        workspace_(
            task.direction == Direction::kForward ? ForwardWorkspace(device, XOf(task))
                                                  : BackwardWorkspace(device, XOf(task))) {
    for (int i = 0; i < OperandsOf(direction_); ++i) {
      if (i < InputsOf(direction_)) {
        inputs_.at(i) = task.tensors.at(i);
      } else {
        outputs_.at(i - InputsOf(direction_)) = task.tensors.at(i);
      }
    }
  }

  [[nodiscard]] std::size_t workspace() const override { return workspace_; }

  Status Run(const internal::Launch& launch) override {
    for (int i = 0; i < OperandsOf(direction_); ++i) {
      if (i < InputsOf(direction_)) {
        inputs_.at(i).data = launch.operands[i];
      } else {
        outputs_.at(i - InputsOf(direction_)).data = launch.operands[i];
      }
    }
    auto* stream = static_cast<CUstream>(launch.stream);
    if (direction_ == Direction::kBackward) {
      return Backward(
          device_, stream,
          {.dY = &inputs_[backward::kDY],
           .X = &inputs_[backward::kX],
           .scale = &inputs_[backward::kScale],
           .B = activation_ == Activation::kNone ? nullptr : &inputs_[backward::kB],
           .saved_mean = &inputs_[backward::kSavedMean],
           .saved_inv_std = &inputs_[backward::kSavedInvStd]},
          {.dX = Output(backward::kDX),
           .dScale = Output(backward::kDScale),
           .dBias = Output(backward::kDBias)},
          launch.workspace);
    }
    return Forward(
        device_, stream, activation_,
        {.epsilon = launch.scalars[forward::kEpsilon],
         .momentum = launch.scalars[forward::kMomentum]},
        {.X = &inputs_[forward::kX],
         .scale = &inputs_[forward::kScale],
         .B = &inputs_[forward::kB],
         .running_mean = &inputs_[forward::kRunningMean],
         .running_var = &inputs_[forward::kRunningVar]},
        {.Y = Output(forward::kY),
         .running_mean = Output(forward::kNewMean),
         .running_var = Output(forward::kNewVar),
         .saved_mean = Output(forward::kSavedMean),
         .saved_inv_std = Output(forward::kSavedInvStd)},
        launch.workspace);
  }

 private:
  [[nodiscard]] const TensorRef* Output(int operand) const {
    return &outputs_.at(operand - InputsOf(direction_));
  }

  const cuda::DeviceInfo& device_;
  Direction direction_;
  Activation activation_;
  std::size_t workspace_;
  std::array<ConstTensorRef, backward::kInputs> inputs_;
  std::array<TensorRef, forward::kOperands - forward::kInputs> outputs_;
};

/// For the gradient with ReLU: multiples of 1/8, so that what ReLU was given is exact in float and
/// nobody's rounding decides whether it was positive.
cuda::UniformRange ExactValuesOf(int operand) {
  switch (operand) {
    case backward::kDY:
      return {.center = 0, .radius = 0.5};
    case backward::kScale:
    case backward::kSavedInvStd:
      return {.center = 1, .radius = 0.5, .levels = 4};
    default:
      return {.center = 0, .radius = 1, .levels = 8};
  }
}

/// What an operand holds in a trial. Sums of many dY stay within half's range, variances and
/// factors are positive, and the mean of X is not lost beside its deviation.
cuda::UniformRange ValuesOf(const Task& task, int operand) {
  constexpr cuda::UniformRange kPositive = {.center = 1, .radius = 0.5};
  if (task.direction == Direction::kForward) {
    switch (operand) {
      case forward::kX:
        return {.center = 0.5, .radius = 1};
      case forward::kScale:
      case forward::kRunningVar:
        return kPositive;
      default:
        return {};
    }
  }
  if (task.activation == Activation::kRelu) {
    return ExactValuesOf(operand);
  }
  switch (operand) {
    case backward::kDY:
      return {.center = 0, .radius = 0.5};
    case backward::kScale:
    case backward::kSavedInvStd:
      return kPositive;
    default:
      return {};
  }
}

/// Sums of what is not double are not as exact as a double that they are stored in.
DataType ComparedAs(const Task& task, const TensorRef& output) {
  return output.type == DataType::kDouble ? XOf(task).type : output.type;
}

/// As lists of bad engines have it.
std::string OperationOf(const Task& task) {
  return std::string("batch-normalization") +
         (task.activation == Activation::kRelu ? "-relu" : "") +
         (task.direction == Direction::kForward ? "" : "-backward");
}

Candidate LegacyCandidate(const std::string& id, std::size_t workspace, bool may_overflow) {
  Candidate candidate;
  candidate.id = id;
  candidate.engine = id;
  candidate.workspace = workspace;
  candidate.notes.may_overflow = may_overflow;
  return candidate;
}

}  // namespace

std::unique_ptr<Plan> MakeOwnPlan(const cuda::DeviceInfo& device, const Task& task) {
  return std::make_unique<OwnPlan>(device, task);
}

int BatchNormSearchSpace::batches() const {
  return kSources;
}

std::vector<Candidate> BatchNormSearchSpace::List(int batch, std::vector<Rejection>* rejections) {
  if (batch == kOwnKernels) {
    return {{kOwn, kOwn, {}, OwnPlan(device_, task_).workspace()}};
  }
  if (batch == kGraphApi && task_.direction == Direction::kForward) {
    return {};
  }
  Result<std::vector<Candidate>> listed = batch == kGraphApi ? ListGraph() : ListLegacy();
  if (!listed.ok()) {
    rejections->push_back({batch == kGraphApi ? "graph" : "legacy", listed.status().message()});
    return {};
  }
  for (Candidate& candidate : *listed) {
    candidate.notes.known_bad =
        cuda::IsKnownBad(OperationOf(task_), candidate.engine, XOf(task_).rank() - 2);
  }
  return std::move(*listed);
}

Result<cuda::CudnnHandle*> BatchNormSearchSpace::Handle() {
  return cuda::ThreadState::OfThisThread(device_).handle();
}

Result<std::vector<Candidate>> BatchNormSearchSpace::ListGraph() {
  const Result<Form> form = GraphForm(task_);
  if (!form.ok()) {
    return form.status();
  }
  const Result<cuda::CudnnHandle*> handle = Handle();
  if (!handle.ok()) {
    return handle.status();
  }
  const Result<const cuda::OperationGraph*> graph = GraphOf(*form);
  if (!graph.ok()) {
    return graph.status();
  }
  std::vector<Candidate> candidates;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    if (!candidates.empty()) {
      break;
    }
    Result<std::vector<Candidate>> listed =
        cuda::ListEngines(cuda::GraphTarget(*handle), **graph, mode, XOf(task_).type, kGraph);
    if (!listed.ok()) {
      return listed.status();
    }
    candidates = std::move(*listed);
  }
  candidates.resize(std::min(candidates.size(), kMostGraphCandidates));
  for (Candidate& candidate : candidates) {
    candidate.workspace += StagedBytes(*form);
  }
  return candidates;
}

Result<std::vector<Candidate>> BatchNormSearchSpace::ListLegacy() {
  const Result<Form> form = LegacyForm(task_);
  if (!form.ok()) {
    return form.status();
  }
  if (const Result<cuda::CudnnHandle*> handle = Handle(); !handle.ok()) {
    return handle.status();
  }
  const std::size_t workspace = StagedBytes(*form);
  return std::vector<Candidate>{
      LegacyCandidate(kSpatial, workspace, false), LegacyCandidate(kPersistent, workspace, true)};
}

Result<const cuda::OperationGraph*> BatchNormSearchSpace::GraphOf(const Form& form) {
  if (!graph_) {
    const Result<cuda::CudnnHandle*> handle = Handle();
    if (!handle.ok()) {
      return handle.status();
    }
    Result<cuda::OperationGraph> graph = MakeGraph(cuda::GraphTarget(*handle), form);
    if (!graph.ok()) {
      return graph.status();
    }
    graph_ = std::move(*graph);
  }
  return &*graph_;
}

Result<std::unique_ptr<Plan>> BatchNormSearchSpace::Build(const std::string& id) {
  if (id == kOwn) {
    return MakeOwnPlan(device_, task_);
  }
  if (Status status = cuda::CheckEngine(OperationOf(task_), id, XOf(task_).rank() - 2);
      !status.ok()) {
    return status;
  }
  if (id == kSpatial || id == kPersistent) {
    return BuildLegacy(id == kPersistent);
  }
  if (id.starts_with(kGraph)) {
    return BuildGraph(id.substr(std::string_view(kGraph).size()));
  }
  return InvalidArgument("'" + id + "' is no candidate");
}

Result<std::unique_ptr<Plan>> BatchNormSearchSpace::BuildGraph(const std::string& choice) {
  const Result<cuda::EngineChoice> engine = cuda::EngineChoice::Parse(choice);
  if (!engine.ok()) {
    return engine.status();
  }
  const Result<Form> form = GraphForm(task_);
  if (!form.ok()) {
    return form.status();
  }
  const Result<const cuda::OperationGraph*> graph = GraphOf(*form);
  if (!graph.ok()) {
    return graph.status();
  }
  Result<std::unique_ptr<Plan>> inner =
      cuda::BuildGraphPlan(cuda::GraphTarget(*Handle()), **graph, *engine);
  return inner.ok() ? WrapPlan(device_, task_, *form, std::move(*inner)) : std::move(inner);
}

Result<std::unique_ptr<Plan>> BatchNormSearchSpace::BuildLegacy(bool persistent) {
  const Result<Form> form = LegacyForm(task_);
  if (!form.ok()) {
    return form.status();
  }
  const Result<cuda::CudnnHandle*> handle = Handle();
  if (!handle.ok()) {
    return handle.status();
  }
  Result<std::unique_ptr<Plan>> inner = BuildLegacyPlan(device_, **handle, *form, persistent);
  return inner.ok() ? WrapPlan(device_, task_, *form, std::move(*inner)) : std::move(inner);
}

Status BatchNormSearchSpace::OpenTrial() {
  if (trial_ != nullptr) {
    return {};
  }
  std::vector<cuda::TrialOperand> operands;
  operands.reserve(OperandsOf(task_.direction));
  for (int i = 0; i < OperandsOf(task_.direction); ++i) {
    operands.push_back(
        {.tensor = task_.tensors.at(i),
         .is_output = i >= InputsOf(task_.direction),
         .values = ValuesOf(task_, i)});
  }
  Result<std::unique_ptr<cuda::Trial>> trial = cuda::Trial::Create(device_, stream_, operands);
  if (!trial.ok()) {
    return trial.status();
  }
  trial_ = std::move(*trial);
  return {};
}

Task BatchNormSearchSpace::TrialTask() const {
  Task task = task_;
  for (int i = 0; i < OperandsOf(task.direction); ++i) {
    task.tensors.at(i) = trial_->Ref(i);
  }
  return task;
}

/// Whatever is summed, an element of a large output has few roundings; sums of floats have more.
cuda::Exactness BatchNormSearchSpace::ExactnessOf(const TensorRef& output) const {
  if (allow_reduced_accuracy_) {
    return cuda::Exactness::kUsual;
  }
  return batch_norm::IsLarge(output) ? cuda::Exactness::kPromised : cuda::Exactness::kStrict;
}

Result<double> BatchNormSearchSpace::CheckOutputs() {
  const Task task = TrialTask();
  std::array<const void*, kMaxOperands> before{};
  for (int i = 0; i < OperandsOf(task.direction); ++i) {
    before.at(i) = trial_->Before(i);
  }
  if (Status status =
          CheckChannels(trial_->stream(), task, before, kTrialScalars, trial_->difference());
      !status.ok()) {
    return status;
  }
  const auto differences = trial_->ReadAll();
  if (!differences.ok()) {
    return differences.status();
  }
  const auto terms = static_cast<double>(SamplesPerChannel(task));
  double largest = 0;
  for (int i = InputsOf(task.direction); i < OperandsOf(task.direction); ++i) {
    const TensorRef& output = task.tensors.at(i);
    if (!output.present) {
      continue;
    }
    cuda::Difference difference = differences->at(i - InputsOf(task.direction));
    const double error = difference.largest_error;
    difference.squared_error = error * error;
    difference.squared_expected = 1;
    if (Status status =
            cuda::CheckDifference(difference, ComparedAs(task, output), terms, ExactnessOf(output));
        !status.ok()) {
      return status.WithPrefix(std::string(NameOf(task.direction, i)) + " ");
    }
    largest = std::max(largest, error);
  }
  return largest;
}

Result<double> BatchNormSearchSpace::CheckHurtful(Plan& plan) {
  const Task task = TrialTask();
  double error = 0;
  for (int number = 0; number < HurtfulFills(task); ++number) {
    Status status = FillHurtful(trial_->stream(), task, number);
    if (status.ok()) {
      status = trial_->Run(plan, kTrialScalars);
    }
    if (status.ok()) {
      status = trial_->CheckGuards();
    }
    if (!status.ok()) {
      return status;
    }
    const Result<double> found = CheckOutputs();
    if (!found.ok()) {
      return found.status().WithPrefix(
          "on constants, large means or numbers near the type's limits ");
    }
    error = std::max(error, *found);
  }
  return error;
}

Result<double> BatchNormSearchSpace::Check(Plan& plan) {
  if (Status status = OpenTrial(); !status.ok()) {
    // Our own kernels are what is left where there is no memory to try any in.
    const bool is_own = dynamic_cast<OwnPlan*>(&plan) != nullptr;
    return is_own && status.code() == StatusCode::kOutOfMemory ? Result<double>(0.0) : status;
  }
  if (Status status = trial_->Run(plan, kTrialScalars); !status.ok()) {
    return status;
  }
  if (Status status = trial_->CheckWritten(); !status.ok()) {
    return status;
  }
  Result<double> usual = CheckOutputs();
  // The caller's own inputs must stay as they are.
  if (!usual.ok() || allow_reduced_accuracy_ || !trial_->has_copies()) {
    return usual;
  }
  const Result<double> hurtful = CheckHurtful(plan);
  if (Status status = trial_->Fill(); !status.ok()) {
    return status;
  }
  return hurtful.ok() ? Result<double>(std::max(*usual, *hurtful)) : hurtful;
}

Result<double> BatchNormSearchSpace::Time(Plan& plan) {
  if (Status status = OpenTrial(); !status.ok()) {
    return status;
  }
  return trial_->Time(plan, kTrialScalars);
}

}  // namespace gradsmith::batch_norm
