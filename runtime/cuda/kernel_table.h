#ifndef GRADSMITH_CUDA_KERNEL_TABLE_H_
#define GRADSMITH_CUDA_KERNEL_TABLE_H_

#include <cuda.h>

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>

#include "cuda/module.h"
#include "gradsmith/status.h"
#include "gradsmith/types.h"

namespace gradsmith::cuda {

/// KernelSuffix is what the names of kernels of an element type end with.
constexpr std::string_view KernelSuffix(DataType type) {
  switch (type) {
    case DataType::kFloat:
      return "f32";
    case DataType::kDouble:
      return "f64";
    case DataType::kMLFloat16:
      return "f16";
    default:
      break;
  }
  return "bf16";
}

/// KernelTable keeps kernels that were found, one for each element type and variant, so that a hot
/// call neither builds a name nor takes a lock.
template <int kVariants>
class KernelTable {
 public:
  explicit KernelTable(const KernelImage& image) : image_(image) {}

  /// Find returns the kernel `name` + "_" + "f32", "f64", "f16" or "bf16". A variant always has the
  /// same name.
  Result<CUkernel> Find(int variant, std::string_view name, DataType type) {
    std::atomic<CUkernel>& entry =
        kernels_[(variant * kFloatingTypeCount) + static_cast<int>(type)];
    if (CUkernel known = entry.load(std::memory_order_acquire); known != nullptr) {
      return known;
    }
    const Result<CUkernel> found =
        FindKernel({&image_}, (std::string(name) + "_" + std::string(KernelSuffix(type))).c_str());
    if (found.ok()) {
      entry.store(*found, std::memory_order_release);
    }
    return found;
  }

 private:
  const KernelImage& image_;
  std::array<std::atomic<CUkernel>, std::size_t{kVariants} * kFloatingTypeCount> kernels_{};
};

/// DeviceKernelTable keeps kernels that ask for shared memory at their launch, by device: how much
/// a kernel may ask for is a matter of both.
class DeviceKernelTable {
 public:
  explicit DeviceKernelTable(const KernelImage& image) : image_(image) {}

  /// Find returns the kernel of a name as KernelTable::Find does, which may ask for so many bytes.
  /// A variant always has the same name and bytes.
  Result<CUkernel>
  Find(int device, int variant, std::string_view name, DataType type, int shared_bytes) {
    const std::tuple key(device, variant, type);
    const std::scoped_lock lock(mutex_);
    if (const auto found = known_.find(key); found != known_.end()) {
      return found->second;
    }
    const std::string full_name = std::string(name) + "_" + std::string(KernelSuffix(type));
    Result<CUkernel> kernel = FindKernelOf(shared_bytes, device, {&image_}, full_name.c_str());
    if (kernel.ok()) {
      known_.emplace(key, *kernel);
    }
    return kernel;
  }

 private:
  const KernelImage& image_;
  std::mutex mutex_;
  std::map<std::tuple<int, int, DataType>, CUkernel> known_;
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_KERNEL_TABLE_H_
