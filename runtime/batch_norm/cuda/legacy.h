#ifndef GRADSMITH_BATCH_NORM_CUDA_LEGACY_H_
#define GRADSMITH_BATCH_NORM_CUDA_LEGACY_H_

#include <cstddef>
#include <memory>

#include "batch_norm/cuda/form.h"
#include "core/plan.h"
#include "cuda/device.h"
#include "cuda/thread_state.h"
#include "gradsmith/status.h"

/// cuDNN's legacy batch normalization: cudnnBatchNormalizationForwardTraining and
/// cudnnBatchNormalizationBackward, and for channels last in the mode SPATIAL_PERSISTENT the
/// functions of the same names that end in Ex, which alone have kernels made for that layout.
namespace gradsmith::batch_norm {

/// LegacyWorkspace returns the bytes of workspace of a LegacyForm's plan, staged operands not
/// counted. The error says what cuDNN does not take.
Result<std::size_t>
LegacyWorkspace(cuda::CudnnHandle& handle, const StagedForm& form, bool persistent);

/// BuildLegacyPlan builds the plan of a LegacyForm in the mode SPATIAL, or SPATIAL_PERSISTENT,
/// which reads the data once but in NCHW sums in integers that may overflow.
Result<std::unique_ptr<internal::Plan>> BuildLegacyPlan(
    const cuda::DeviceInfo& device,
    cuda::CudnnHandle& handle,
    const StagedForm& form,
    bool persistent);

}  // namespace gradsmith::batch_norm

#endif  // GRADSMITH_BATCH_NORM_CUDA_LEGACY_H_
