#ifndef GRADSMITH_DEVICE_BUFFER_H_
#define GRADSMITH_DEVICE_BUFFER_H_

#include <cstddef>
#include <utility>

#include "gradsmith/context.h"
#include "gradsmith/foreign_macros_off.h"
#include "gradsmith/status.h"
#include "gradsmith/types.h"

/// Memory on any device, for programs that do not otherwise speak to CUDA. Memory from elsewhere
/// (cudaMalloc, a framework's tensors) serves as well: the ops take addresses.
namespace gradsmith {

/// DeviceBuffer owns memory on a device, aligned to 64 bytes or more.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  /// Allocate fails where there is no such device, and where memory runs out.
  static Result<DeviceBuffer> Allocate(Device device, std::size_t size);

  DeviceBuffer(DeviceBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        device_(other.device_) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(device_, other.device_);
    return *this;
  }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer();

  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] Device device() const { return device_; }

  /// CopyFromHost fills the first `size` bytes, after what the context's stream has been given, and
  /// waits. Errors: `size` is more than there is, or the device's.
  Status CopyFromHost(const Context& context, const void* from, std::size_t size);
  /// CopyToHost reads the first `size` bytes, likewise.
  Status CopyToHost(const Context& context, void* to, std::size_t size) const;

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
  Device device_;
};

/// Synchronize waits until the context's stream has done all it was given.
Status Synchronize(const Context& context);

}  // namespace gradsmith

#include "gradsmith/foreign_macros_on.h"

#endif  // GRADSMITH_DEVICE_BUFFER_H_
