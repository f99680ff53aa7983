#include "support/memory.h"

#include <algorithm>
#include <new>
#include <stdexcept>

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
  return std::make_unique<HostMemory>(size);
}

std::string WhyUnavailable(Backend backend) {
  return backend == Backend::kCpu
             ? ""
             : "the test harness has no memory on " + std::string(ToString(backend));
}

}  // namespace gradsmith::support
