#ifndef GRADSMITH_CUDA_CALL_GRAPH_H_
#define GRADSMITH_CUDA_CALL_GRAPH_H_

#include <cuda.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/lru_map.h"
#include "core/problem_key.h"
#include "gradsmith/status.h"

namespace gradsmith::cuda {

/// Branches are the streams that a call's work is enqueued on: its own, and where it is recorded as
/// a CUDA graph others, so that what does not wait for each other may run side by side.
class Branches {
 public:
  static constexpr int kOthers = 2;

  /// The stream alone.
  explicit Branches(CUstream stream) : stream_(stream) {}
  Branches(const Branches&) = delete;
  Branches& operator=(const Branches&) = delete;
  Branches(Branches&&) = delete;
  Branches& operator=(Branches&&) = delete;
  ~Branches();

  /// Open adds streams and events, on the current device.
  Status Open();

  [[nodiscard]] CUstream stream() const { return stream_; }
  /// Fork returns another stream that waits for what stream() has been given so far, and whose work
  /// Join waits for; stream() itself where there is no other.
  Result<CUstream> Fork();
  /// Join has stream() wait for all that was forked.
  Status Join();

 private:
  CUstream stream_;
  std::array<CUstream, kOthers> others_{};
  std::array<CUevent, kOthers> events_{};
  int opened_ = 0;
  int forked_ = 0;
};

using Enqueue = std::function<Status(Branches&)>;

struct DestroyGraph {
  void operator()(CUgraph graph) const;
};
using RecordedGraph = std::unique_ptr<CUgraph_st, DestroyGraph>;

/// RecordGraph captures what `enqueue` enqueues on the branches, which nothing else may use.
Result<RecordedGraph> RecordGraph(Branches& branches, const Enqueue& enqueue);

/// CallGraph is what a call enqueues, as a CUDA graph that can be launched; empty by default.
class CallGraph {
 public:
  CallGraph() = default;
  CallGraph(const CallGraph&) = delete;
  CallGraph& operator=(const CallGraph&) = delete;
  CallGraph(CallGraph&& other) noexcept;
  CallGraph& operator=(CallGraph&& other) noexcept;
  ~CallGraph();

  /// Of instantiates a graph, for which the driver may wait until the device has nothing to do.
  static Result<CallGraph> Of(const RecordedGraph& recorded);

  [[nodiscard]] bool empty() const { return graph_ == nullptr; }
  Status Launch(CUstream stream) const;
  /// Upload does what the first launch would otherwise do.
  Status Upload(CUstream stream) const;

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
  /// enqueued as it is, the second is recorded; but where `record_at_once`, the first is recorded
  /// for the second as well: recording may allocate and wait.
  Status Run(
      CUstream stream,
      const internal::ProblemKey& key,
      const Enqueue& enqueue,
      bool record_at_once = false);

  /// Prepare records a call that Run is to launch, and runs nothing.
  Status Prepare(CUstream stream, const internal::ProblemKey& key, const Enqueue& enqueue);

  /// Record captures what `enqueue` enqueues on branches that are kept for that.
  Result<CallGraph> Record(const Enqueue& enqueue);

  /// Clear forgets the calls that were recorded. None may be running.
  void Clear() {
    entries_.Clear();
    spares_.clear();
  }

  /// launched returns how many calls were one launch.
  [[nodiscard]] int launched() const { return launched_; }
  /// spares returns for how many further calls there is room without a wait.
  [[nodiscard]] std::size_t spares() const { return spares_.size(); }

 private:
  struct Entry {
    CallGraph graph;
    /// It was tried, and is not possible.
    bool cannot_be_recorded = false;
  };

  Status OpenBranches();
  Result<RecordedGraph> RecordAside(const Enqueue& enqueue);
  void RecordTo(Entry* entry, const Enqueue& enqueue, bool may_wait);

  /// The branches of a stream of its own, for recording.
  std::unique_ptr<Branches> branches_;
  int launched_ = 0;
  internal::LruMap<internal::ProblemKey, Entry, internal::ProblemKeyHash> entries_;
  /// Graphs that only hold room: the driver makes it for some 20 to 32 graphs at a time, and waits
  /// for all of the device's work then (driver 580). One is made with each call that may wait, and
  /// makes way for one that may not.
  std::vector<CallGraph> spares_;
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_CALL_GRAPH_H_
