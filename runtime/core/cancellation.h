#ifndef GRADSMITH_CORE_CANCELLATION_H_
#define GRADSMITH_CORE_CANCELLATION_H_

#include <pthread.h>

namespace gradsmith::internal {

/// NoCancellation holds back pthread_cancel of this thread as long as it lives: the thread must not
/// leave what others work on, nor a function that nothing may be thrown out of. It ends at the next
/// point behind that where cancellation counts.
class NoCancellation {
 public:
  NoCancellation() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  NoCancellation(const NoCancellation&) = delete;
  NoCancellation& operator=(const NoCancellation&) = delete;
  NoCancellation(NoCancellation&&) = delete;
  NoCancellation& operator=(NoCancellation&&) = delete;
  ~NoCancellation() { pthread_setcancelstate(before_, nullptr); }

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_CANCELLATION_H_
