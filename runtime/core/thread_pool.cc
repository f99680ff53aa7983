#include "core/thread_pool.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "core/cancellation.h"

namespace gradsmith::internal {

namespace {

/// Some ten microseconds, in which the next job of a call often comes: going to sleep and being
/// woken takes longer.
constexpr int kSpins = 300;

/// Each woken thread wakes this many more, so that many are up after few steps.
constexpr int kWokenByOne = 2;

void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

/// Threads must not outlive their code. A reference that is never given back keeps the shared
/// object that the code is part of; a program's own code stays anyway, and cannot be opened.
void KeepCodeLoaded() {
  static std::atomic<bool> done = false;
  Dl_info info;
  if (!done.exchange(true) && dladdr(reinterpret_cast<void*>(&KeepCodeLoaded), &info) != 0) {
    dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  }
}

}  // namespace

class ThreadPool::Team {
 public:
  /// Start makes threads one by one, until the system gives no more, and returns how many.
  int Start(int workers) {
    KeepCodeLoaded();
    while (std::ssize(threads_) < workers && StartOne()) {
    }
    return static_cast<int>(threads_.size());
  }

  /// Offer lets threads come to the job until it is withdrawn.
  void Offer(Job& job, int helpers) {
    job.helpers_ = helpers;
    std::unique_lock lock(mutex_);
    ++callers_;
    (last_ == nullptr ? first_ : last_->next_) = &job;
    last_ = &job;
    open_.store(true, std::memory_order_relaxed);
    const int woken = std::min({helpers, asleep_, kWokenByOne});
    lock.unlock();
    Wake(woken);
  }

  /// Withdraw returns when no thread is in the job.
  void Withdraw(Job& job) {
    std::unique_lock lock(mutex_);
    Remove(job);
    left_.wait(lock, [&] { return job.inside_ == 0; });
    if (--callers_ == 0 && ending_) {
      left_.notify_all();
    }
  }

  /// End waits for callers and threads. Callers that are at work still do without threads.
  void End() {
    {
      std::unique_lock lock(mutex_);
      ending_ = true;
      left_.wait(lock, [this] { return callers_ == 0; });
    }
    work_.notify_all();
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }

  /// Abandon keeps the memory in sight of whoever looks for leaks.
  void Abandon() {
    static std::atomic<Team*> abandoned = nullptr;
    next_abandoned_ = abandoned.exchange(this);
  }

 private:
  bool StartOne() {
    try {
      threads_.emplace_back([this] { Serve(); });
      return true;
    } catch (const std::system_error&) {  // there is a limit on threads
      return false;
    } catch (const std::bad_alloc&) {  // or no memory
      return false;
    }
  }

  /// What a thread does.
  void Serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (first_ != nullptr) {
        TakePart(*first_, lock);
      } else if (ending_) {
        return;
      } else {
        AwaitJob(lock);
      }
    }
  }

  void TakePart(Job& job, std::unique_lock<std::mutex>& lock) {
    ++job.inside_;
    if (--job.helpers_ == 0) {
      Remove(job);
    }
    const int woken = first_ == nullptr ? 0 : std::min(asleep_, kWokenByOne);
    lock.unlock();
    Wake(woken);
    job.Work();
    lock.lock();
    if (--job.inside_ == 0) {
      left_.notify_all();
    }
  }

  void AwaitJob(std::unique_lock<std::mutex>& lock) {
    lock.unlock();
    for (int i = 0; i < kSpins && !open_.load(std::memory_order_relaxed); ++i) {
      Pause();
    }
    lock.lock();
    if (first_ == nullptr && !ending_) {
      ++asleep_;
      work_.wait(lock);
      --asleep_;
    }
  }

  void Wake(int threads) {
    for (int i = 0; i < threads; ++i) {
      work_.notify_one();
    }
  }

  /// Takes the job from the list, where it still is there.
  void Remove(const Job& job) {
    Job* before = nullptr;
    for (Job* at = first_; at != nullptr; before = at, at = at->next_) {
      if (at == &job) {
        (before == nullptr ? first_ : before->next_) = at->next_;
        last_ = last_ == at ? before : last_;
        break;
      }
    }
    open_.store(first_ != nullptr, std::memory_order_relaxed);
  }

  std::mutex mutex_;
  /// Told of jobs, and of the end.
  std::condition_variable work_;
  /// Told when the last thread has left a job.
  std::condition_variable left_;
  /// The jobs that threads may come to, the oldest first.
  Job* first_ = nullptr;
  Job* last_ = nullptr;
  /// Whether there is one, for threads that have not gone to sleep yet.
  std::atomic<bool> open_ = false;
  int asleep_ = 0;
  int callers_ = 0;
  bool ending_ = false;
  std::vector<std::thread> threads_;
  Team* next_abandoned_ = nullptr;
};

ThreadPool::ThreadPool(int workers) : team_(new Team), started_(team_->Start(workers)) {}

ThreadPool::~ThreadPool() {
  const NoCancellation until_ended;
  if (!origin_.IsCurrent()) {
    team_->Abandon();
    return;
  }
  team_->End();
  delete team_;
}

void ThreadPool::Run(Job& job, int helpers) {
  const NoCancellation until_withdrawn;  // helpers may be in the job, which is on this stack
  helpers = std::min(helpers, workers());
  if (helpers < 1) {
    job.Work();
    return;
  }
  team_->Offer(job, helpers);
  job.Work();
  team_->Withdraw(job);
}

}  // namespace gradsmith::internal
