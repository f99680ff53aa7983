#include "core/parallel.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>

#include "core/thread_pool.h"

namespace gradsmith::internal {
namespace {

/// Several pieces for each thread, so that a thread that is late does not keep the others waiting.
constexpr std::int64_t kPiecesPerThread = 4;

/// Loop is one ParallelFor under way, of which threads claim piece after piece.
class Loop final : public Job {
 public:
  using Body = std::function<void(std::int64_t, std::int64_t)>;

  Loop(std::int64_t total, std::int64_t pieces, const Body& body)
      : total_(total), pieces_(pieces), body_(body) {}

  void Work() noexcept override {
    for (std::int64_t piece = next_.fetch_add(1); piece < pieces_; piece = next_.fetch_add(1)) {
      Run(piece);
    }
  }

  /// Rethrow throws what a piece has thrown; no thread is at work any more.
  void Rethrow() const {
    if (exception_) {
      std::rethrow_exception(exception_);
    }
  }

 private:
  void Run(std::int64_t piece) noexcept {
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
      if (!failed_.exchange(true)) {
        exception_ = std::current_exception();
      }
    }
  }

  const std::int64_t total_;
  const std::int64_t pieces_;
  const Body& body_;
  std::atomic<std::int64_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::exception_ptr exception_;
};

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
  const int threads = context.threads();
  const std::int64_t pieces = std::min(most_pieces, kPiecesPerThread * threads);
  if (threads == 1 || pieces == 1) {
    body(0, total);
    return;
  }
  Loop loop(total, pieces, body);
  context.thread_pool()->Run(loop, static_cast<int>(std::min<std::int64_t>(pieces, threads)) - 1);
  loop.Rethrow();
}

}  // namespace gradsmith::internal
