#ifndef GRADSMITH_TESTS_SUPPORT_PROCESS_THREADS_H_
#define GRADSMITH_TESTS_SUPPORT_PROCESS_THREADS_H_

#include <chrono>
#include <filesystem>
#include <iterator>
#include <thread>

namespace gradsmith::support {

/// ProcessThreads returns how many threads this process has.
inline int ProcessThreads() {
  return static_cast<int>(
      std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}

/// ProcessComesTo waits until the process has so many threads: one that was joined may be listed
/// for a moment. It gives up after a minute.
inline bool ProcessComesTo(int threads) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (ProcessThreads() != threads) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    std::this_thread::yield();
  }
  return true;
}

}  // namespace gradsmith::support

#endif  // GRADSMITH_TESTS_SUPPORT_PROCESS_THREADS_H_
