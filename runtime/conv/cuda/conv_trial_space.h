#ifndef GRADSMITH_CONV_CUDA_CONV_TRIAL_SPACE_H_
#define GRADSMITH_CONV_CUDA_CONV_TRIAL_SPACE_H_

#include <utility>
#include <vector>

#include "conv/cuda/padding_check.h"
#include "conv/trial_data.h"
#include "core/selection.h"
#include "cuda/trial_space.h"

namespace gradsmith::conv {

/// ConvTrialSpace is a space of convolutions, whose candidates are checked on data of each kind.
class ConvTrialSpace : public cuda::TrialSpace {
 public:
  Result<double> Check(internal::Plan& plan) override;

 protected:
  /// The policy says what is asked of results.
  ConvTrialSpace(const cuda::DeviceInfo& device, CUstream stream, internal::SearchPolicy policy)
      : TrialSpace(device, stream), policy_(std::move(policy)) {}

  [[nodiscard]] const internal::SearchPolicy& policy() const { return policy_; }

  /// What the trial's operands are filled with.
  [[nodiscard]] virtual std::vector<cuda::UniformRange> ValuesOf(TrialData data) const = 0;
  /// What a plan computes, by places among the trial's operands.
  [[nodiscard]] virtual std::vector<TriedTask> TriedTasks() const = 0;
  /// Compare returns the largest error of the results that the trial's last run, which was the
  /// plan's, left; one that is too large is an error.
  virtual Result<double> Compare(const internal::Plan& plan, TrialData data) = 0;

 private:
  Status FillWith(TrialData data);
  /// Runs a plan on data of a kind, and compares.
  Result<double> CheckOn(TrialData data, internal::Plan& plan);

  internal::SearchPolicy policy_;
};

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_CONV_TRIAL_SPACE_H_
