#ifndef GRADSMITH_TESTS_SUPPORT_MEMORY_H_
#define GRADSMITH_TESTS_SUPPORT_MEMORY_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gradsmith/types.h"

/// Where the tensors under test live: the one thing of the harness that a backend has its own of.
namespace gradsmith::support {

/// Memory is a block on a device that the host fills and looks into. It begins on a 64-byte
/// boundary.
class Memory {
 public:
  virtual ~Memory() = default;

  /// Address returns the block's address on its device.
  [[nodiscard]] virtual std::byte* Address() = 0;
  virtual void CopyIn(std::span<const std::byte> bytes) = 0;
  [[nodiscard]] virtual std::vector<std::byte> CopyOut() const = 0;
};

/// Allocate returns a block on the device. There is one: WhyUnavailable is empty.
std::unique_ptr<Memory> Allocate(Device device, std::size_t size);

/// WhyUnavailable says why this program cannot run tests on the backend; empty where it can.
std::string WhyUnavailable(Backend backend);

}  // namespace gradsmith::support

#endif  // GRADSMITH_TESTS_SUPPORT_MEMORY_H_
