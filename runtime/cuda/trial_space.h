#ifndef GRADSMITH_CUDA_TRIAL_SPACE_H_
#define GRADSMITH_CUDA_TRIAL_SPACE_H_

#include <cuda.h>

#include <memory>
#include <span>
#include <vector>

#include "core/candidate.h"
#include "cuda/device.h"
#include "cuda/op_task.h"
#include "cuda/trial.h"
#include "gradsmith/status.h"

namespace gradsmith::cuda {

/// TrialOperandsOf returns a task's operands as a trial is made of them.
std::vector<TrialOperand> TrialOperandsOf(const OpTask& task);

/// TrialSpace is a search space whose candidates are tried in a trial, which is made for the first
/// of them.
class TrialSpace : public internal::SearchSpace {
 public:
  Result<double> Time(internal::Plan& plan) override;

 protected:
  /// `stream` is the caller's.
  TrialSpace(const DeviceInfo& device, CUstream stream) : device_(device), stream_(stream) {}

  [[nodiscard]] const DeviceInfo& device() const { return device_; }
  [[nodiscard]] CUstream stream() const { return stream_; }

  /// What a trial is made of.
  [[nodiscard]] virtual std::vector<TrialOperand> TrialOperands() const = 0;
  /// The scalars that candidates are tried with.
  [[nodiscard]] virtual std::span<const double> TrialScalars() const { return {}; }
  /// A plan as it is run in a trial.
  virtual internal::Plan& Tried(internal::Plan& plan) { return plan; }

  Status OpenTrial();
  /// Once it is open.
  [[nodiscard]] Trial& trial() const { return *trial_; }
  /// Run runs a plan once in the trial.
  Status Run(internal::Plan& plan) { return trial_->Run(Tried(plan), TrialScalars()); }

 private:
  const DeviceInfo& device_;
  CUstream stream_;
  std::unique_ptr<Trial> trial_;
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_TRIAL_SPACE_H_
