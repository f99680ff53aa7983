#include "policies.h"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace gradsmith::python {

/// CpuContexts are those on the CPU, by what matters there, their number of threads and whether
/// they are deterministic: policies that differ in nothing of that share threads, which end with
/// the last of them. It is never freed, as threads may be at work when the interpreter ends.
struct Policies::CpuContexts {
  std::mutex mutex;
  std::map<std::pair<int, std::optional<bool>>, std::weak_ptr<const Context>> all;
};

Policies::CpuContexts*& Policies::SharedCpuContexts() {
  static auto* contexts = new CpuContexts();
  return contexts;
}

void Policies::AbandonThreads() {
  SharedCpuContexts() = new CpuContexts();
}

Context Policies::OnCpu() {
  CpuContexts* const contexts = SharedCpuContexts();
  if (cpu_ != nullptr && shared_by_ == contexts) {
    return *cpu_;
  }
  const std::lock_guard<std::mutex> lock(contexts->mutex);
  std::erase_if(contexts->all, [](const auto& one) { return one.second.expired(); });
  std::weak_ptr<const Context>& shared = contexts->all[{options_.threads, options_.deterministic}];
  std::shared_ptr<const Context> context = shared.lock();
  if (context == nullptr) {
    context = std::make_shared<const Context>(
        ContextOptions{.threads = options_.threads, .deterministic = options_.deterministic});
    if (!context->status().ok()) {
      return *context;
    }
    shared = context;
  }
  cpu_ = std::move(context);
  shared_by_ = contexts;
  return *cpu_;
}

Context Policies::OnCuda(Device device, void* stream) {
  const std::pair<int, void*> key(device.index, stream);
  if (const auto found = contexts_.find(key); found != contexts_.end()) {
    return found->second;
  }
  ContextOptions options = options_;
  options.device = device;
  options.stream = stream;
  Context context(options);
  if (context.status().ok()) {
    contexts_.emplace(key, context);
  }
  return context;
}

Context Policies::On(Device device, void* stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Context context = device.backend == Backend::kCpu ? OnCpu() : OnCuda(device, stream);
  if (is_preparing_) {
    return context.ForPreparing();
  }
  return context;
}

}  // namespace gradsmith::python
