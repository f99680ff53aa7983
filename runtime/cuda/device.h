#ifndef GRADSMITH_CUDA_DEVICE_H_
#define GRADSMITH_CUDA_DEVICE_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "gradsmith/status.h"

namespace gradsmith::cuda {

/// DeviceTraits is what the driver tells of a GPU, and on which what is quickest there depends.
struct DeviceTraits {
  std::string name;
  /// 9 and 0 for compute capability 9.0.
  int major = 0;
  int minor = 0;
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;
  /// The driver's version, as cuDriverGetVersion tells it.
  int driver = 0;
};

/// DescriptionOf returns all but the driver's version, for people.
std::string DescriptionOf(const DeviceTraits& traits);

/// FingerprintOf returns a number made of the description and the driver's version, the same in
/// every process.
std::int64_t FingerprintOf(const DeviceTraits& traits);

/// DeviceInfo is one GPU of this process: its primary context and what kernels and selection must
/// know of it. There is one for each ordinal, made at first use and kept.
class DeviceInfo {
 public:
  /// Open returns the device of an ordinal; the error says which of driver, device and support is
  /// missing.
  static Result<const DeviceInfo*> Open(int ordinal);

  [[nodiscard]] int ordinal() const { return ordinal_; }
  [[nodiscard]] CUcontext context() const { return context_; }
  [[nodiscard]] int multiprocessors() const { return multiprocessors_; }
  [[nodiscard]] std::size_t l2_bytes() const { return l2_bytes_; }
  /// Shared memory of a multiprocessor, and what of it the system takes for each block.
  [[nodiscard]] int shared_bytes() const { return shared_bytes_; }
  [[nodiscard]] int reserved_shared_bytes() const { return reserved_shared_bytes_; }
  /// 90 for compute capability 9.0.
  [[nodiscard]] int compute_capability() const { return compute_capability_; }
  /// DescriptionOf: devices with the same text and driver choose alike.
  [[nodiscard]] const std::string& description() const { return description_; }
  /// FingerprintOf.
  [[nodiscard]] std::int64_t fingerprint() const { return fingerprint_; }

 private:
  DeviceInfo() = default;
  static Result<const DeviceInfo*> OpenNew(int ordinal);

  int ordinal_ = 0;
  CUcontext context_ = nullptr;
  int multiprocessors_ = 0;
  std::size_t l2_bytes_ = 0;
  int shared_bytes_ = 0;
  int reserved_shared_bytes_ = 0;
  int compute_capability_ = 0;
  std::string description_;
  std::int64_t fingerprint_ = 0;
};

/// CurrentDevice makes a device's primary context current on this thread, and at the end of its
/// life the one that was before.
class CurrentDevice {
 public:
  explicit CurrentDevice(const DeviceInfo& device);
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  CurrentDevice(CurrentDevice&&) = delete;
  CurrentDevice& operator=(CurrentDevice&&) = delete;
  ~CurrentDevice();

 private:
  CUcontext before_ = nullptr;
  bool changed_ = false;
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_DEVICE_H_
