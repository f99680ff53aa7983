#ifndef GRADSMITH_CUDA_BUFFER_H_
#define GRADSMITH_CUDA_BUFFER_H_

#include <cuda.h>

#include <cstddef>
#include <utility>

#include "gradsmith/status.h"

namespace gradsmith::cuda {

/// Buffer owns device memory of the current device, aligned to 256 bytes. It is allocated and freed
/// in a stream's order, so neither waits.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept
      : address_(std::exchange(other.address_, 0)),
        size_(std::exchange(other.size_, 0)),
        stream_(other.stream_) {}
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  static Result<Buffer> Allocate(std::size_t size, CUstream stream);

  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver gives addresses as integers
  [[nodiscard]] void* data() const { return reinterpret_cast<void*>(address_); }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  CUdeviceptr address_ = 0;
  std::size_t size_ = 0;
  CUstream stream_ = nullptr;
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_BUFFER_H_
