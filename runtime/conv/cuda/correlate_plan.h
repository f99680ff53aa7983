#ifndef GRADSMITH_CONV_CUDA_CORRELATE_PLAN_H_
#define GRADSMITH_CONV_CUDA_CORRELATE_PLAN_H_

#include <cuda.h>

#include <cstddef>

#include "conv/task.h"
#include "core/plan.h"
#include "cuda/module.h"
#include "gradsmith/status.h"

namespace gradsmith::conv {

/// CorrelatePlan launches a kernel for forward or backward data that takes its arguments, what the
/// filter is multiplied with, the filter, the result, and whether that is added to. A launch
/// without blocks is none.
template <typename Arguments>
class CorrelatePlan final : public internal::Plan {
 public:
  CorrelatePlan(
      const Task& task,
      const Arguments& arguments,
      const cuda::LaunchShape& shape,
      CUkernel kernel)
      : arguments_(arguments),
        shape_(shape),
        kernel_(kernel),
        accumulate_(task.accumulate),
        result_(ResultOf(task.primitive)) {}

  [[nodiscard]] std::size_t workspace() const override { return 0; }

  Status Run(const internal::Launch& launch) override {
    if (shape_.blocks_y == 0) {
      return {};
    }
    const void* source = launch.operands[result_ == kX ? kY : kX];
    const void* filter = launch.operands[kW];
    return cuda::Launch(
        kernel_, shape_, launch.stream, arguments_, source, filter, launch.operands[result_],
        accumulate_);
  }

 private:
  Arguments arguments_;
  cuda::LaunchShape shape_;
  CUkernel kernel_;
  bool accumulate_;
  Operand result_;
};

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_CORRELATE_PLAN_H_
