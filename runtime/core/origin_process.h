#ifndef GRADSMITH_CORE_ORIGIN_PROCESS_H_
#define GRADSMITH_CORE_ORIGIN_PROCESS_H_

#include <unistd.h>

namespace gradsmith::internal {

/// OriginProcess remembers in which process it was made. The child of a fork has a copy of what its
/// parent had in memory, but neither its threads nor what a driver keeps for it.
class OriginProcess {
 public:
  /// IsCurrent is false in a child of the process.
  [[nodiscard]] bool IsCurrent() const { return getpid() == pid_; }

 private:
  pid_t pid_ = getpid();
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_ORIGIN_PROCESS_H_
