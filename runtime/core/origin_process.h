#ifndef GRADSMITH_CORE_ORIGIN_PROCESS_H_
#define GRADSMITH_CORE_ORIGIN_PROCESS_H_

#include <atomic>
#include <cstdint>

namespace gradsmith::internal {

/// OriginProcess remembers in which process it was made. The child of a fork has a copy of what its
/// parent had in memory, but neither its threads nor what a driver keeps for it. Process ids do not
/// tell them apart: in namespaces of their own both may be process 1. So forks are counted.
class OriginProcess {
 public:
  /// IsCurrent is false in a child of the process.
  [[nodiscard]] bool IsCurrent() const {
    return generation_.load(std::memory_order_relaxed) == made_in_;
  }

 private:
  /// Sees to it that forks are counted, and returns how many there were.
  static std::uint64_t CountFromHere();
  static void CountFork();

  /// How many forks there are between this process and the one that loaded the library.
  static std::atomic<std::uint64_t> generation_;

  std::uint64_t made_in_ = CountFromHere();
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_ORIGIN_PROCESS_H_
