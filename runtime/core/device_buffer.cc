#include "gradsmith/device_buffer.h"

#include <cstddef>
#include <cstring>
#include <new>
#include <string>

#include "core/device_backend.h"

namespace gradsmith {

namespace {

constexpr auto kAlignment = static_cast<std::align_val_t>(64);

Status CheckCopy(const Context& context, Device device, std::size_t size, std::size_t available) {
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

}  // namespace

Result<DeviceBuffer> DeviceBuffer::Allocate(Device device, std::size_t size) {
  DeviceBuffer buffer;
  buffer.device_ = device;
  if (size == 0) {
    return buffer;
  }
  if (device.backend == Backend::kCpu) {
    // C++ libraries round the size up to the alignment, and some let it overflow.
    const bool fits = size <= kNoLimit - static_cast<std::size_t>(kAlignment);
    buffer.data_ = fits ? operator new(size, kAlignment, std::nothrow) : nullptr;
    if (buffer.data_ == nullptr) {
      return OutOfMemory("no " + std::to_string(size) + " bytes of memory");
    }
  } else {
    const Result<void*> address = internal::AllocateCudaMemory(device.index, size);
    if (!address.ok()) {
      return address.status();
    }
    buffer.data_ = *address;
  }
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
  Status status = CheckCopy(context, device_, size, size_);
  if (!status.ok() || size == 0) {
    return status;
  }
  if (device_.backend == Backend::kCuda) {
    return internal::CopyCudaMemory(context, data_, from, size);
  }
  std::memcpy(data_, from, size);
  return {};
}

Status DeviceBuffer::CopyToHost(const Context& context, void* to, std::size_t size) const {
  Status status = CheckCopy(context, device_, size, size_);
  if (!status.ok() || size == 0) {
    return status;
  }
  if (device_.backend == Backend::kCuda) {
    return internal::CopyCudaMemory(context, to, data_, size);
  }
  std::memcpy(to, data_, size);
  return {};
}

Status Synchronize(const Context& context) {
  return context.backend() == Backend::kCpu ? Status() : internal::SynchronizeCuda(context);
}

}  // namespace gradsmith
