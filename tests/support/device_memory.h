#ifndef GRADSMITH_TESTS_SUPPORT_DEVICE_MEMORY_H_
#define GRADSMITH_TESTS_SUPPORT_DEVICE_MEMORY_H_

#include <cuda.h>

#include <cstddef>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "cuda/buffer.h"
#include "cuda/device.h"
#include "cuda/driver.h"

namespace gradsmith::support {

/// Throws what went wrong: tests have no use for a device that half works.
inline void Require(const Status& status) {
  if (!status.ok()) {
    throw std::runtime_error(status.message());
  }
}

/// DeviceStream is the first GPU, current on this thread, with a stream of its own.
class DeviceStream {
 public:
  explicit DeviceStream(const cuda::DeviceInfo& device) : device_(device), current_(device) {
    Require(cuda::ToStatus(
        cuda::Driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "making a stream"));
  }
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;
  DeviceStream(DeviceStream&&) = delete;
  DeviceStream& operator=(DeviceStream&&) = delete;
  ~DeviceStream() { cuda::Driver().cuStreamDestroy(stream_); }

  [[nodiscard]] const cuda::DeviceInfo& device() const { return device_; }
  [[nodiscard]] CUstream get() const { return stream_; }
  void Wait() const {
    Require(cuda::ToStatus(cuda::Driver().cuStreamSynchronize(stream_), "waiting for the GPU"));
  }

 private:
  const cuda::DeviceInfo& device_;
  cuda::CurrentDevice current_;
  CUstream stream_ = nullptr;
};

/// DeviceMemory is device memory that the host fills and looks into, aligned to 256 bytes.
class DeviceMemory {
 public:
  DeviceMemory(const DeviceStream& stream, std::size_t size) : stream_(stream), size_(size) {
    Result<cuda::Buffer> buffer = cuda::Buffer::Allocate(size, stream.get());
    Require(buffer.status());
    buffer_ = std::move(*buffer);
  }

  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(buffer_.data()); }

  void CopyIn(std::span<const std::byte> bytes) { Copy(buffer_.data(), bytes.data()); }
  [[nodiscard]] std::vector<std::byte> CopyOut() const {
    std::vector<std::byte> bytes(size_);
    Copy(bytes.data(), buffer_.data());
    return bytes;
  }

 private:
  void Copy(void* to, const void* from) const {
    if (size_ == 0) {
      return;
    }
    Require(cuda::ToStatus(
        cuda::Driver().cuMemcpyAsync(
            reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from), size_,
            stream_.get()),
        "copying"));
    stream_.Wait();
  }

  const DeviceStream& stream_;
  std::size_t size_;
  cuda::Buffer buffer_;
};

}  // namespace gradsmith::support

#endif  // GRADSMITH_TESTS_SUPPORT_DEVICE_MEMORY_H_
