#ifndef GRADSMITH_TESTS_RUNTIME_TEST_CLOCK_H_
#define GRADSMITH_TESTS_RUNTIME_TEST_CLOCK_H_

#include <atomic>

#include "core/stopwatch.h"

namespace gradsmith {

/// TestClock stands still but for what a test adds: while there is one, every Stopwatch goes by it.
class TestClock {
 public:
  TestClock() {
    seconds_ = 0;
    internal::SetClock([] { return seconds_.load(); });
  }
  TestClock(const TestClock&) = delete;
  TestClock(TestClock&&) = delete;
  TestClock& operator=(const TestClock&) = delete;
  TestClock& operator=(TestClock&&) = delete;
  ~TestClock() { internal::SetClock(nullptr); }

  static void Advance(double seconds) { seconds_ = seconds_ + seconds; }

 private:
  static inline std::atomic<double> seconds_ = 0;
};

}  // namespace gradsmith

#endif  // GRADSMITH_TESTS_RUNTIME_TEST_CLOCK_H_
