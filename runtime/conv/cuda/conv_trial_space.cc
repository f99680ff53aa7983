#include "conv/cuda/conv_trial_space.h"

#include <algorithm>

namespace gradsmith::conv {

Result<double> ConvTrialSpace::Check(internal::Plan& plan) {
  if (Status status = OpenTrial(); !status.ok()) {
    return status;
  }
  double error = 0;
  for (const TrialData data : DataOf(policy_.allow_reduced_accuracy)) {
    const Result<double> found = CheckOn(data, plan);
    if (!found.ok()) {
      // The next candidate is timed on usual data: power, and with it speed, depends on values.
      const Status refilled = FillWith(TrialData::kUsual);
      return refilled.ok() ? found.status().WithPrefix(PrefixOf(data)) : refilled;
    }
    error = std::max(error, *found);
  }
  Status status = FillWith(TrialData::kUsual);
  if (status.ok() && policy_.exact_padding) {
    status = CheckPadding(trial(), Tried(plan), TriedTasks());
  }
  return status.ok() ? Result<double>(error) : status;
}

Status ConvTrialSpace::FillWith(TrialData data) {
  return trial().Refill(ValuesOf(data));
}

Result<double> ConvTrialSpace::CheckOn(TrialData data, internal::Plan& plan) {
  Status status = FillWith(data);
  if (status.ok()) {
    status = Run(plan);
  }
  if (status.ok()) {
    status = trial().CheckWritten();
  }
  return status.ok() ? Compare(plan, data) : status;
}

}  // namespace gradsmith::conv
