#include "support/memory.h"

#include <algorithm>
#include <new>
#include <stdexcept>

#include "gradsmith/context.h"
#include "support/device_allocation.h"

namespace gradsmith::support {

namespace {

class HostMemory final : public Memory {
 public:
  explicit HostMemory(std::size_t size)
      : size_(size), bytes_(new(std::align_val_t(kAlignment)) std::byte[size]) {}

  [[nodiscard]] std::byte* Address() override { return bytes_.get(); }
  void CopyIn(std::span<const std::byte> bytes) override {
    std::copy(bytes.begin(), bytes.end(), bytes_.get());
  }
  [[nodiscard]] std::vector<std::byte> CopyOut() const override {
    return {bytes_.get(), bytes_.get() + size_};
  }

 private:
  static constexpr std::size_t kAlignment = 64;

  struct Free {
    void operator()(std::byte* bytes) const {
      operator delete[](bytes, std::align_val_t(kAlignment));
    }
  };

  std::size_t size_;
  std::unique_ptr<std::byte[], Free> bytes_;
};

}  // namespace

std::unique_ptr<Memory> Allocate(Device device, std::size_t size) {
  if (const std::string why = WhyUnavailable(device.backend); !why.empty()) {
    throw std::invalid_argument(why);
  }
  if (device.backend == Backend::kCuda) {
    return AllocateOnDevice(device.index, size);
  }
  return std::make_unique<HostMemory>(size);
}

std::string WhyUnavailable(Backend backend) {
  static const std::string why_no_cuda = CheckDevice({Backend::kCuda, 0}).message();
  return backend == Backend::kCpu ? "" : why_no_cuda;
}

}  // namespace gradsmith::support
