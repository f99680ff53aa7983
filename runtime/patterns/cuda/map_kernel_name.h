#ifndef GRADSMITH_PATTERNS_CUDA_MAP_KERNEL_NAME_H_
#define GRADSMITH_PATTERNS_CUDA_MAP_KERNEL_NAME_H_

#include <string>

#include "cuda/kernel_image.h"
#include "gradsmith/types.h"

namespace gradsmith::cuda {

/// MapKernelName returns the name of the kernel in the image that computes a type: that of its own
/// if there is one, else that which serves half and bf16 both, and which launches tell the format
/// (cuda/kernels/short_float.cuh).
std::string MapKernelName(const KernelImage& image, const std::string& name, DataType type);

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_MAP_KERNEL_NAME_H_
