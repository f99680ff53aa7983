#include "policies.h"

#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace gradsmith::python {

/// CpuContexts are those on the CPU, by their number of threads: policies that differ in nothing
/// else share threads, which end with the last of them. It is never freed, as threads may be at
/// work when the interpreter ends.
struct Policies::CpuContexts {
  std::mutex mutex;
  std::map<int, std::weak_ptr<const Context>> by_threads;
};

Policies::CpuContexts*& Policies::SharedCpuContexts() {
  static auto* contexts = new CpuContexts();
  return contexts;
}

void Policies::AbandonThreads() {
  SharedCpuContexts() = new CpuContexts();
}

const Context& Policies::OnCpu() {
  CpuContexts* const contexts = SharedCpuContexts();
  if (cpu_ == nullptr || shared_by_ != contexts) {
    const std::lock_guard<std::mutex> lock(contexts->mutex);
    std::weak_ptr<const Context>& shared = contexts->by_threads[options_.threads];
    cpu_ = shared.lock();
    if (cpu_ == nullptr) {
      cpu_ = std::make_shared<const Context>(ContextOptions{.threads = options_.threads});
      shared = cpu_;
    }
    shared_by_ = contexts;
  }
  return *cpu_;
}

Context Policies::On(Device device, void* stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (device.backend == Backend::kCpu) {
    const Context& context = OnCpu();
    return is_preparing_ ? context.ForPreparing() : context;
  }
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
