#include "cuda/buffer.h"

#include <cstddef>
#include <string>
#include <utility>

#include "cuda/driver.h"

namespace gradsmith::cuda {

Result<Buffer> Buffer::Allocate(std::size_t size, CUstream stream) {
  Buffer buffer;
  if (size == 0) {
    return buffer;
  }
  if (Status status = ToStatus(
          Driver().cuMemAllocAsync(&buffer.address_, size, stream),
          "allocating " + std::to_string(size) + " bytes of device memory");
      !status.ok()) {
    return status;
  }
  buffer.size_ = size;
  buffer.stream_ = stream;
  return buffer;
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(address_, other.address_);
  std::swap(size_, other.size_);
  std::swap(stream_, other.stream_);
  return *this;
}

Buffer::~Buffer() {
  if (address_ != 0) {
    Driver().cuMemFreeAsync(address_, stream_);
  }
}

}  // namespace gradsmith::cuda
