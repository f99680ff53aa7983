#ifndef GRADSMITH_BATCH_NORM_CUDA_FINISH_H_
#define GRADSMITH_BATCH_NORM_CUDA_FINISH_H_

#include "batch_norm/cuda/arguments.h"
#include "batch_norm/cuda/own_plan.h"
#include "batch_norm/kernels.h"

/// What our own kernels are given beside the large tensors: a channel's numbers, and what its sums
/// are turned into.
namespace gradsmith::batch_norm {

/// IsPresent returns whether a tensor is given.
template <typename Ref>
bool IsPresent(const Ref* tensor) {
  return tensor != nullptr && tensor->present;
}

/// MakeForwardFinish returns what a forward call finishes with.
own::ForwardFinish MakeForwardFinish(
    const Attributes& attributes,
    const BatchNormalization::Inputs& inputs,
    const BatchNormalization::Outputs& outputs,
    const own::Plan& plan);

/// MakeBackwardFinish returns what a gradient finishes with; `products` says whether dX or dScale
/// is wanted, or ReLU follows.
own::BackwardFinish MakeBackwardFinish(
    const BatchNormalizationReluGrad::Inputs& inputs,
    const BatchNormalizationGrad::Outputs& outputs,
    const own::Plan& plan,
    bool products);

}  // namespace gradsmith::batch_norm

#endif  // GRADSMITH_BATCH_NORM_CUDA_FINISH_H_
