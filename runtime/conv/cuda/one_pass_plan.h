#ifndef GRADSMITH_CONV_CUDA_ONE_PASS_PLAN_H_
#define GRADSMITH_CONV_CUDA_ONE_PASS_PLAN_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "conv/cuda/call.h"
#include "conv/cuda/filter_slices.h"
#include "conv/task.h"
#include "core/plan.h"
#include "cuda/module.h"
#include "gradsmith/status.h"

namespace gradsmith::conv {

/// OnePassPlan launches a kernel that takes its arguments, X, the filter, dY, dX, whether that is
/// added to, and where each slice leaves its sums of dW and each row those of dY's channels; then
/// what adds these up. Its operands are those of a call (call.h).
template <typename Arguments>
class OnePassPlan final : public SharingPlan {
 public:
  OnePassPlan(
      const Task& data,
      const Task& filter,
      const FilterSlices<Arguments>& slices,
      std::int64_t sum_rows,
      std::size_t workspace)
      : data_(data), filter_(filter), slices_(slices), sum_rows_(sum_rows), workspace_(workspace) {}

  [[nodiscard]] std::size_t workspace() const override { return workspace_; }

  [[nodiscard]] std::int64_t PartialSumRows(int operand) const override {
    return operand == kY ? sum_rows_ : 0;
  }

  [[nodiscard]] bool AddsUpSums() const override { return true; }

  Status RunShared(const internal::Launch& launch, const Shared& shared) override {
    CUstream stream = launch.stream;
    const void* x = launch.operands[kInputs + kX];
    const void* w = launch.operands[kInputs + kW];
    const void* y = launch.operands[kInputs + kY];
    if (Status status = cuda::Launch(
            slices_.kernel, slices_.shape, stream, slices_.arguments, x, w, y,
            launch.operands[kResults + kX], data_.accumulate, launch.workspace,
            shared.partial_sums);
        !status.ok()) {
      return status;
    }
    return SumSlices(
        filter_, slices_.count, launch.operands[kResults + kW], launch, shared, sum_rows_);
  }

 private:
  Task data_;
  Task filter_;
  FilterSlices<Arguments> slices_;
  std::int64_t sum_rows_;
  std::size_t workspace_;
};

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_ONE_PASS_PLAN_H_
