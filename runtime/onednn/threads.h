#ifndef GRADSMITH_ONEDNN_THREADS_H_
#define GRADSMITH_ONEDNN_THREADS_H_

#include "gradsmith/context.h"

/// The threads of oneDNN's kernels. They are OpenMP's and not the context's, but no more of them.
namespace gradsmith::onednn {

/// ThreadsOf returns how many threads a call's kernels run on: the context's number, or fewer where
/// OpenMP has a limit; one where the system would not give as many, in a fork's child, and within a
/// parallel region of the caller's, where OpenMP starts no other and kernels for more would leave
/// parts of the result out.
int ThreadsOf(const Context& context);

/// While a ThreadLimit lives, what this thread asks of oneDNN takes so many threads: kernels are
/// made for the number that they later run on.
class ThreadLimit {
 public:
  explicit ThreadLimit(int threads);
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;
  ThreadLimit(ThreadLimit&&) = delete;
  ThreadLimit& operator=(ThreadLimit&&) = delete;
  ~ThreadLimit();

 private:
  int threads_before_ = 1;
  bool dynamic_before_ = false;
};

}  // namespace gradsmith::onednn

#endif  // GRADSMITH_ONEDNN_THREADS_H_
