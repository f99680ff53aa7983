#include "cuda/trial_space.h"

#include <utility>

namespace gradsmith::cuda {

std::vector<TrialOperand> TrialOperandsOf(const OpTask& task) {
  std::vector<TrialOperand> operands;
  operands.reserve(task.operands());
  for (int i = 0; i < task.operands(); ++i) {
    operands.push_back({.tensor = task.tensors[i], .is_output = task.is_output(i)});
  }
  return operands;
}

Status TrialSpace::OpenTrial() {
  if (trial_ != nullptr) {
    return {};
  }
  Result<std::unique_ptr<Trial>> trial = Trial::Create(device_, stream_, TrialOperands());
  if (!trial.ok()) {
    return trial.status();
  }
  trial_ = std::move(*trial);
  return {};
}

Result<double> TrialSpace::Time(internal::Plan& plan) {
  if (Status status = OpenTrial(); !status.ok()) {
    return status;
  }
  return trial_->Time(Tried(plan), TrialScalars());
}

}  // namespace gradsmith::cuda
