#ifndef GRADSMITH_BATCH_NORM_CUDA_FAMILY_H_
#define GRADSMITH_BATCH_NORM_CUDA_FAMILY_H_

#include <memory>

#include "core/plan.h"
#include "cuda/device.h"
#include "cuda/implementation.h"

namespace gradsmith::batch_norm {

/// kFamily offers our own kernels, which take every task, then for the gradient cuDNN's graph
/// engines, then the legacy API.
extern const cuda::FamilyOnCuda kFamily;

/// MakeOwnPlan returns the plan of our own kernels.
std::unique_ptr<internal::Plan> MakeOwnPlan(
    const cuda::DeviceInfo& device,
    const cuda::OpTask& task);

}  // namespace gradsmith::batch_norm

#endif  // GRADSMITH_BATCH_NORM_CUDA_FAMILY_H_
