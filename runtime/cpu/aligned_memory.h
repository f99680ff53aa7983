#ifndef GRADSMITH_CPU_ALIGNED_MEMORY_H_
#define GRADSMITH_CPU_ALIGNED_MEMORY_H_

#include <cstddef>
#include <memory>
#include <new>

namespace gradsmith::cpu {

/// AlignedMemory owns bytes at a multiple of 256, which are left as they come. Where there are none
/// it throws std::bad_alloc, which a call returns as out of memory.
class AlignedMemory {
 public:
  AlignedMemory() = default;
  explicit AlignedMemory(std::size_t size)
      : bytes_(static_cast<std::byte*>(::operator new(size, kAlignment))), size_(size) {}

  [[nodiscard]] std::byte* data() const { return bytes_.get(); }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  static constexpr std::align_val_t kAlignment{256};

  struct Delete {
    void operator()(std::byte* bytes) const { ::operator delete(bytes, kAlignment); }
  };

  std::unique_ptr<std::byte, Delete> bytes_;
  std::size_t size_ = 0;
};

}  // namespace gradsmith::cpu

#endif  // GRADSMITH_CPU_ALIGNED_MEMORY_H_
