#include "gradsmith/context.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <thread>

#include "core/cpu_candidates.h"
#include "core/decision_cache.h"
#include "core/device_backend.h"
#include "core/exceptions.h"
#include "core/text.h"
#include "core/thread_pool.h"
#include "core/validate.h"
#include "core/warning.h"

namespace gradsmith {
namespace {

/// More threads would only cost memory.
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

/// Said once: a program may make many contexts.
void WarnOfMode(const std::string& given) {
  static std::once_flag said;
  std::call_once(said, [&] {
    internal::Warn(
        "GRADSMITH_SEARCH_MODE is " + internal::Quoted(given) +
        "; expected default, heuristic or benchmark; heuristic is taken");
  });
}

SearchMode ResolveSearchMode(const ContextOptions& options) {
  if (options.search_mode) {
    return *options.search_mode;
  }
  const char* given = std::getenv("GRADSMITH_SEARCH_MODE");  // NOLINT(concurrency-mt-unsafe)
  const std::string text = given == nullptr ? "" : given;
  for (const SearchMode mode :
       {SearchMode::kDefault, SearchMode::kHeuristic, SearchMode::kBenchmark}) {
    if (text == ToString(mode)) {
      return mode;
    }
  }
  if (!text.empty()) {
    WarnOfMode(text);
  }
  return SearchMode::kHeuristic;
}

}  // namespace

std::string_view ToString(SearchMode mode) {
  switch (mode) {
    case SearchMode::kDefault:
      return "default";
    case SearchMode::kHeuristic:
      return "heuristic";
    case SearchMode::kBenchmark:
      return "benchmark";
  }
  return "unknown";
}

Context::Context(const ContextOptions& options) {
  not_made_ = internal::CatchExceptions([&] {
    state_ = MakeState(options);
    return Status();
  });
}

std::shared_ptr<const Context::State> Context::MakeState(const ContextOptions& options) {
  State state;
  state.options = options;
  state.search_mode = ResolveSearchMode(options);
  if (const int threads = ResolveThreads(options); threads > 1) {
    // The calling thread takes part, so the pool has one less.
    state.pool = std::make_shared<internal::ThreadPool>(threads - 1);
  }
  if (options.device.backend == Backend::kCuda) {
    state.arena = internal::MakeWorkspaceArena(options);
  }
  if (options.device.backend == Backend::kCuda || internal::CpuHasCandidates()) {
    state.decisions = &internal::DecisionCache::Named(options.cache);
  }
  return std::make_shared<const State>(std::move(state));
}

const Context::State& Context::Nothing() {
  // Never destroyed: threads may still call while the program ends.
  alignas(State) static std::byte memory[sizeof(State)];
  static const State& nothing = *new (memory) State;
  return nothing;
}

Status Context::status() const {
  if (state_ != nullptr || !not_made_.ok()) {
    return not_made_;
  }
  return internal::CatchExceptions([] { return InvalidArgument("the context was moved from"); });
}

int Context::threads() const {
  const internal::ThreadPool* pool = thread_pool();
  return pool == nullptr ? 1 : pool->workers() + 1;
}

Context Context::ForPreparing() const {
  Context context = *this;
  context.preparing_ = true;
  return context;
}

Status CheckDevice(Device device) {
  return internal::CatchExceptions([&] {
    return device.backend == Backend::kCpu ? internal::CheckCpuIndex(device.index)
                                           : internal::CheckCudaDevice(device.index);
  });
}

}  // namespace gradsmith
