#include "onednn/threads.h"

#include <oneapi/dnnl/dnnl_config.h>
#include <unistd.h>

#include <algorithm>

#include "onednn/openmp.h"

namespace gradsmith::onednn {

#if DNNL_CPU_THREADING_RUNTIME == DNNL_RUNTIME_OMP

namespace {

/// OpenMP's threads are the first process's: a fork's child that counts on them waits for ever.
bool IsForked() {
  static const pid_t first = getpid();
  return getpid() != first;
}

}  // namespace

int ThreadsOf(const Context& context) {
  const bool alone = omp_in_parallel() != 0 || omp_get_max_active_levels() == 0 || IsForked();
  return alone ? 1 : std::min(context.threads(), omp_get_thread_limit());
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
