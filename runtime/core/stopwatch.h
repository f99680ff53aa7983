#ifndef GRADSMITH_CORE_STOPWATCH_H_
#define GRADSMITH_CORE_STOPWATCH_H_

namespace gradsmith::internal {

/// Clock says what time it is, in seconds from some moment of its own.
using Clock = double (*)();

/// SetClock has every Stopwatch go by `clock`, null for the system's steady clock. It is for tests,
/// whose outcome must not depend on how busy the machine is.
void SetClock(Clock clock);

/// Stopwatch tells how long ago it was made.
class Stopwatch {
 public:
  Stopwatch();
  [[nodiscard]] double Seconds() const;

 private:
  double start_;
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_STOPWATCH_H_
