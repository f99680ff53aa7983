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
    Copy(Pointer(), reinterpret_cast<CUdeviceptr>(bytes.data()), bytes.size());
  }

  [[nodiscard]] std::vector<std::byte> CopyOut() const override {
    std::vector<std::byte> bytes(size_);
    Copy(reinterpret_cast<CUdeviceptr>(bytes.data()), Pointer(), size_);
    return bytes;
  }

 private:
  [[nodiscard]] CUdeviceptr Pointer() const {
    return reinterpret_cast<CUdeviceptr>(buffer_.data());
  }

  void Copy(CUdeviceptr to, CUdeviceptr from, std::size_t size) const {
    if (size == 0) {
      return;
    }
    const cuda::CurrentDevice current(device_);
    Require(cuda::ToStatus(Driver().cuMemcpyAsync(to, from, size, nullptr), "copying"));
    Require(cuda::ToStatus(Driver().cuStreamSynchronize(nullptr), "waiting for the device"));
  }

  const cuda::DeviceInfo& device_;
  std::size_t size_;
  cuda::Buffer buffer_;
};

}  // namespace

std::unique_ptr<Memory> AllocateOnDevice(int ordinal, std::size_t size) {
  const Result<const cuda::DeviceInfo*> device = cuda::DeviceInfo::Open(ordinal);
  Require(device.status());
  return std::make_unique<DeviceBlock>(**device, size);
}

void ForgetCallsOnDevice(int ordinal) {
  const Result<const cuda::DeviceInfo*> device = cuda::DeviceInfo::Open(ordinal);
  Require(device.status());
  const cuda::CurrentDevice current(**device);
  Require(cuda::ToStatus(Driver().cuStreamSynchronize(nullptr), "waiting for the device"));
  cuda::ThreadState::OfThisThread(**device).call_graphs().Clear();
}

}  // namespace gradsmith::support
