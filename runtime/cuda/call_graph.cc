#include "cuda/call_graph.h"

#include <cstddef>
#include <utility>

#include "cuda/capture.h"
#include "cuda/driver.h"

namespace gradsmith::cuda {

namespace {

/// A graph takes some tens of KiB.
constexpr std::size_t kGraphsOfThread = 256;

}  // namespace

CallGraph::CallGraph(CallGraph&& other) noexcept : graph_(std::exchange(other.graph_, nullptr)) {}

CallGraph& CallGraph::operator=(CallGraph&& other) noexcept {
  std::swap(graph_, other.graph_);
  return *this;
}

CallGraph::~CallGraph() {
  if (graph_ != nullptr) {
    // One that still runs is freed when it has ended.
    Driver().cuGraphExecDestroy(graph_);
  }
}

Result<CallGraph> CallGraph::Record(CUstream stream, const Enqueue& enqueue) {
  const DriverApi& driver = Driver();
  constexpr const char* kDoing = "recording a call as a CUDA graph";
  if (Status status =
          ToStatus(driver.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), kDoing);
      !status.ok()) {
    return status;
  }
  const Status enqueued = enqueue(stream);
  CUgraph recorded = nullptr;
  const Status ended = ToStatus(driver.cuStreamEndCapture(stream, &recorded), kDoing);
  if (!enqueued.ok() || !ended.ok()) {
    if (recorded != nullptr) {
      driver.cuGraphDestroy(recorded);
    }
    return enqueued.ok() ? ended : enqueued;
  }
  CallGraph graph;
  const Status made =
      ToStatus(driver.cuGraphInstantiateWithFlags(&graph.graph_, recorded, 0), kDoing);
  driver.cuGraphDestroy(recorded);
  if (!made.ok()) {
    return made;
  }
  return graph;
}

Status CallGraph::Launch(CUstream stream) const {
  return ToStatus(Driver().cuGraphLaunch(graph_, stream), "launching a call's CUDA graph");
}

CallGraphs::CallGraphs() : entries_(kGraphsOfThread) {}

CallGraphs::~CallGraphs() {
  if (recording_stream_ != nullptr) {
    Driver().cuStreamDestroy(recording_stream_);
  }
}

Status CallGraphs::Run(
    CUstream stream,
    const internal::ProblemKey& key,
    const CallGraph::Enqueue& enqueue) {
  Entry* entry = entries_.Find(key);
  if (entry == nullptr) {
    entries_.Insert(key, Entry());
    return enqueue(stream);
  }
  if (entry->graph.empty() && (entry->cannot_be_recorded || !Record(entry, enqueue).ok())) {
    entry->cannot_be_recorded = true;
    return enqueue(stream);
  }
  ++launched_;
  return entry->graph.Launch(stream);
}

Status CallGraphs::Record(Entry* entry, const CallGraph::Enqueue& enqueue) {
  const RelaxedCapture relaxed;
  if (recording_stream_ == nullptr) {
    if (Status status = ToStatus(
            Driver().cuStreamCreate(&recording_stream_, CU_STREAM_NON_BLOCKING),
            "opening a stream to record on");
        !status.ok()) {
      return status;
    }
  }
  Result<CallGraph> graph = CallGraph::Record(recording_stream_, enqueue);
  if (!graph.ok()) {
    return graph.status();
  }
  entry->graph = std::move(*graph);
  return {};
}

}  // namespace gradsmith::cuda
