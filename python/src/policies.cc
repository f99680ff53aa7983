#include "policies.h"

#include <map>
#include <mutex>
#include <utility>

namespace gradsmith::python {

namespace {

/// The contexts on the CPU, by their number of threads: policies that differ in nothing else share
/// threads. Never freed, as threads may be at work when the interpreter ends.
struct CpuContexts {
  std::mutex mutex;
  std::map<int, Context> by_threads;
};

CpuContexts*& SharedCpuContexts() {
  static auto* contexts = new CpuContexts();
  return contexts;
}

Context OnCpu(const ContextOptions& options) {
  CpuContexts& contexts = *SharedCpuContexts();
  const std::lock_guard<std::mutex> lock(contexts.mutex);
  const auto found = contexts.by_threads.find(options.threads);
  if (found != contexts.by_threads.end()) {
    return found->second;
  }
  const Context context({.threads = options.threads});
  return contexts.by_threads.emplace(options.threads, context).first->second;
}

}  // namespace

void Policies::AbandonThreads() {
  SharedCpuContexts() = new CpuContexts();
}

Context Policies::On(Device device, void* stream) {
  if (device.backend == Backend::kCpu) {
    const Context context = OnCpu(options_);
    return is_preparing_ ? context.ForPreparing() : context;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::pair<int, void*> key(device.index, stream);
  const auto found = contexts_.find(key);
  const Context& context = found != contexts_.end()
                               ? found->second
                               : contexts_.emplace(key, MakeContext(device, stream)).first->second;
  return is_preparing_ ? context.ForPreparing() : context;
}

Context Policies::MakeContext(Device device, void* stream) {
  ContextOptions options = options_;
  options.device = device;
  options.stream = stream;
  return Context(options);
}

}  // namespace gradsmith::python
