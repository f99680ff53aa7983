#include "support/device_allocation.h"

#include <stdexcept>

namespace gradsmith::support {

std::unique_ptr<Memory> AllocateOnDevice(int /*ordinal*/, std::size_t /*size*/) {
  throw std::logic_error("built without CUDA");
}

void ForgetCallsOnDevice(int /*ordinal*/) {
  throw std::logic_error("built without CUDA");
}

}  // namespace gradsmith::support
