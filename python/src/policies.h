#ifndef GRADSMITH_PYTHON_POLICIES_H_
#define GRADSMITH_PYTHON_POLICIES_H_

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "gradsmith/context.h"

namespace gradsmith::python {

/// Policies are a context's options without the place: arrays say at each call which device and
/// stream they are on, and each of those has a Context of its own here.
class Policies {
 public:
  Policies(ContextOptions options, bool is_preparing)
      : options_(std::move(options)), is_preparing_(is_preparing) {}

  /// On returns the context for calls on a device and a stream.
  [[nodiscard]] Context On(Device device, void* stream);

  [[nodiscard]] const ContextOptions& options() const { return options_; }

  /// AbandonThreads is for the child of a fork, which has none of its parent's threads: the next
  /// call starts new ones.
  static void AbandonThreads();

 private:
  struct CpuContexts;

  static CpuContexts*& SharedCpuContexts();
  /// OnCpu and OnCuda keep the contexts that they make, but for one that could not be made whole:
  /// calls in it say why, and the next tries anew.
  [[nodiscard]] Context OnCpu();
  [[nodiscard]] Context OnCuda(Device device, void* stream);

  ContextOptions options_;
  bool is_preparing_;
  std::mutex mutex_;
  /// That on the CPU, from the first call there on, and whose it is.
  std::shared_ptr<const Context> cpu_;
  CpuContexts* shared_by_ = nullptr;
  std::map<std::pair<int, void*>, Context> contexts_;
};

}  // namespace gradsmith::python

#endif  // GRADSMITH_PYTHON_POLICIES_H_
