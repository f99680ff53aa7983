#ifndef GRADSMITH_BATCH_NORM_CUDA_OWN_H_
#define GRADSMITH_BATCH_NORM_CUDA_OWN_H_

#include <cuda.h>

#include <cstddef>

#include "batch_norm/activation.h"
#include "batch_norm/kernels.h"
#include "cuda/device.h"
#include "gradsmith/status.h"

/// Our own batch normalization: every type mix of the schema, rank 2 to 5, any strides, any number
/// of channels. Same inputs give the same bits. Nothing allocates or waits.
namespace gradsmith::batch_norm {

/// ForwardWorkspace returns the bytes that Forward needs for partial statistics.
std::size_t ForwardWorkspace(const cuda::DeviceInfo& device, const ConstTensorRef& X);

/// Forward is BatchNormalization, and what follows it, on the current device.
Status Forward(
    const cuda::DeviceInfo& device,
    CUstream stream,
    Activation activation,
    const Attributes& attributes,
    const BatchNormalization::Inputs& inputs,
    const BatchNormalization::Outputs& outputs,
    void* workspace);

/// BackwardWorkspace returns the bytes that Backward needs for partial sums.
std::size_t BackwardWorkspace(const cuda::DeviceInfo& device, const ConstTensorRef& X);

/// Backward is BatchNormalizationGrad on the current device, or where B is given
/// BatchNormalizationReluGrad. Outputs with `accumulate` are added to.
Status Backward(
    const cuda::DeviceInfo& device,
    CUstream stream,
    const BatchNormalizationReluGrad::Inputs& inputs,
    const BatchNormalizationGrad::Outputs& outputs,
    void* workspace);

}  // namespace gradsmith::batch_norm

#endif  // GRADSMITH_BATCH_NORM_CUDA_OWN_H_
