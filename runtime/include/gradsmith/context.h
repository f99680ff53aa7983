#ifndef GRADSMITH_CONTEXT_H_
#define GRADSMITH_CONTEXT_H_

#include <memory>

#include "gradsmith/types.h"

namespace gradsmith {

namespace internal {
class ThreadPool;
}  // namespace internal

/// ContextOptions are the policies of a Context.
struct ContextOptions {
  Device device = {};
  /// How many threads the CPU backend may use, the caller's among them; 0 means one for each
  /// processor. Results have the same bits for any number.
  int threads = 0;
};

/// Context says where calls run and under which policies. Make one and keep it: it owns the CPU
/// backend's threads. Copies share them. Several host threads may call through one Context at once.
class Context {
 public:
  Context() : Context(ContextOptions{}) {}
  explicit Context(const ContextOptions& options);

  [[nodiscard]] Device device() const { return device_; }
  [[nodiscard]] Backend backend() const { return device_.backend; }
  [[nodiscard]] int threads() const { return threads_; }

  /// For kernels: what ParallelFor in core/parallel.h runs on; null where one thread does all.
  [[nodiscard]] internal::ThreadPool* thread_pool() const { return pool_.get(); }

 private:
  Device device_;
  int threads_ = 1;
  std::shared_ptr<internal::ThreadPool> pool_;
};

}  // namespace gradsmith

#endif  // GRADSMITH_CONTEXT_H_
