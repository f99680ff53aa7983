#include "support/device_allocation.h"

#include <algorithm>
#include <utility>

#include "cuda/buffer.h"
#include "cuda/device.h"
#include "cuda/driver.h"
#include "cuda/thread_state.h"
#include "support/device_memory.h"

namespace gradsmith::support {

namespace {

using cuda::Driver;

const cuda::DeviceInfo& Open(int ordinal) {
  const Result<const cuda::DeviceInfo*> device = cuda::DeviceInfo::Open(ordinal);
  Require(device.status());
  return **device;
}

void Copy(const cuda::DeviceInfo& device, void* to, const void* from, std::size_t size) {
  if (size == 0) {
    return;
  }
  const cuda::CurrentDevice current(device);
  Require(cuda::ToStatus(
      Driver().cuMemcpyAsync(
          reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from), size, nullptr),
      "copying"));
  Require(cuda::ToStatus(Driver().cuStreamSynchronize(nullptr), "waiting for the device"));
}

class DeviceBlock final : public Memory {
 public:
  DeviceBlock(const cuda::DeviceInfo& device, std::size_t size) : device_(device), size_(size) {
    const cuda::CurrentDevice current(device_);
    // Never empty, so that every block has an address of its own.
    Result<cuda::Buffer> buffer = cuda::Buffer::Allocate(std::max<std::size_t>(size, 1), nullptr);
    Require(buffer.status());
    buffer_ = std::move(*buffer);
  }
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock& operator=(const DeviceBlock&) = delete;
  DeviceBlock(DeviceBlock&&) = delete;
  DeviceBlock& operator=(DeviceBlock&&) = delete;
  ~DeviceBlock() override {
    const cuda::CurrentDevice current(device_);
    buffer_ = cuda::Buffer();
  }

  [[nodiscard]] std::byte* Address() override { return static_cast<std::byte*>(buffer_.data()); }

  void CopyIn(std::span<const std::byte> bytes) override {
    Copy(device_, buffer_.data(), bytes.data(), bytes.size());
  }

  [[nodiscard]] std::vector<std::byte> CopyOut() const override {
    std::vector<std::byte> bytes(size_);
    Copy(device_, bytes.data(), buffer_.data(), size_);
    return bytes;
  }

 private:
  const cuda::DeviceInfo& device_;
  std::size_t size_;
  cuda::Buffer buffer_;
};

}  // namespace

std::unique_ptr<Memory> AllocateOnDevice(int ordinal, std::size_t size) {
  return std::make_unique<DeviceBlock>(Open(ordinal), size);
}

void CopyToDevice(int ordinal, std::byte* to, std::span<const std::byte> from) {
  Copy(Open(ordinal), to, from.data(), from.size());
}

void CopyFromDevice(int ordinal, std::span<std::byte> to, const std::byte* from) {
  Copy(Open(ordinal), to.data(), from, to.size());
}

std::size_t FreeOnDevice(int ordinal) {
  const cuda::CurrentDevice current(Open(ordinal));
  std::size_t free = 0;
  std::size_t total = 0;
  Require(cuda::ToStatus(Driver().cuMemGetInfo(&free, &total), "asking for free memory"));
  return free;
}

void ForgetCallsOnDevice(int ordinal) {
  const cuda::DeviceInfo& device = Open(ordinal);
  const cuda::CurrentDevice current(device);
  Require(cuda::ToStatus(Driver().cuStreamSynchronize(nullptr), "waiting for the device"));
  cuda::ThreadState::OfThisThread(device).call_graphs().Clear();
}

}  // namespace gradsmith::support
