#ifndef GRADSMITH_CUDA_MODULE_H_
#define GRADSMITH_CUDA_MODULE_H_

#include <cuda.h>

#include <array>
#include <cstddef>
#include <initializer_list>

#include "cuda/kernel_image.h"
#include "gradsmith/status.h"

namespace gradsmith::cuda {

/// FindKernel returns one of our own kernels by its extern "C" name, from the first of the images
/// (cuda/kernels/*.cu) that has it. Looking up takes a lock: keep the result, it stays good on
/// every device.
Result<CUkernel> FindKernel(std::initializer_list<const KernelImage*> images, const char* name);

/// FindKernelOf is FindKernel for a kernel that takes up to so much dynamic shared memory. That is
/// kept with the kernel, for all of its launches on a device: the most that any of them takes.
Result<CUkernel> FindKernelOf(
    int most_shared_bytes,
    int device,
    std::initializer_list<const KernelImage*> images,
    const char* name);

/// Grid is the shape of a launch: blocks, threads of a block, and dynamic shared memory in bytes.
struct LaunchShape {
  unsigned blocks_x = 1;
  unsigned blocks_y = 1;
  unsigned blocks_z = 1;
  unsigned threads = 1;
  unsigned shared_bytes = 0;
  /// Whether blocks may wait for each other: the error is kUnsupported where the GPU does not hold
  /// all of them at once.
  bool cooperative = false;
};

/// Blocks along a grid's second and third axis, at most.
inline constexpr unsigned kMostBlocksYz = 65535;

/// LaunchAny launches a kernel on the current device; `arguments` point at the kernel's parameters.
Status LaunchAny(CUkernel kernel, const LaunchShape& shape, CUstream stream, void** arguments);

/// Launch launches a kernel. The arguments must have exactly the types of its parameters.
template <typename... Arguments>
Status
Launch(CUkernel kernel, const LaunchShape& shape, CUstream stream, const Arguments&... arguments) {
  std::array<void*, sizeof...(Arguments)> pointers = {
      const_cast<void*>(static_cast<const void*>(&arguments))...};
  return LaunchAny(kernel, shape, stream, pointers.data());
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_MODULE_H_
