#ifndef GRADSMITH_TESTS_RUNTIME_CUDA_POOL_WINDOWS_IMAGE_H_
#define GRADSMITH_TESTS_RUNTIME_CUDA_POOL_WINDOWS_IMAGE_H_

#include "cuda/kernel_image.h"

namespace gradsmith::cuda {

/// The kernels of pooling, as the build's cuda/kernel_images.h declares them.
extern const KernelImage kImage_pool_windows;  // NOLINT(readability-identifier-naming)

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_TESTS_RUNTIME_CUDA_POOL_WINDOWS_IMAGE_H_
