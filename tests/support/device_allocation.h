#ifndef GRADSMITH_TESTS_SUPPORT_DEVICE_ALLOCATION_H_
#define GRADSMITH_TESTS_SUPPORT_DEVICE_ALLOCATION_H_

#include <cstddef>
#include <memory>
#include <span>

#include "support/memory.h"

namespace gradsmith::support {

/// AllocateOnDevice returns a block on a CUDA device, aligned to 256 bytes. Copies wait for the
/// device's default stream.
std::unique_ptr<Memory> AllocateOnDevice(int ordinal, std::size_t size);

/// CopyToDevice copies bytes to an address on a CUDA device, and CopyFromDevice from there. Both
/// wait for the device's default stream.
void CopyToDevice(int ordinal, std::byte* to, std::span<const std::byte> from);
void CopyFromDevice(int ordinal, std::span<std::byte> to, const std::byte* from);

/// FreeOnDevice returns how many bytes of a CUDA device's memory nothing holds.
std::size_t FreeOnDevice(int ordinal);

/// ForgetCallsOnDevice waits for a CUDA device and drops the CUDA graphs that this thread's calls
/// were recorded as: compute-sanitizer takes longer for every copy with each that there is.
void ForgetCallsOnDevice(int ordinal);

}  // namespace gradsmith::support

#endif  // GRADSMITH_TESTS_SUPPORT_DEVICE_ALLOCATION_H_
