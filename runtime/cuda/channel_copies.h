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

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_CHANNEL_COPIES_H_
