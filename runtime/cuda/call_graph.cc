#include "cuda/call_graph.h"

#include <cstddef>
#include <memory>
#include <utility>

#include "cuda/capture.h"
#include "cuda/driver.h"

namespace gradsmith::cuda {

namespace {

/// A graph takes 0.06 to 0.2 MiB of the device's memory.
constexpr std::size_t kGraphsOfThread = 256;
constexpr std::size_t kSparesOfThread = 64;

constexpr const char* kRecording = "recording a call as a CUDA graph";

}  // namespace

Branches::~Branches() {
  for (int i = 0; i < kOthers; ++i) {
    if (others_.at(i) != nullptr) {
      Driver().cuStreamDestroy(others_.at(i));
    }
    if (events_.at(i) != nullptr) {
      Driver().cuEventDestroy(events_.at(i));
    }
  }
}

Status Branches::Open() {
  constexpr const char* kDoing = "opening streams to record on";
  const DriverApi& driver = Driver();
  for (; opened_ < kOthers; ++opened_) {
    if (Status status =
            ToStatus(driver.cuStreamCreate(&others_.at(opened_), CU_STREAM_NON_BLOCKING), kDoing);
        !status.ok()) {
      return status;
    }
    if (Status status =
            ToStatus(driver.cuEventCreate(&events_.at(opened_), CU_EVENT_DISABLE_TIMING), kDoing);
        !status.ok()) {
      return status;
    }
  }
  return {};
}

Result<CUstream> Branches::Fork() {
  if (forked_ == opened_) {
    return stream_;
  }
  CUstream other = others_.at(forked_);
  CUevent event = events_.at(forked_);
  ++forked_;
  Status status = ToStatus(Driver().cuEventRecord(event, stream_), "forking a stream");
  if (status.ok()) {
    status = ToStatus(Driver().cuStreamWaitEvent(other, event, 0), "forking a stream");
  }
  if (!status.ok()) {
    return status;
  }
  return other;
}

Status Branches::Join() {
  Status status;
  for (int i = 0; i < forked_ && status.ok(); ++i) {
    status = ToStatus(Driver().cuEventRecord(events_.at(i), others_.at(i)), "joining streams");
    if (status.ok()) {
      status = ToStatus(Driver().cuStreamWaitEvent(stream_, events_.at(i), 0), "joining streams");
    }
  }
  forked_ = 0;
  return status;
}

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

void DestroyGraph::operator()(CUgraph graph) const {
  Driver().cuGraphDestroy(graph);
}

Result<RecordedGraph> RecordGraph(Branches& branches, const Enqueue& enqueue) {
  const DriverApi& driver = Driver();
  CUstream stream = branches.stream();
  if (Status status =
          ToStatus(driver.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), kRecording);
      !status.ok()) {
    return status;
  }
  Status enqueued = enqueue(branches);
  if (const Status joined = branches.Join(); enqueued.ok()) {
    enqueued = joined;
  }
  CUgraph graph = nullptr;
  const Status ended = ToStatus(driver.cuStreamEndCapture(stream, &graph), kRecording);
  RecordedGraph recorded(graph);
  if (!enqueued.ok() || !ended.ok()) {
    return enqueued.ok() ? ended : enqueued;
  }
  return recorded;
}

Result<CallGraph> CallGraph::Of(const RecordedGraph& recorded) {
  CallGraph graph;
  if (Status status = ToStatus(
          Driver().cuGraphInstantiateWithFlags(&graph.graph_, recorded.get(), 0), kRecording);
      !status.ok()) {
    return status;
  }
  return graph;
}

Status CallGraph::Launch(CUstream stream) const {
  return ToStatus(Driver().cuGraphLaunch(graph_, stream), "launching a call's CUDA graph");
}

Status CallGraph::Upload(CUstream stream) const {
  return ToStatus(Driver().cuGraphUpload(graph_, stream), "uploading a call's CUDA graph");
}

CallGraphs::CallGraphs() : entries_(kGraphsOfThread) {}

CallGraphs::~CallGraphs() {
  if (branches_ != nullptr) {
    CUstream stream = branches_->stream();
    branches_.reset();
    Driver().cuStreamDestroy(stream);
  }
}

Status CallGraphs::Run(
    CUstream stream,
    const internal::ProblemKey& key,
    const Enqueue& enqueue,
    bool record_at_once) {
  Branches alone(stream);
  Entry* entry = entries_.Find(key);
  if (entry == nullptr) {
    entry = &entries_.Insert(key, Entry());
    const Status status = enqueue(alone);
    return status.ok() && record_at_once ? Prepare(stream, key, enqueue) : status;
  }
  if (entry->graph.empty()) {
    RecordTo(entry, enqueue, /*may_wait=*/false);
  }
  if (entry->cannot_be_recorded) {
    return enqueue(alone);
  }
  ++launched_;
  return entry->graph.Launch(stream);
}

Status
CallGraphs::Prepare(CUstream stream, const internal::ProblemKey& key, const Enqueue& enqueue) {
  Entry* entry = entries_.Find(key);
  if (entry == nullptr) {
    entry = &entries_.Insert(key, Entry());
  }
  if (!entry->graph.empty()) {
    return {};
  }
  RecordTo(entry, enqueue, /*may_wait=*/true);
  return entry->graph.empty() ? Status() : entry->graph.Upload(stream);
}

void CallGraphs::RecordTo(Entry* entry, const Enqueue& enqueue, bool may_wait) {
  if (entry->cannot_be_recorded) {
    return;
  }
  const Result<RecordedGraph> recorded = RecordAside(enqueue);
  if (!may_wait && !spares_.empty()) {
    spares_.pop_back();
  }
  Result<CallGraph> graph = recorded.ok() ? CallGraph::Of(*recorded) : recorded.status();
  entry->cannot_be_recorded = !graph.ok();
  entry->graph = graph.ok() ? std::move(*graph) : CallGraph();
  if (may_wait && graph.ok() && spares_.size() < kSparesOfThread) {
    if (Result<CallGraph> spare = CallGraph::Of(*recorded); spare.ok()) {
      spares_.push_back(std::move(*spare));
    }
  }
}

Status CallGraphs::OpenBranches() {
  if (branches_ == nullptr) {
    CUstream stream = nullptr;
    if (Status status = ToStatus(
            Driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING),
            "opening a stream to record on");
        !status.ok()) {
      return status;
    }
    branches_ = std::make_unique<Branches>(stream);
  }
  return branches_->Open();
}

Result<RecordedGraph> CallGraphs::RecordAside(const Enqueue& enqueue) {
  const RelaxedCapture relaxed;
  if (Status status = OpenBranches(); !status.ok()) {
    return status;
  }
  return RecordGraph(*branches_, enqueue);
}

Result<CallGraph> CallGraphs::Record(const Enqueue& enqueue) {
  const Result<RecordedGraph> recorded = RecordAside(enqueue);
  if (!recorded.ok()) {
    return recorded.status();
  }
  return CallGraph::Of(*recorded);
}

}  // namespace gradsmith::cuda
