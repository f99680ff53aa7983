#ifndef GRADSMITH_CORE_STOPWATCH_H_
#define GRADSMITH_CORE_STOPWATCH_H_

#include <chrono>

namespace gradsmith::internal {

/// Stopwatch tells how long ago it was made.
class Stopwatch {
 public:
  [[nodiscard]] double Seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_STOPWATCH_H_
