#ifndef GRADSMITH_TESTS_SUPPORT_TURNS_H_
#define GRADSMITH_TESTS_SUPPORT_TURNS_H_

#include <cstdlib>

namespace gradsmith::support {

/// Whether tests run on the emulated GPU.
inline bool IsEmulated() {
  return std::getenv("EMULATED_GPU_ORDER") != nullptr;
}

/// Cases that share a kernel's code take turns on the emulated GPU, where all of them would take
/// minutes: one of `period` is run. On a GPU every case is.
///
/// Where a test's inner loops have a number of cases that has no divisor in common with the period,
/// each of these cases is run for some of what the outer loop goes through, and each of the latter
/// with some of them.
class Turns {
 public:
  explicit Turns(int period) : period_(IsEmulated() ? period : 1) {}

  bool Next() { return number_++ % period_ == 0; }

 private:
  int period_;
  int number_ = 0;
};

/// RunsOfCall returns how often to run a call that must give the same each time: twice, and on the
/// emulated GPU mostly once.
inline int RunsOfCall() {
  static Turns turns(3);
  return turns.Next() ? 2 : 1;
}

}  // namespace gradsmith::support

#endif  // GRADSMITH_TESTS_SUPPORT_TURNS_H_
