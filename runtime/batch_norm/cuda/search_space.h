#ifndef GRADSMITH_BATCH_NORM_CUDA_SEARCH_SPACE_H_
#define GRADSMITH_BATCH_NORM_CUDA_SEARCH_SPACE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "batch_norm/cuda/form.h"
#include "batch_norm/cuda/task.h"
#include "core/candidate.h"
#include "cuda/device.h"
#include "cuda/graph.h"
#include "cuda/thread_state.h"
#include "cuda/trial.h"

namespace gradsmith::batch_norm {

/// MakeOwnPlan returns the plan of our own kernels, which is there for every task.
std::unique_ptr<internal::Plan> MakeOwnPlan(const cuda::DeviceInfo& device, const Task& task);

/// BatchNormSearchSpace offers all ways to compute a task on CUDA: our own kernels, then for the
/// gradient cuDNN's graph engines, then the legacy API. Nothing of the task is empty, and a channel
/// has two samples or more.
class BatchNormSearchSpace final : public internal::SearchSpace {
 public:
  /// The task's addresses are the caller's, as is `stream`. Reduced accuracy is that of data that
  /// does not hurt.
  BatchNormSearchSpace(
      const cuda::DeviceInfo& device,
      CUstream stream,
      const Task& task,
      bool allow_reduced_accuracy = false)
      : device_(device),
        stream_(stream),
        task_(task),
        allow_reduced_accuracy_(allow_reduced_accuracy) {}

  [[nodiscard]] std::string Describe() const override { return batch_norm::Describe(task_); }
  [[nodiscard]] int batches() const override;
  std::vector<internal::Candidate> List(int batch, std::vector<internal::Rejection>* rejections)
      override;
  Result<std::unique_ptr<internal::Plan>> Build(const std::string& id) override;
  Result<double> Check(internal::Plan& plan) override;
  Result<double> Time(internal::Plan& plan) override;

 private:
  Result<cuda::CudnnHandle*> Handle();
  Result<std::vector<internal::Candidate>> ListGraph();
  Result<std::vector<internal::Candidate>> ListLegacy();
  Result<const cuda::OperationGraph*> GraphOf(const Form& form);
  Result<std::unique_ptr<internal::Plan>> BuildGraph(const std::string& choice);
  Result<std::unique_ptr<internal::Plan>> BuildLegacy(bool persistent);
  Status OpenTrial();
  /// The task with the trial's memory.
  [[nodiscard]] Task TrialTask() const;
  [[nodiscard]] cuda::Exactness ExactnessOf(const TensorRef& output) const;
  /// The largest error of the outputs that the last run left.
  Result<double> CheckOutputs();
  Result<double> CheckHurtful(internal::Plan& plan);

  const cuda::DeviceInfo& device_;
  CUstream stream_;
  Task task_;
  bool allow_reduced_accuracy_;
  std::optional<cuda::OperationGraph> graph_;
  std::unique_ptr<cuda::Trial> trial_;
};

}  // namespace gradsmith::batch_norm

#endif  // GRADSMITH_BATCH_NORM_CUDA_SEARCH_SPACE_H_
