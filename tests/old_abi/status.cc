#include "gradsmith/status.h"

#include <cstddef>
#include <cstdlib>
#include <new>

/// The message of a Status where memory is out, with std::string as _GLIBCXX_USE_CXX11_ABI=0 has
/// it: no text is kept in place, and to make one takes memory.

namespace {

bool is_memory_out = false;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

}  // namespace

// NOLINTBEGIN(cppcoreguidelines-no-malloc): what operator new is made of
void* operator new(std::size_t size) {
  void* const memory = is_memory_out ? nullptr : std::malloc(size);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
// NOLINTEND(cppcoreguidelines-no-malloc)

int main() {
  is_memory_out = true;
  const bool is_told = gradsmith::OutOfMemory().message() == "out of memory";
  const bool is_empty = gradsmith::Status().message().empty();
  is_memory_out = false;
  return is_told && is_empty ? 0 : 1;
}
