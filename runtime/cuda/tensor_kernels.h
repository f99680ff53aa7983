#ifndef GRADSMITH_CUDA_TENSOR_KERNELS_H_
#define GRADSMITH_CUDA_TENSOR_KERNELS_H_

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cuda/device.h"
#include "cuda/kernel_image.h"
#include "cuda/kernel_table.h"
#include "cuda/module.h"
#include "gradsmith/status.h"
#include "gradsmith/types.h"

/// How kernels over whole tensors are found and launched.
namespace gradsmith::cuda {

/// kMostBlocksX is how many blocks a grid may have along its first axis.
inline constexpr std::int64_t kMostBlocksX = 0x7FFFFFFF;

/// KernelSlot remembers a kernel that was looked up; zero-initialised, so that a table of them is
/// no static initialiser.
using KernelSlot = std::atomic<CUkernel>;
/// KernelsOfTypes are a kernel's slots by the type of the elements.
using KernelsOfTypes = std::array<KernelSlot, kFloatingTypeCount>;

/// KernelsOfSizes are a kernel's slots for elements of 2, 4, 8 and 16 bytes.
using KernelsOfSizes = std::array<KernelSlot, 4>;

/// FindOnce returns the image's kernel gradsmith_<family><suffix>, which it looks for at the first
/// call. Who calls it names one image, so that a selection of operators has no other in it.
template <typename Suffix>
Result<CUkernel> FindOnce(
    const KernelImage& image,
    KernelSlot* slot,
    std::string_view family,
    const Suffix& suffix) {
  if (CUkernel kernel = slot->load(std::memory_order_relaxed); kernel != nullptr) {
    return kernel;
  }
  const std::string name = "gradsmith_" + std::string(family) + suffix();
  Result<CUkernel> kernel = FindKernel({&image}, name.c_str());
  if (kernel.ok()) {
    slot->store(*kernel, std::memory_order_relaxed);
  }
  return kernel;
}

/// Suffix returns what ends the names of a type's kernels.
std::string Suffix(DataType type);

/// FindOfType is FindOnce for the kernel of a type.
Result<CUkernel>
FindOfType(const KernelImage& image, KernelsOfTypes* slots, std::string_view family, DataType type);

/// FindOfSize is FindOnce for the kernel of elements of so many bytes.
Result<CUkernel> FindOfSize(
    const KernelImage& image,
    KernelsOfSizes* slots,
    std::string_view family,
    std::size_t size);

/// LaunchFound launches a kernel, or returns the error of looking for it.
template <typename... Arguments>
Status LaunchFound(
    const Result<CUkernel>& kernel,
    const LaunchShape& shape,
    CUstream stream,
    const Arguments&... arguments) {
  return kernel.ok() ? Launch(*kernel, shape, stream, arguments...) : kernel.status();
}

/// AddressOf returns an address as the driver takes it.
inline CUdeviceptr AddressOf(const void* data) {
  return reinterpret_cast<CUdeviceptr>(data);
}

/// ElementShape returns a launch over `count` items, kElementBatch of them for each thread.
LaunchShape ElementShape(const DeviceInfo& device, std::int64_t count);

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_TENSOR_KERNELS_H_
