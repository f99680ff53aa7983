#ifndef GRADSMITH_CORE_THREAD_POOL_H_
#define GRADSMITH_CORE_THREAD_POOL_H_

#include <functional>
#include <utility>

#include "core/eigen_namespace.h"  // first: it renames Eigen

// GCC's thread sanitizer does not follow fences, and warns where the pool's are inlined.
#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wtsan"
#endif

#include <unsupported/Eigen/CXX11/ThreadPool>

namespace gradsmith::internal {

/// ThreadPool runs tasks on threads of its own. Destroying it waits for the tasks that were
/// scheduled.
class ThreadPool {
 public:
  explicit ThreadPool(int workers) : pool_(workers) {}

  [[nodiscard]] int workers() const { return pool_.NumThreads(); }

  /// Schedule runs the task on some worker, or here and now where the queue is full.
  void Schedule(std::function<void()> task) { pool_.Schedule(std::move(task)); }

 private:
  Eigen::ThreadPool pool_;
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_THREAD_POOL_H_
