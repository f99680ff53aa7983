#ifndef GRADSMITH_CONV_CUDA_FILTER_SLICES_H_
#define GRADSMITH_CONV_CUDA_FILTER_SLICES_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "conv/cuda/sharing_plan.h"
#include "conv/task.h"
#include "core/plan.h"
#include "cuda/module.h"
#include "cuda/tensor_ops.h"
#include "gradsmith/status.h"

/// How our own kernels compute a filter's gradient: each slice of the positions has its own sums in
/// the workspace, which are then added up, always in the same order.
namespace gradsmith::conv {

/// kMultiprocessorsOfSlices is how many multiprocessors slices are for where sums are to have the
/// same bits on every device: those of an H200.
inline constexpr int kMultiprocessorsOfSlices = 132;

/// FilterSlices is the launch of a kernel that leaves every slice's sums.
template <typename Arguments>
struct FilterSlices {
  CUkernel kernel = nullptr;
  cuda::LaunchShape shape = {};
  Arguments arguments = {};
  std::int64_t count = 0;
};

/// SumSlices adds up the slices' sums, which fill the workspace, to the filter's gradient, which is
/// dense; and so many rows of partial sums of channels where these are to go somewhere.
inline Status SumSlices(
    const Task& task,
    std::int64_t count,
    void* filter,
    const internal::Launch& launch,
    const Shared& shared,
    std::int64_t rows_of_channels) {
  CUstream stream = launch.stream;
  TensorRef sums(
      task.problem.type, filter, Dims{NumElements(DimsOf(task.problem, kW))}, Strides{1});
  sums.accumulate = task.accumulate;
  if (shared.sums == nullptr) {
    return cuda::SumPartials(stream, count, launch.workspace, sums);
  }
  return cuda::SumPartials(
      stream, {count, launch.workspace, sums},
      {rows_of_channels, shared.partial_sums, *shared.sums});
}

/// RunFilterSlices computes a task's gradient, of a filter that is dense. `more` are what the
/// kernel takes after the sums; of channels it leaves a row for each slice.
template <typename Arguments, typename... More>
Status RunFilterSlices(
    const Task& task,
    const FilterSlices<Arguments>& slices,
    const internal::Launch& launch,
    const Shared& shared,
    const More&... more) {
  CUstream stream = launch.stream;
  const void* x = launch.operands[kX];
  const void* y = launch.operands[kY];
  if (Status status = cuda::Launch(
          slices.kernel, slices.shape, stream, slices.arguments, x, y, launch.workspace, more...);
      !status.ok()) {
    return status;
  }
  return SumSlices(task, slices.count, launch.operands[kW], launch, shared, slices.count);
}

/// FilterSlicesPlan does that and no more.
template <typename Arguments>
class FilterSlicesPlan final : public internal::Plan {
 public:
  FilterSlicesPlan(const Task& task, const FilterSlices<Arguments>& slices, std::size_t workspace)
      : task_(task), slices_(slices), workspace_(workspace) {}

  [[nodiscard]] std::size_t workspace() const override { return workspace_; }

  Status Run(const internal::Launch& launch) override {
    return RunFilterSlices(task_, slices_, launch, {});
  }

 private:
  Task task_;
  FilterSlices<Arguments> slices_;
  std::size_t workspace_;
};

/// FilterAndSumsPlan does so for a kernel that also leaves sums of dY's channels, a row for each
/// slice, where there is a place for them.
template <typename Arguments>
class FilterAndSumsPlan final : public SharingPlan {
 public:
  FilterAndSumsPlan(const Task& task, const FilterSlices<Arguments>& slices, std::size_t workspace)
      : task_(task), slices_(slices), workspace_(workspace) {}

  [[nodiscard]] std::size_t workspace() const override { return workspace_; }

  [[nodiscard]] std::int64_t PartialSumRows(int operand) const override {
    return operand == kY ? slices_.count : 0;
  }

  [[nodiscard]] bool AddsUpSums() const override { return true; }

  Status RunShared(const internal::Launch& launch, const Shared& shared) override {
    return RunFilterSlices(task_, slices_, launch, shared, shared.partial_sums);
  }

 private:
  Task task_;
  FilterSlices<Arguments> slices_;
  std::size_t workspace_;
};

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_FILTER_SLICES_H_
