#ifndef GRADSMITH_CUDA_OP_SEARCH_SPACE_H_
#define GRADSMITH_CUDA_OP_SEARCH_SPACE_H_

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/candidate.h"
#include "cuda/device.h"
#include "cuda/implementation.h"
#include "cuda/op_task.h"
#include "cuda/trial_space.h"
#include "gradsmith/status.h"

namespace gradsmith::cuda {

/// BuildPlan returns an implementation's plan for a task, with the outputs staged that it does not
/// add to.
Result<std::unique_ptr<internal::Plan>> BuildPlan(
    const DeviceInfo& device,
    const Implementation& implementation,
    const OpTask& task,
    const std::string& variant = {});

/// OpSearchSpace offers a family's implementations of a task, each a batch.
class OpSearchSpace final : public TrialSpace {
 public:
  /// The task's addresses are the caller's, as is `stream`. `usual` allows what is in general use,
  /// and leaves out data that hurts.
  OpSearchSpace(
      const DeviceInfo& device,
      CUstream stream,
      const FamilyOnCuda& family,
      const OpTask& task,  // NOLINT(modernize-pass-by-value): to move a task is to copy it
      bool usual = false)
      : TrialSpace(device, stream), family_(family), task_(task), usual_(usual) {}

  [[nodiscard]] std::string Describe() const override { return cuda::Describe(task_); }
  [[nodiscard]] int batches() const override { return static_cast<int>(family_.table.size()); }
  std::vector<internal::Candidate> List(int batch, std::vector<internal::Rejection>* rejections)
      override;
  Result<std::unique_ptr<internal::Plan>> Build(const std::string& id) override;
  Result<double> Check(internal::Plan& plan) override;

 private:
  [[nodiscard]] std::vector<TrialOperand> TrialOperands() const override;
  [[nodiscard]] std::span<const double> TrialScalars() const override {
    return task_.op->trial_scalars;
  }
  /// How many spatial axes the lead has, for lists of bad engines.
  [[nodiscard]] int SpatialRank() const { return task_.lead().rank() - 2; }
  /// The task with the trial's memory and scalars.
  [[nodiscard]] OpTask TrialTask() const;
  Result<double> CheckHurtful(internal::Plan& plan);

  const FamilyOnCuda& family_;
  OpTask task_;
  bool usual_;
  /// Plans of implementations that take all, by their serial numbers.
  std::set<std::uint64_t> trusted_;
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_OP_SEARCH_SPACE_H_
