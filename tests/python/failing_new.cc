// A C++ allocator that fails when it is told to, for the thread that told it. Tests preload it.

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

thread_local long countdown = 0;
thread_local bool goes_on = false;
thread_local bool has_failed = false;

bool Fails() {
  if (countdown == 0) {
    return false;
  }
  if (countdown > 1) {
    --countdown;
    return false;
  }
  countdown = goes_on ? 1 : 0;
  has_failed = true;
  return true;
}

void* Allocate(std::size_t size) {
  return Fails() ? nullptr : std::malloc(size == 0 ? 1 : size);
}

void* AllocateOrThrow(std::size_t size) {
  void* const memory = Allocate(size);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}

}  // namespace

/// The n-th allocation from now on fails and, with `and_on`, all after it; 0: none.
extern "C" void FailAllocation(long n, int and_on) {
  countdown = n;
  goes_on = and_on != 0;
  has_failed = false;
}

/// Whether an allocation has failed since then.
extern "C" int HasFailed() {
  return has_failed ? 1 : 0;
}

void* operator new(std::size_t size) {
  return AllocateOrThrow(size);
}
void* operator new[](std::size_t size) {
  return AllocateOrThrow(size);
}
void* operator new(std::size_t size, const std::nothrow_t& /*unused*/) noexcept {
  return Allocate(size);
}
void* operator new[](std::size_t size, const std::nothrow_t& /*unused*/) noexcept {
  return Allocate(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
