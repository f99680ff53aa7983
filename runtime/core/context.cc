#include "gradsmith/context.h"

#include <algorithm>
#include <memory>
#include <thread>

#include "core/thread_pool.h"

namespace gradsmith {
namespace {

/// More would only cost memory, and the pool's own limit is not far.
constexpr int kMaxThreads = 1024;

int ResolveThreads(const ContextOptions& options) {
  if (options.device.backend != Backend::kCpu) {
    return 1;
  }
  if (options.threads > 0) {
    return std::min(options.threads, kMaxThreads);
  }
  // hardware_concurrency may be 0: not known.
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 0U + kMaxThreads));
}

}  // namespace

Context::Context(const ContextOptions& options)
    : device_(options.device), threads_(ResolveThreads(options)) {
  if (threads_ > 1) {
    // The calling thread takes part, so the pool has one less.
    pool_ = std::make_shared<internal::ThreadPool>(threads_ - 1);
  }
}

}  // namespace gradsmith
