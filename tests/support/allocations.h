#ifndef GRADSMITH_TESTS_SUPPORT_ALLOCATIONS_H_
#define GRADSMITH_TESTS_SUPPORT_ALLOCATIONS_H_

#include <cstdint>
#include <limits>

/// A test program that uses this has its operator new and, where no sanitizer has its own, the C
/// library's malloc replaced, so that tests can count allocations and have them fail.
namespace gradsmith::support {

/// Allocations counts what all threads allocate while it lives, and fails those that it is told to.
/// There is one at a time.
class Allocations {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  /// Lets the allocation `first`, counted from 0, fail, and those after it up to `last`.
  explicit Allocations(std::int64_t first = kNever, std::int64_t last = kNever);
  Allocations(const Allocations&) = delete;
  Allocations& operator=(const Allocations&) = delete;
  Allocations(Allocations&&) = delete;
  Allocations& operator=(Allocations&&) = delete;
  ~Allocations();

  /// How many there were, those that failed among them.
  [[nodiscard]] std::int64_t count() const;
  /// Whether one has failed.
  [[nodiscard]] bool failed() const;

 private:
  std::int64_t first_;
};

}  // namespace gradsmith::support

#endif  // GRADSMITH_TESTS_SUPPORT_ALLOCATIONS_H_
