#ifndef GRADSMITH_CUDA_CALL_GRAPH_H_
#define GRADSMITH_CUDA_CALL_GRAPH_H_

#include <cuda.h>

#include <cstdint>
#include <functional>

#include "core/lru_map.h"
#include "core/problem_key.h"
#include "gradsmith/status.h"

namespace gradsmith::cuda {

/// CallGraph is what a call enqueues, as a CUDA graph; empty until it is recorded.
class CallGraph {
 public:
  using Enqueue = std::function<Status(CUstream)>;

  CallGraph() = default;
  CallGraph(const CallGraph&) = delete;
  CallGraph& operator=(const CallGraph&) = delete;
  CallGraph(CallGraph&& other) noexcept;
  CallGraph& operator=(CallGraph&& other) noexcept;
  ~CallGraph();

  /// Record captures what `enqueue` enqueues on `stream`, which nothing else may use.
  static Result<CallGraph> Record(CUstream stream, const Enqueue& enqueue);

  [[nodiscard]] bool empty() const { return graph_ == nullptr; }
  Status Launch(CUstream stream) const;

 private:
  CUgraphExec graph_ = nullptr;
};

/// AddressWord returns an address as a key's word.
inline std::int64_t AddressWord(const void* address) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(address));
}

/// CallGraphs launches as one CUDA graph what a thread has enqueued before: a training step comes
/// back with the same plans and addresses, and a launch costs the host
/// less than enqueuing does, even of a single kernel of cuDNN's.
class CallGraphs {
 public:
  CallGraphs();
  CallGraphs(const CallGraphs&) = delete;
  CallGraphs& operator=(const CallGraphs&) = delete;
  CallGraphs(CallGraphs&&) = delete;
  CallGraphs& operator=(CallGraphs&&) = delete;
  ~CallGraphs();

  /// Run enqueues a call's work on a stream that is not captured. The key holds all that the work
  /// depends on: plans by their serial numbers, addresses, strides. The first call with a key is
  /// enqueued as it is, the second is recorded.
  Status Run(CUstream stream, const internal::ProblemKey& key, const CallGraph::Enqueue& enqueue);

  /// launched returns how many calls were one launch.
  [[nodiscard]] int launched() const { return launched_; }

 private:
  struct Entry {
    CallGraph graph;
    /// It was tried, and is not possible.
    bool cannot_be_recorded = false;
  };

  Status Record(Entry* entry, const CallGraph::Enqueue& enqueue);

  CUstream recording_stream_ = nullptr;
  int launched_ = 0;
  internal::LruMap<internal::ProblemKey, Entry, internal::ProblemKeyHash> entries_;
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_CALL_GRAPH_H_
