#ifndef GRADSMITH_BATCH_NORM_CUDA_HELD_H_
#define GRADSMITH_BATCH_NORM_CUDA_HELD_H_

#include <cuda.h>

#include <cstdint>
#include <optional>

#include "batch_norm/cuda/arguments.h"
#include "batch_norm/cuda/own_plan.h"
#include "batch_norm/cuda/policy.h"
#include "batch_norm/kernels.h"
#include "cuda/device.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

/// The gradient of batch normalization where a channel has so few samples that a block holds them
/// in shared memory, 64 KiB of dY and X, and lie along two dims at most: one launch, in which each
/// element is loaded once and no block waits for another. Same inputs give the same bits. Nothing
/// allocates or waits.
namespace gradsmith::batch_norm {

/// HeldShape is how a gradient's elements are shared out. It depends on types, dims and strides
/// alone, and so does the order of sums.
struct HeldShape {
  own::Plan plan;
  own::HeldWalk walk{};
  int threads = 0;
  int shared_bytes = 0;
};

/// HeldShapeOf returns none where a channel has too many samples, or fewer than two, or samples
/// along more than two dims, or where there are so many elements that other kernels are known to be
/// quicker. `dX` is null where it is not asked for.
std::optional<HeldShape> HeldShapeOf(
    const own::Policy& policy,
    const ConstTensorRef& dY,
    const ConstTensorRef& X,
    const ConstTensorRef* dX);

/// HeldBackward is BatchNormalizationGrad on the current device, or where B is given
/// BatchNormalizationReluGrad; kUnsupported where there is no shape for it. Outputs with
/// `accumulate` are added to.
Status HeldBackward(
    const cuda::DeviceInfo& device,
    CUstream stream,
    const BatchNormalizationReluGrad::Inputs& inputs,
    const BatchNormalizationGrad::Outputs& outputs);

}  // namespace gradsmith::batch_norm

#endif  // GRADSMITH_BATCH_NORM_CUDA_HELD_H_
