#ifndef GRADSMITH_CORE_THREAD_POOL_H_
#define GRADSMITH_CORE_THREAD_POOL_H_

#include "core/origin_process.h"

namespace gradsmith::internal {

/// Job is work that several threads share while its caller waits for it.
class Job {
 public:
  Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  Job(Job&&) = delete;
  Job& operator=(Job&&) = delete;

  /// Work is called by each thread that takes part, and returns when nothing is left to begin.
  virtual void Work() noexcept = 0;

 protected:
  ~Job() = default;

 private:
  friend class ThreadPool;
  Job* next_ = nullptr;
  /// How many threads may still come, and how many are at work.
  int helpers_ = 0;
  int inside_ = 0;
};

/// ThreadPool keeps threads that help callers with their jobs. It has as many as the system gives,
/// up to the number that was asked for. In a fork's child it has none: callers work alone.
///
/// The code of the library stays in memory from when a pool has threads: dlclose of a shared object
/// that the library is part of does not unload it.
class ThreadPool {
 public:
  explicit ThreadPool(int workers);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ThreadPool(ThreadPool&&) = delete;
  ThreadPool& operator=(ThreadPool&&) = delete;
  /// Waits for the jobs under way, and ends the threads.
  ~ThreadPool();

  /// How many threads there are.
  [[nodiscard]] int workers() const { return origin_.IsCurrent() ? started_ : 0; }

  /// Run works on a job, with up to `helpers` of the threads beside the caller's, and returns when
  /// all have left it. It allocates nothing, and waits for no thread to come. Where the calling
  /// thread is cancelled meanwhile, that counts afterwards.
  void Run(Job& job, int helpers);

 private:
  /// The threads, and what they share. A fork's child has a copy without threads, whose lock may be
  /// closed for ever.
  class Team;

  OriginProcess origin_;
  Team* team_;
  int started_;
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_THREAD_POOL_H_
