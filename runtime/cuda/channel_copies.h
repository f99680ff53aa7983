#ifndef GRADSMITH_CUDA_CHANNEL_COPIES_H_
#define GRADSMITH_CUDA_CHANNEL_COPIES_H_

#include <cuda.h>

#include "cuda/device.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

namespace gradsmith::cuda {

/// CopyChannels copies a tensor (N, C, D...) to one of the same type and dims but for the number of
/// channels: those that only `from` has are left out, those that only `to` has become zero. Strides
/// are any; it goes at about copy speed between dense layouts, channels first or last.
Status CopyChannels(
    const DeviceInfo& device,
    CUstream stream,
    const ConstTensorRef& from,
    const TensorRef& to);

/// RepeatChannels copies a tensor (N, C, D...) to one of the same type with a multiple of its
/// channels, (N, C * times, D...): channel c to those from c * times on. It goes at about copy
/// speed where both are dense in the same layout.
Status RepeatChannels(
    const DeviceInfo& device,
    CUstream stream,
    const ConstTensorRef& from,
    const TensorRef& to);

/// SumRepeatedChannels is its gradient: each channel of `to` (N, C, D...) becomes the sum of its
/// `times` channels in `from` (N, C * times, D...), and where `to.accumulate` of what is there as
/// well. Half and bf16 are summed in float and rounded once.
Status SumRepeatedChannels(
    const DeviceInfo& device,
    CUstream stream,
    const ConstTensorRef& from,
    const TensorRef& to);

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_CHANNEL_COPIES_H_
