#ifndef GRADSMITH_BATCH_NORM_CUDA_LEGACY_H_
#define GRADSMITH_BATCH_NORM_CUDA_LEGACY_H_

#include <memory>

#include "batch_norm/cuda/form.h"
#include "core/plan.h"
#include "cuda/device.h"
#include "cuda/thread_state.h"
#include "gradsmith/status.h"

/// cuDNN's legacy batch normalization (cudnnBatchNormalizationForwardTraining and
/// cudnnBatchNormalizationBackward).
namespace gradsmith::batch_norm {

/// BuildLegacyPlan builds the plan of a LegacyForm in the mode SPATIAL, or SPATIAL_PERSISTENT,
/// which reads the data once but in NCHW sums in integers that may overflow.
Result<std::unique_ptr<internal::Plan>> BuildLegacyPlan(
    const cuda::DeviceInfo& device,
    cuda::CudnnHandle& handle,
    const StagedForm& form,
    bool persistent);

}  // namespace gradsmith::batch_norm

#endif  // GRADSMITH_BATCH_NORM_CUDA_LEGACY_H_
