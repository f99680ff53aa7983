#include "gradsmith/device_buffer.h"

#include <cstddef>
#include <cstring>
#include <new>
#include <string>

#include "core/device_backend.h"
#include "core/exceptions.h"

namespace gradsmith {

namespace {

constexpr auto kAlignment = static_cast<std::align_val_t>(64);

Status CheckCopy(const Context& context, Device device, std::size_t size, std::size_t available) {
  if (!context.status().ok()) {
    return context.status();
  }
  if (context.device() != device) {
    return InvalidArgument("the buffer is on another device than the context");
  }
  if (size > available) {
    return InvalidArgument(
        std::to_string(size) + " bytes are to be copied; the buffer has " +
        std::to_string(available));
  }
  return {};
}

Result<void*> AllocateMemory(Device device, std::size_t size) {
  if (device.backend == Backend::kCuda) {
    return internal::AllocateCudaMemory(device.index, size);
  }
  // C++ libraries round the size up to the alignment, and some let it overflow.
  const bool fits = size <= kNoLimit - static_cast<std::size_t>(kAlignment);
  void* memory = fits ? operator new(size, kAlignment, std::nothrow) : nullptr;
  if (memory == nullptr) {
    return OutOfMemory("no " + std::to_string(size) + " bytes of memory");
  }
  return memory;
}

/// Copies between the device and the host.
Status Copy(const Context& context, Device device, void* to, const void* from, std::size_t size) {
  if (size == 0) {
    return {};
  }
  if (device.backend == Backend::kCuda) {
    return internal::CopyCudaMemory(context, to, from, size);
  }
  std::memcpy(to, from, size);
  return {};
}

}  // namespace

Result<DeviceBuffer> DeviceBuffer::Allocate(Device device, std::size_t size) {
  DeviceBuffer buffer;
  buffer.device_ = device;
  if (size == 0) {
    return buffer;
  }
  const Result<void*> memory =
      internal::CatchExceptions([&] { return AllocateMemory(device, size); });
  if (!memory.ok()) {
    return memory.status();
  }
  buffer.data_ = *memory;
  buffer.size_ = size;
  return buffer;
}

DeviceBuffer::~DeviceBuffer() {
  if (data_ == nullptr) {
    return;
  }
  if (device_.backend == Backend::kCpu) {
    operator delete(data_, kAlignment);
  } else {
    internal::FreeCudaMemory(device_.index, data_);
  }
}

Status DeviceBuffer::CopyFromHost(const Context& context, const void* from, std::size_t size) {
  return internal::CatchExceptions([&] {
    Status status = CheckCopy(context, device_, size, size_);
    return status.ok() ? Copy(context, device_, data_, from, size) : status;
  });
}

Status DeviceBuffer::CopyToHost(const Context& context, void* to, std::size_t size) const {
  return internal::CatchExceptions([&] {
    Status status = CheckCopy(context, device_, size, size_);
    return status.ok() ? Copy(context, device_, to, data_, size) : status;
  });
}

Status Synchronize(const Context& context) {
  return internal::CatchExceptions([&] {
    if (!context.status().ok() || context.backend() == Backend::kCpu) {
      return context.status();
    }
    return internal::SynchronizeCuda(context);
  });
}

}  // namespace gradsmith
