#ifndef GRADSMITH_CUDA_KERNEL_IMAGE_H_
#define GRADSMITH_CUDA_KERNEL_IMAGE_H_

namespace gradsmith::cuda {

/// KernelImage is what nvcc made of one .cu file: code for every architecture. The build declares
/// `kImage_<stem>` for each file in cuda/kernel_images.h; stems are unique. Each is a symbol of its
/// own, so that a program keeps those of the operators that it calls.
struct KernelImage {
  const char* name;
  const unsigned char* bytes;
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_KERNEL_IMAGE_H_
