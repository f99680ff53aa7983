#ifndef GRADSMITH_CONV_CUDA_ONE_PASS_H_
#define GRADSMITH_CONV_CUDA_ONE_PASS_H_

#include <memory>
#include <string>

#include "conv/task.h"
#include "core/plan.h"
#include "cuda/device.h"
#include "gradsmith/status.h"

/// Our own kernels that compute all gradients of a convolution in one pass over dY.
namespace gradsmith::conv {

/// OnePass is how a problem's backward data and backward filter are computed as one.
struct OnePass {
  /// The id of the candidate, empty where there is none.
  std::string id;
  /// Whether it is likely to be quicker than two passes.
  bool is_promising = false;
};

/// OnePassOf returns that.
OnePass OnePassOf(int compute_capability, const Task& data, const Task& filter);

/// MakeOnePassPlan returns a plan whose operands are those of a call (call.h) and that leaves
/// partial sums of dY.
Result<std::unique_ptr<internal::Plan>>
MakeOnePassPlan(const cuda::DeviceInfo& device, const Task& data, const Task& filter);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_ONE_PASS_H_
