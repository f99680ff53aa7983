#ifndef GRADSMITH_CUDA_KERNEL_IMAGES_H_
#define GRADSMITH_CUDA_KERNEL_IMAGES_H_

#include <span>

namespace gradsmith::cuda {

/// KernelImage is what nvcc made of one file of cuda/kernels: code for every architecture.
struct KernelImage {
  const char* name;
  const unsigned char* bytes;
};

/// KernelImages returns all images. The build writes the file that holds them.
std::span<const KernelImage> KernelImages();

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_KERNEL_IMAGES_H_
