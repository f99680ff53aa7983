#include "support/allocations.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GRADSMITH_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define GRADSMITH_SANITIZED 1
#endif
#endif

namespace {

constexpr std::size_t kLeastAlignment = alignof(std::max_align_t);

// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables): what replaced functions share
std::atomic<bool> is_watched = false;
std::atomic<std::int64_t> counted = 0;
std::atomic<std::int64_t> first_to_fail = 0;
std::atomic<std::int64_t> last_to_fail = 0;
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

/// Counts an allocation and says whether it is to be there.
bool MayAllocate() {
  if (!is_watched) {
    return true;
  }
  const std::int64_t number = counted++;
  return number < first_to_fail || number > last_to_fail;
}

#ifdef GRADSMITH_SANITIZED

void* TakeMemory(std::size_t size, std::size_t alignment) {
  void* memory = nullptr;
  return posix_memalign(&memory, alignment, size) == 0 ? memory : nullptr;
}

#else

/// glibc's own functions, of which malloc and its kin are other names.
extern "C" {
void* __libc_malloc(std::size_t size);                           // NOLINT(*-reserved-identifier)
void* __libc_calloc(std::size_t count, std::size_t size);        // NOLINT(*-reserved-identifier)
void* __libc_realloc(void* memory, std::size_t size);            // NOLINT(*-reserved-identifier)
void* __libc_memalign(std::size_t alignment, std::size_t size);  // NOLINT(*-reserved-identifier)
}

void* TakeMemory(std::size_t size, std::size_t alignment) {
  return alignment <= kLeastAlignment ? __libc_malloc(size) : __libc_memalign(alignment, size);
}

#endif

void* Allocate(std::size_t size, std::size_t alignment = kLeastAlignment) noexcept {
  return MayAllocate() ? TakeMemory(size == 0 ? 1 : size, alignment) : nullptr;
}

void* AllocateOrThrow(std::size_t size, std::size_t alignment = kLeastAlignment) {
  if (void* memory = Allocate(size, alignment)) {
    return memory;
  }
  throw std::bad_alloc();
}

}  // namespace

#ifndef GRADSMITH_SANITIZED

// For whoever does not go through operator new: C libraries, and the start of a thread.
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the C library's are reserved
extern "C" {
void* malloc(std::size_t size) {
  return MayAllocate() ? __libc_malloc(size) : nullptr;
}
void* calloc(std::size_t count, std::size_t size) {
  return MayAllocate() ? __libc_calloc(count, size) : nullptr;
}
void* realloc(void* memory, std::size_t size) {
  return MayAllocate() ? __libc_realloc(memory, size) : nullptr;
}
void* memalign(std::size_t alignment, std::size_t size) {
  return MayAllocate() ? __libc_memalign(alignment, size) : nullptr;
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return memalign(alignment, size);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  *memory = memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
}
// NOLINTEND(readability-inconsistent-declaration-parameter-name)

#endif

// All forms: memory of one that was not replaced could end in one that was. Not inlined: the
// compiler would take the pair of new and free for a mistake.
// NOLINTBEGIN(misc-new-delete-overloads, cppcoreguidelines-no-malloc)
[[gnu::noinline]] void* operator new(std::size_t size) {
  return AllocateOrThrow(size);
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t& /*unused*/) noexcept {
  return Allocate(size);
}
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  return AllocateOrThrow(size, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void* operator new(
    std::size_t size,
    std::align_val_t alignment,
    const std::nothrow_t& /*unused*/) noexcept {
  return Allocate(size, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void* operator new[](std::size_t size) {
  return AllocateOrThrow(size);
}
[[gnu::noinline]] void* operator new[](
    std::size_t size,
    const std::nothrow_t& /*unused*/) noexcept {
  return Allocate(size);
}
[[gnu::noinline]] void* operator new[](std::size_t size, std::align_val_t alignment) {
  return AllocateOrThrow(size, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void* operator new[](
    std::size_t size,
    std::align_val_t alignment,
    const std::nothrow_t& /*unused*/) noexcept {
  return Allocate(size, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void
operator delete(void* memory, std::size_t /*size*/, std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t& /*unused*/) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(
    void* memory,
    std::align_val_t /*alignment*/,
    const std::nothrow_t& /*unused*/) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void
operator delete[](void* memory, std::size_t /*size*/, std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, const std::nothrow_t& /*unused*/) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete[](
    void* memory,
    std::align_val_t /*alignment*/,
    const std::nothrow_t& /*unused*/) noexcept {
  std::free(memory);
}
// NOLINTEND(misc-new-delete-overloads, cppcoreguidelines-no-malloc)

namespace gradsmith::support {

Allocations::Allocations(std::int64_t first, std::int64_t last) : first_(first) {
  counted = 0;
  first_to_fail = first;
  last_to_fail = last;
  is_watched = true;
}

Allocations::~Allocations() {
  is_watched = false;
}

std::int64_t Allocations::count() const {
  return counted;
}

bool Allocations::failed() const {
  return counted > first_;
}

}  // namespace gradsmith::support
