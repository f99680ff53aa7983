#include "batch_norm/cuda/family.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "batch_norm/cuda/check.h"
#include "batch_norm/cuda/form.h"
#include "batch_norm/cuda/graph.h"
#include "batch_norm/cuda/held.h"
#include "batch_norm/cuda/legacy.h"
#include "batch_norm/cuda/own.h"
#include "batch_norm/cuda/task.h"
#include "cuda/graph.h"

namespace gradsmith::batch_norm {

namespace {

using cuda::Implementation;
using cuda::OpTask;
using cuda::Target;
using cuda::Variants;
using internal::Plan;
using internal::UniformRange;

// ---------------------------------------------------------------------------------------------
// Our own kernels
// ---------------------------------------------------------------------------------------------

std::size_t WorkspaceOf(const cuda::DeviceInfo& device, const OpTask& task) {
  return DirectionOf(task) == Direction::kForward ? ForwardWorkspace(device, XOf(task))
                                                  : BackwardWorkspace(device, XOf(task));
}

class OwnPlan final : public Plan {
 public:
  /// `held`: by held.h, which has a shape for the task.
  OwnPlan(const cuda::DeviceInfo& device, const OpTask& task, bool held)
      : device_(device),
        held_(held),
        direction_(DirectionOf(task)),
        activation_(ActivationOf(task)),
        inputs_count_(task.inputs()),
        workspace_(held ? 0 : WorkspaceOf(device, task)) {
    for (int i = 0; i < task.operands(); ++i) {
      if (task.is_output(i)) {
        outputs_.at(i - inputs_count_) = task.tensors[i];
      } else {
        inputs_.at(i) = task.tensors[i];
      }
    }
  }

  [[nodiscard]] std::size_t workspace() const override { return workspace_; }

  Status Run(const internal::Launch& launch) override {
    for (int i = 0; i < static_cast<int>(launch.operands.size()); ++i) {
      if (i < inputs_count_) {
        inputs_.at(i).data = launch.operands[i];
      } else {
        outputs_.at(i - inputs_count_).data = launch.operands[i];
      }
    }
    CUstream stream = launch.stream;
    if (direction_ == Direction::kBackward) {
      return RunBackward(stream, launch.workspace);
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
         .running_mean = Output(forward::kNewRunningMean),
         .running_var = Output(forward::kNewRunningVar),
         .saved_mean = Output(forward::kSavedMean),
         .saved_inv_std = Output(forward::kSavedInvStd)},
        launch.workspace);
  }

 private:
  Status RunBackward(CUstream stream, void* workspace) {
    const BatchNormalizationReluGrad::Inputs inputs = {
        .dY = &inputs_[backward::kDY],
        .X = &inputs_[backward::kX],
        .scale = &inputs_[backward::kScale],
        .B = activation_ == Activation::kNone ? nullptr : &inputs_[backward::kB],
        .saved_mean = &inputs_[backward::kSavedMean],
        .saved_inv_std = &inputs_[backward::kSavedInvStd]};
    const BatchNormalizationGrad::Outputs outputs = {
        .dX = Output(backward::kDX),
        .dScale = Output(backward::kDScale),
        .dBias = Output(backward::kDBias)};
    return held_ ? HeldBackward(device_, stream, inputs, outputs)
                 : Backward(device_, stream, inputs, outputs, workspace);
  }

  [[nodiscard]] const TensorRef* Output(int operand) const {
    return &outputs_.at(operand - inputs_count_);
  }

  const cuda::DeviceInfo& device_;
  bool held_;
  Direction direction_;
  Activation activation_;
  /// How many of the operands are inputs.
  int inputs_count_;
  std::size_t workspace_;
  std::array<ConstTensorRef, backward::kInputs> inputs_;
  std::array<TensorRef, forward::kOperands - forward::kInputs> outputs_;
};

/// An empty tensor leaves nothing to compute, and the variance of a single value is not
/// defined: cuDNN and we need not agree.
bool IsTrivial(const OpTask& task) {
  return NumElements(XOf(task).dims) == 0 || SamplesPerChannel(task) == 1;
}

Result<Variants> FitOwn(const Target& target, const OpTask& task) {
  return cuda::OneWay(OwnPlan(target.device, task, false).workspace());
}

Result<std::unique_ptr<Plan>>
BuildOwn(const Target& target, const OpTask& task, const std::string& /*variant*/) {
  return MakeOwnPlan(target.device, task);
}

Result<Variants> FitHeld(const Target& target, const OpTask& task) {
  if (DirectionOf(task) != Direction::kBackward) {
    return Unsupported("it is a gradient's");
  }
  const ConstTensorRef dY = task.tensors[backward::kDY];
  const ConstTensorRef X = task.tensors[backward::kX];
  const ConstTensorRef dX = task.tensors[backward::kDX];
  if (!HeldShapeOf(own::PolicyOf(target.device), dY, X, dX.present ? &dX : nullptr)) {
    return Unsupported(
        "a block does not hold the " + std::to_string(SamplesPerChannel(task)) +
        " samples of a channel, or they lie along more than two dims, or elements are many");
  }
  return cuda::OneWay(0);
}

Result<std::unique_ptr<Plan>>
BuildHeld(const Target& target, const OpTask& task, const std::string& /*variant*/) {
  return std::unique_ptr<Plan>(std::make_unique<OwnPlan>(target.device, task, true));
}

// ---------------------------------------------------------------------------------------------
// cuDNN's graph API
// ---------------------------------------------------------------------------------------------

/// They are all one engine with other knobs, each compiled for half a second; cuDNN lists the best
/// first.
constexpr std::size_t kMostGraphVariants = 8;

Result<Variants> FitGraph(const Target& target, const OpTask& task) {
  const Result<StagedForm> form = GraphForm(task);
  if (!form.ok()) {
    return form.status();
  }
  const cuda::GraphTarget planned_for(target.cudnn);
  const Result<cuda::OperationGraph> graph = MakeGraph(planned_for, *form);
  if (!graph.ok()) {
    return graph.status();
  }
  Variants variants;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    if (!variants.empty()) {
      break;
    }
    Result<Variants> listed = cuda::ListEngines(planned_for, *graph, mode, XOf(task).type);
    if (!listed.ok()) {
      return listed.status();
    }
    variants = std::move(*listed);
  }
  variants.resize(std::min(variants.size(), kMostGraphVariants));
  for (internal::Candidate& variant : variants) {
    variant.workspace += StagedBytes(*form);
  }
  return variants;
}

Result<std::unique_ptr<Plan>>
BuildGraph(const Target& target, const OpTask& task, const std::string& variant) {
  const Result<cuda::EngineChoice> engine = cuda::EngineChoice::Parse(variant);
  if (!engine.ok()) {
    return engine.status();
  }
  const Result<StagedForm> form = GraphForm(task);
  if (!form.ok()) {
    return form.status();
  }
  const cuda::GraphTarget planned_for(target.cudnn);
  const Result<cuda::OperationGraph> graph = MakeGraph(planned_for, *form);
  if (!graph.ok()) {
    return graph.status();
  }
  Result<std::unique_ptr<Plan>> inner = cuda::BuildGraphPlan(planned_for, *graph, *engine);
  return inner.ok() ? StagePlan(target.device, task, *form, std::move(*inner)) : std::move(inner);
}

// ---------------------------------------------------------------------------------------------
// cuDNN's legacy API
// ---------------------------------------------------------------------------------------------

template <bool kPersistent>
Result<Variants> FitLegacy(const Target& target, const OpTask& task) {
  const Result<StagedForm> form = LegacyForm(task);
  if (!form.ok()) {
    return form.status();
  }
  const Result<std::size_t> workspace = LegacyWorkspace(*target.cudnn, *form, kPersistent);
  if (!workspace.ok()) {
    return workspace.status();
  }
  return cuda::OneWay(
      *workspace + StagedBytes(*form), {.may_overflow = kPersistent && !form->channels_last});
}

template <bool kPersistent>
Result<std::unique_ptr<Plan>>
BuildLegacy(const Target& target, const OpTask& task, const std::string& /*variant*/) {
  const Result<StagedForm> form = LegacyForm(task);
  if (!form.ok()) {
    return form.status();
  }
  Result<std::unique_ptr<Plan>> inner =
      BuildLegacyPlan(target.device, *target.cudnn, *form, kPersistent);
  return inner.ok() ? StagePlan(target.device, task, *form, std::move(*inner)) : std::move(inner);
}

// ---------------------------------------------------------------------------------------------
// Trials
// ---------------------------------------------------------------------------------------------

/// For the gradient with ReLU: multiples of 1/8, so that what ReLU was given is exact in float and
/// nobody's rounding decides whether it was positive.
UniformRange ExactValuesOf(int operand) {
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
UniformRange ValuesOf(const OpTask& task, int operand) {
  constexpr UniformRange kPositive = {.center = 1, .radius = 0.5};
  if (DirectionOf(task) == Direction::kForward) {
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
  if (ActivationOf(task) == Activation::kRelu) {
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

constexpr std::array<Implementation, 5> kTable = {{
    {.name = "own/held", .adds = true, .fit = &FitHeld, .build = &BuildHeld},
    {.name = "own", .adds = true, .takes_all = true, .fit = &FitOwn, .build = &BuildOwn},
    {.name = "graph",
     .needs = cuda::Needs::kCudnn,
     .adds = true,
     .fit = &FitGraph,
     .build = &BuildGraph},
    {.name = "legacy/spatial",
     .needs = cuda::Needs::kCudnn,
     .adds = true,
     .fit = &FitLegacy<false>,
     .build = &BuildLegacy<false>},
    {.name = "legacy/spatial_persistent",
     .needs = cuda::Needs::kCudnn,
     .adds = true,
     .fit = &FitLegacy<true>,
     .build = &BuildLegacy<true>},
}};

}  // namespace

std::unique_ptr<Plan> MakeOwnPlan(const cuda::DeviceInfo& device, const OpTask& task) {
  return std::make_unique<OwnPlan>(device, task, false);
}

constinit const cuda::FamilyOnCuda kFamily = {
    .table = kTable,
    .needs = cuda::Needs::kCudnn,
    .revision = 3,
    .is_trivial = &IsTrivial,
    .values = &ValuesOf,
    .comparison = &kChannelsComparison};

}  // namespace gradsmith::batch_norm
