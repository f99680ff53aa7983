#include "core/origin_process.h"

#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace gradsmith::internal {

std::atomic<std::uint64_t> OriginProcess::generation_ = 0;

std::uint64_t OriginProcess::CountFromHere() {
  // dlclose of the shared object that the library is part of takes the handler back.
  static const int registered = pthread_atfork(nullptr, nullptr, &CountFork);
  static_cast<void>(registered);
  return generation_.load(std::memory_order_relaxed);
}

void OriginProcess::CountFork() {
  generation_.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace gradsmith::internal
