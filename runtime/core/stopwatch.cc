#include "core/stopwatch.h"

#include <atomic>
#include <chrono>

namespace gradsmith::internal {

namespace {

std::atomic<Clock>& CurrentClock() {
  static constinit std::atomic<Clock> clock = nullptr;
  return clock;
}

double Now() {
  const Clock clock = CurrentClock().load(std::memory_order_relaxed);
  if (clock != nullptr) {
    return clock();
  }
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

}  // namespace

void SetClock(Clock clock) {
  CurrentClock().store(clock, std::memory_order_relaxed);
}

Stopwatch::Stopwatch() : start_(Now()) {}

double Stopwatch::Seconds() const {
  return Now() - start_;
}

}  // namespace gradsmith::internal
