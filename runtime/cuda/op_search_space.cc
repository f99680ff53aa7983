#include "cuda/op_search_space.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "core/candidate_name.h"
#include "cuda/bad_engines.h"
#include "cuda/staged_plan.h"
#include "cuda/thread_state.h"

namespace gradsmith::cuda {

namespace {

using internal::Candidate;
using internal::Plan;
using internal::Rejection;

Result<Target> TargetOf(const DeviceInfo& device, const Implementation& implementation) {
  if (implementation.needs == Needs::kDriver) {
    return Target{device};
  }
  const Result<CudnnHandle*> handle = ThreadState::OfThisThread(device).handle();
  if (!handle.ok()) {
    return handle.status();
  }
  return Target{device, *handle};
}

bool MustStage(const Implementation& implementation, const OpTask& task) {
  return !implementation.adds && IsAddedTo(task);
}

Result<Variants>
Fit(const DeviceInfo& device, const Implementation& implementation, const OpTask& task) {
  const Result<Target> target = TargetOf(device, implementation);
  if (!target.ok()) {
    return target.status();
  }
  if (!MustStage(implementation, task)) {
    return implementation.fit(*target, task);
  }
  const Result<StagedTask> staged = WithoutAdding(task);
  if (!staged.ok()) {
    return staged.status();
  }
  Result<Variants> variants = implementation.fit(*target, staged->inner);
  if (variants.ok()) {
    for (Candidate& variant : *variants) {
      variant.workspace += StagedBytes(*staged);
    }
  }
  return variants;
}

}  // namespace

Result<std::unique_ptr<Plan>> BuildPlan(
    const DeviceInfo& device,
    const Implementation& implementation,
    const OpTask& task,
    const std::string& variant) {
  const Result<Target> target = TargetOf(device, implementation);
  if (!target.ok()) {
    return target.status();
  }
  if (!MustStage(implementation, task)) {
    return implementation.build(*target, task, variant);
  }
  const Result<StagedTask> staged = WithoutAdding(task);
  if (!staged.ok()) {
    return staged.status();
  }
  Result<std::unique_ptr<Plan>> inner = implementation.build(*target, staged->inner, variant);
  return inner.ok() ? StagePlan(device, task, *staged, std::move(*inner)) : std::move(inner);
}

std::vector<Candidate> OpSearchSpace::List(int batch, std::vector<Rejection>* rejections) {
  const Implementation& implementation = family_.table[static_cast<std::size_t>(batch)];
  Result<Variants> variants = Fit(device(), implementation, task_);
  if (!variants.ok()) {
    rejections->push_back({std::string(implementation.name), variants.status().message()});
    return {};
  }
  for (Candidate& variant : *variants) {
    variant.id = internal::NameOfVariant(implementation.name, variant.id);
    variant.engine = internal::NameOfVariant(implementation.name, variant.engine);
    variant.notes.known_bad =
        implementation.needs == Needs::kCudnn &&
        IsKnownBad(std::string(task_.op->operation), variant.engine, SpatialRank());
  }
  return std::move(*variants);
}

Result<std::unique_ptr<Plan>> OpSearchSpace::Build(const std::string& id) {
  std::optional<std::string> variant;
  const auto found = std::ranges::find_if(family_.table, [&](const Implementation& implementation) {
    variant = internal::VariantOf(implementation.name, id);
    return variant.has_value();
  });
  const std::optional<internal::KernelName> name = internal::KernelName::Read(id);
  if (found == family_.table.end() || !variant || !name) {
    return InvalidArgument("'" + id + "' is no candidate");
  }
  if (found->needs == Needs::kCudnn) {
    if (Status status = CheckEngine(std::string(task_.op->operation), *name, SpatialRank());
        !status.ok()) {
      return status;
    }
  }
  Result<std::unique_ptr<Plan>> plan = BuildPlan(device(), *found, task_, *variant);
  if (plan.ok() && found->takes_all) {
    trusted_.insert((*plan)->serial());
  }
  return plan;
}

std::vector<TrialOperand> OpSearchSpace::TrialOperands() const {
  std::vector<TrialOperand> operands = TrialOperandsOf(task_);
  for (int i = 0; family_.values != nullptr && i < task_.operands(); ++i) {
    operands[static_cast<std::size_t>(i)].values = family_.values(task_, i);
  }
  return operands;
}

OpTask OpSearchSpace::TrialTask() const {
  OpTask task = task_;
  for (int i = 0; i < task.operands(); ++i) {
    task.tensors[i] = trial().Ref(static_cast<std::size_t>(i));
  }
  task.scalars = {};
  for (const double scalar : task.op->trial_scalars) {
    task.scalars.push_back(scalar);
  }
  return task;
}

Result<double> OpSearchSpace::CheckHurtful(Plan& plan) {
  const Comparison& comparison = *family_.comparison;
  const OpTask task = TrialTask();
  double error = 0;
  for (int number = 0; number < comparison.hurtful_fills(task); ++number) {
    Status status = comparison.fill_hurtful(trial().stream(), task, number);
    if (status.ok()) {
      status = Run(plan);
    }
    if (status.ok()) {
      status = trial().CheckGuards();
    }
    if (!status.ok()) {
      return status;
    }
    const Result<double> found = comparison.compare(trial(), task, usual_);
    if (!found.ok()) {
      return found.status().WithPrefix("on " + std::string(comparison.what_hurts) + " ");
    }
    error = std::max(error, *found);
  }
  return error;
}

Result<double> OpSearchSpace::Check(Plan& plan) {
  if (Status status = OpenTrial(); !status.ok()) {
    // What takes all is what is left where there is no memory to try any in.
    const bool is_trusted = trusted_.contains(plan.serial());
    return is_trusted && status.code() == StatusCode::kOutOfMemory ? Result<double>(0.0) : status;
  }
  const OpTask task = TrialTask();
  if (Status status = Run(plan); !status.ok()) {
    return status;
  }
  if (Status status = trial().CheckWritten(); !status.ok()) {
    return status;
  }
  Result<double> on_usual = family_.comparison->compare(trial(), task, usual_);
  // The caller's own inputs must stay as they are.
  if (!on_usual.ok() || usual_ || !trial().has_copies() ||
      family_.comparison->hurtful_fills == nullptr) {
    return on_usual;
  }
  const Result<double> hurtful = CheckHurtful(plan);
  if (Status status = trial().Fill(); !status.ok()) {
    return status;
  }
  return hurtful.ok() ? Result<double>(std::max(*on_usual, *hurtful)) : hurtful;
}

}  // namespace gradsmith::cuda
