#include "onednn/threads.h"

#include <oneapi/dnnl/dnnl_config.h>

#include <algorithm>

#include "core/origin_process.h"
#include "core/thread_pool.h"
#include "onednn/openmp.h"

namespace gradsmith::onednn {

#if DNNL_CPU_THREADING_RUNTIME == DNNL_RUNTIME_OMP

namespace {

/// OpenMP's threads are the first process's: a fork's child that counts on them waits for ever.
bool IsForked() {
  static const internal::OriginProcess first;
  return !first.IsCurrent();
}

/// Whether OpenMP can start so many threads, this one among them. It has threads of its own for
/// each thread that calls, and ends the program where it cannot start one. So threads are started
/// and ended here first: twice as many, as the system may still count those that end.
bool CanStart(int threads) {
  thread_local int tried = 1;
  thread_local int started = 1;
  if (tried < threads) {
    const int helpers = 2 * (threads - 1);
    tried = threads;
    started = internal::ThreadPool(helpers).workers() == helpers ? threads : started;
  }
  return threads <= started;
}

}  // namespace

int ThreadsOf(const Context& context) {
  const bool alone = omp_in_parallel() != 0 || omp_get_max_active_levels() == 0 || IsForked();
  const int threads = alone ? 1 : std::min(context.threads(), omp_get_thread_limit());
  return CanStart(threads) ? threads : 1;
}

ThreadLimit::ThreadLimit(int threads)
    : threads_before_(omp_get_max_threads()), dynamic_before_(omp_get_dynamic() != 0) {
  omp_set_num_threads(threads);
  // Kernels count on each of their threads.
  omp_set_dynamic(0);
}

ThreadLimit::~ThreadLimit() {
  omp_set_num_threads(threads_before_);
  omp_set_dynamic(dynamic_before_ ? 1 : 0);
}

#else  // sequential

int ThreadsOf(const Context& /*context*/) {
  return 1;
}

ThreadLimit::ThreadLimit(int /*threads*/) {}

ThreadLimit::~ThreadLimit() = default;

#endif

}  // namespace gradsmith::onednn
