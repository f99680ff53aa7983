#include "core/parallel.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "core/thread_pool.h"

namespace gradsmith::internal {
namespace {

/// Several pieces for each thread, so that a thread that is late does not keep the others waiting.
constexpr std::int64_t kPiecesPerThread = 4;

/// Loop is one ParallelFor under way. Threads claim piece after piece; the caller waits for pieces
/// that others have claimed, never for a thread to come, so that nested loops cannot wait for each
/// other.
class Loop {
 public:
  using Body = std::function<void(std::int64_t, std::int64_t)>;

  Loop(std::int64_t total, std::int64_t pieces, const Body& body)
      : total_(total), pieces_(pieces), body_(body) {}

  /// Work runs pieces until none is left to claim. Once all are claimed `body` may be gone: a
  /// thread that comes late does not touch it.
  void Work() {
    for (;;) {
      const std::int64_t piece = next_.fetch_add(1);
      if (piece >= pieces_) {
        return;
      }
      Run(piece);
      Finish();
    }
  }

  /// Wait returns when every piece is done, and rethrows.
  void Wait() {
    std::unique_lock lock(mutex_);
    all_done_.wait(lock, [this] { return done_ == pieces_; });
    if (exception_) {
      // Nothing of it stays with the Loop, which a late thread may be the last to hold.
      std::rethrow_exception(std::exchange(exception_, nullptr));
    }
  }

 private:
  void Run(std::int64_t piece) {
    if (failed_) {
      return;
    }
    // The first total % pieces pieces are longer by one.
    const std::int64_t length = total_ / pieces_;
    const std::int64_t longer = total_ % pieces_;
    const std::int64_t begin = (piece * length) + std::min(piece, longer);
    try {
      body_(begin, begin + length + (piece < longer ? 1 : 0));
    } catch (...) {
      const std::scoped_lock lock(mutex_);
      if (!exception_) {
        exception_ = std::current_exception();
      }
      failed_ = true;
    }
  }

  void Finish() {
    const std::scoped_lock lock(mutex_);
    if (++done_ == pieces_) {
      all_done_.notify_all();
    }
  }

  const std::int64_t total_;
  const std::int64_t pieces_;
  const Body& body_;
  std::atomic<std::int64_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::condition_variable all_done_;
  std::int64_t done_ = 0;
  std::exception_ptr exception_;
};

/// Without memory for a task there is one helper less; the caller does its part.
void ScheduleHelpers(ThreadPool& pool, std::int64_t helpers, const std::shared_ptr<Loop>& loop) {
  try {
    for (std::int64_t i = 0; i < helpers; ++i) {
      pool.Schedule([loop] { loop->Work(); });
    }
  } catch (const std::bad_alloc&) {
    return;
  }
}

}  // namespace

void ParallelFor(
    const Context& context,
    std::int64_t total,
    std::int64_t grain,
    const std::function<void(std::int64_t begin, std::int64_t end)>& body) {
  if (total <= 0) {
    return;
  }
  const std::int64_t most_pieces =
      std::max<std::int64_t>(1, total / std::max<std::int64_t>(1, grain));
  const std::int64_t pieces = std::min(most_pieces, kPiecesPerThread * context.threads());
  ThreadPool* pool = context.thread_pool();
  if (pool == nullptr || pieces == 1) {
    body(0, total);
    return;
  }
  const auto loop = std::make_shared<Loop>(total, pieces, body);
  ScheduleHelpers(*pool, std::min<std::int64_t>(pieces - 1, pool->workers()), loop);
  loop->Work();
  loop->Wait();
}

}  // namespace gradsmith::internal
