#include "support/device_allocation.h"

#include <stdexcept>

namespace gradsmith::support {

std::unique_ptr<Memory> AllocateOnDevice(int /*ordinal*/, std::size_t /*size*/) {
  throw std::logic_error("built without CUDA");
}

void CopyToDevice(int /*ordinal*/, std::byte* /*to*/, std::span<const std::byte> /*from*/) {
  throw std::logic_error("built without CUDA");
}

void CopyFromDevice(int /*ordinal*/, std::span<std::byte> /*to*/, const std::byte* /*from*/) {
  throw std::logic_error("built without CUDA");
}

std::size_t FreeOnDevice(int /*ordinal*/) {
  throw std::logic_error("built without CUDA");
}

void ForgetCallsOnDevice(int /*ordinal*/) {
  throw std::logic_error("built without CUDA");
}

}  // namespace gradsmith::support
