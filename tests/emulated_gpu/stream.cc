#include "emulated_gpu/stream.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <random>
#include <utility>

#include "emulated_gpu/block.h"
#include "emulated_gpu/device.h"

namespace emulated_gpu {

namespace {

thread_local CUcontext current_context = nullptr;
thread_local CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

/// The captures that have not ended. Its lock also keeps streams' frontiers.
struct Captures {
  std::mutex mutex;
  std::vector<std::shared_ptr<Capture>> all;
};

Captures& AllCaptures() {
  static auto& captures = *new Captures;
  return captures;
}

/// The destructors of user objects that nothing uses any more and that have not been called yet.
struct LateDestructors {
  std::mutex mutex;
  std::vector<std::pair<CUhostFn, void*>> all;
};

LateDestructors& AllLateDestructors() {
  static auto& destructors = *new LateDestructors;
  return destructors;
}

void RunLateDestructors() {
  std::vector<std::pair<CUhostFn, void*>> due;
  {
    const std::scoped_lock lock(AllLateDestructors().mutex);
    due.swap(AllLateDestructors().all);
  }
  for (const auto& [destroy, value] : due) {
    destroy(value);
  }
}

std::atomic<std::uint64_t>& Spent() {
  static std::atomic<std::uint64_t> nanoseconds = 0;
  return nanoseconds;
}

cuuint64_t NextId() {
  static std::atomic<cuuint64_t> last = 10;
  return ++last;
}

/// What CU_STREAM_PER_THREAD means on this thread with its current context.
CUstream StreamOfThread() {
  thread_local std::array<CUstream_st, kDevices> streams;
  CUstream_st& stream = streams.at(current_context->ordinal);
  if (stream.context == nullptr) {
    stream.context = current_context;
    stream.id = NextId();
  }
  return &stream;
}

void AddMissing(const std::vector<int>& from, std::vector<int>* to) {
  for (const int node : from) {
    if (std::find(to->begin(), to->end(), node) == to->end()) {
      to->push_back(node);
    }
  }
}

/// Whether every node comes before one of `ends` or is one.
bool AreAllJoined(const std::vector<CUgraph_st::Node>& nodes, const std::vector<int>& ends) {
  std::vector<bool> is_joined(nodes.size());
  for (const int end : ends) {
    is_joined[end] = true;
  }
  for (auto i = static_cast<int>(nodes.size()) - 1; i >= 0; --i) {
    for (const int before : nodes[i].after) {
      is_joined[before] = is_joined[before] || is_joined[i];
    }
  }
  return std::all_of(is_joined.begin(), is_joined.end(), [](bool joined) { return joined; });
}

CUresult Invalidate(const Frontier& frontier, CUresult result) {
  if (frontier.capture != nullptr) {
    frontier.capture->is_valid = false;
  }
  return result;
}

bool Forbids(const Capture& capture) {
  const bool is_of_this_thread = capture.thread == std::this_thread::get_id();
  switch (capture_mode) {
    case CU_STREAM_CAPTURE_MODE_GLOBAL:
      return capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL ||
             (is_of_this_thread && capture.mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    case CU_STREAM_CAPTURE_MODE_THREAD_LOCAL:
      return is_of_this_thread && capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    default:
      return false;
  }
}

}  // namespace

CUcontext CurrentContext() {
  return current_context;
}

void SetCurrentContext(CUcontext context) {
  current_context = context;
}

CUstream Resolve(CUstream stream) {
  static auto& defaults = *new std::array<CUstream_st, kDevices>;
  if (stream != nullptr && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD) {
    return stream;
  }
  if (current_context == nullptr) {
    return nullptr;
  }
  if (stream == CU_STREAM_PER_THREAD) {
    return StreamOfThread();
  }
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  CUstream_st& found = defaults.at(current_context->ordinal);
  found.context = current_context;
  found.id = 1 + current_context->ordinal;
  return &found;
}

void Spend(std::uint64_t nanoseconds) {
  Spent() += nanoseconds;
}

std::uint64_t SpentNanoseconds() {
  return Spent();
}

void RunGraph(const CUgraphExec_st& graph) {
  static const Order order = OrderOfEnvironment();
  thread_local std::mt19937 random(SeedOfEnvironment());
  std::vector<bool> is_done(graph.nodes.size());
  for (std::size_t left = graph.nodes.size(); left > 0; --left) {
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const std::vector<int>& after = graph.nodes[i].after;
      if (!is_done[i] &&
          std::all_of(after.begin(), after.end(), [&](int before) { return is_done[before]; })) {
        ready.push_back(i);
      }
    }
    const std::size_t next = order == Order::kForward    ? ready.front()
                             : order == Order::kBackward ? ready.back()
                                                         : ready[random() % ready.size()];
    is_done[next] = true;
    graph.nodes[next].work();
  }
}

CUresult Enqueue(CUstream stream, Work work) {
  stream = Resolve(stream);
  if (stream == nullptr) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  {
    const std::scoped_lock lock(AllCaptures().mutex);
    if (Frontier& frontier = stream->frontier; frontier.capture != nullptr) {
      if (!frontier.capture->is_valid) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
      }
      std::vector<CUgraph_st::Node>& nodes = frontier.capture->graph->nodes;
      nodes.push_back({std::move(work), frontier.nodes});
      frontier.nodes = {static_cast<int>(nodes.size()) - 1};
      return CUDA_SUCCESS;
    }
  }
  work();
  return CUDA_SUCCESS;
}

CUresult CheckNoCaptureForbids() {
  const std::scoped_lock lock(AllCaptures().mutex);
  CUresult result = CUDA_SUCCESS;
  for (const std::shared_ptr<Capture>& capture : AllCaptures().all) {
    if (Forbids(*capture)) {
      capture->is_valid = false;
      result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  }
  return result;
}

}  // namespace emulated_gpu

using emulated_gpu::AllCaptures;
using emulated_gpu::AllLateDestructors;
using emulated_gpu::Capture;
using emulated_gpu::CurrentContext;
using emulated_gpu::Frontier;
using emulated_gpu::Invalidate;
using emulated_gpu::Resolve;

extern "C" {

CUresult cuStreamCreate(CUstream* stream, unsigned /*flags*/) {
  if (CurrentContext() == nullptr) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  *stream = new CUstream_st{CurrentContext(), emulated_gpu::NextId(), {}};
  return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream stream) {
  delete stream;
  return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream) {
  emulated_gpu::RunLateDestructors();
  stream = Resolve(stream);
  if (stream == nullptr) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  const std::scoped_lock lock(AllCaptures().mutex);
  return stream->frontier.capture == nullptr
             ? CUDA_SUCCESS
             : Invalidate(stream->frontier, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

CUresult cuStreamQuery(CUstream stream) {
  return cuStreamSynchronize(stream);
}

CUresult cuStreamGetId(CUstream stream, unsigned long long* id) {
  stream = Resolve(stream);
  if (stream == nullptr) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  *id = stream->id;
  return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned /*flags*/) {
  stream = Resolve(stream);
  const std::scoped_lock lock(AllCaptures().mutex);
  Frontier& frontier = stream->frontier;
  if (event->frontier.capture == nullptr) {
    return frontier.capture == nullptr ? CUDA_SUCCESS
                                       : Invalidate(frontier, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  }
  if (frontier.capture == nullptr) {
    frontier = event->frontier;
    frontier.capture->streams.push_back(stream);
    return CUDA_SUCCESS;
  }
  if (frontier.capture != event->frontier.capture) {
    Invalidate(event->frontier, CUDA_SUCCESS);
    return Invalidate(frontier, CUDA_ERROR_STREAM_CAPTURE_MERGE);
  }
  emulated_gpu::AddMissing(event->frontier.nodes, &frontier.nodes);
  return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  stream = Resolve(stream);
  const std::scoped_lock lock(AllCaptures().mutex);
  const Capture* capture = stream->frontier.capture.get();
  *status = capture == nullptr  ? CU_STREAM_CAPTURE_STATUS_NONE
            : capture->is_valid ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo(
    CUstream stream,
    CUstreamCaptureStatus* status,
    cuuint64_t* id,
    CUgraph* graph,
    const CUgraphNode** /*dependencies*/,
#if CUDA_VERSION >= 13000
    const CUgraphEdgeData** /*edges*/,
#endif
    std::size_t* /*count*/) {
  cuStreamIsCapturing(stream, status);
  if (*status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    const std::scoped_lock lock(AllCaptures().mutex);
    const Capture& capture = *Resolve(stream)->frontier.capture;
    *id = capture.id;
    *graph = capture.graph.get();
  }
  return CUDA_SUCCESS;
}

CUuserObject_st::~CUuserObject_st() {
  const std::scoped_lock lock(AllLateDestructors().mutex);
  AllLateDestructors().all.emplace_back(destroy, value);
}

CUresult cuUserObjectCreate(
    CUuserObject* object,
    void* value,
    CUhostFn destroy,
    unsigned count,
    unsigned /*flags*/) {
  if (count != 1) {
    return CUDA_ERROR_INVALID_VALUE;  // a handle is one reference here
  }
  *object = new CUuserObject_st(value, destroy);
  return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned /*count*/) {
  delete object;
  return CUDA_SUCCESS;
}

CUresult
cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned count, unsigned flags) {
  if (graph == nullptr || count != 1 || flags != CU_GRAPH_USER_OBJECT_MOVE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  graph->kept.emplace_back(object);
  return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  if (Resolve(stream) != stream) {
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;  // default streams cannot be
  }
  const std::scoped_lock lock(AllCaptures().mutex);
  if (stream->frontier.capture != nullptr) {
    return CUDA_ERROR_ILLEGAL_STATE;
  }
  auto capture = std::make_shared<Capture>();
  capture->id = emulated_gpu::NextId();
  capture->origin = stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->streams = {stream};
  AllCaptures().all.push_back(capture);
  stream->frontier = {std::move(capture), {}};
  return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  *graph = nullptr;
  const std::scoped_lock lock(AllCaptures().mutex);
  const Frontier end = stream->frontier;
  if (end.capture == nullptr) {
    return CUDA_ERROR_ILLEGAL_STATE;
  }
  if (end.capture->origin != stream) {
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  if (end.capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
      end.capture->thread != std::this_thread::get_id()) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  std::erase(AllCaptures().all, end.capture);
  for (CUstream captured : end.capture->streams) {
    captured->frontier = {};
  }
  if (!end.capture->is_valid) {
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  }
  if (!emulated_gpu::AreAllJoined(end.capture->graph->nodes, end.nodes)) {
    return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  }
  *graph = end.capture->graph.release();
  return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  std::swap(*mode, emulated_gpu::capture_mode);
  return CUDA_SUCCESS;
}

CUresult
cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long /*flags*/) {
  *exec = new CUgraphExec_st{graph->nodes, graph->kept};
  return CUDA_SUCCESS;
}

CUresult cuGraphUpload(CUgraphExec /*exec*/, CUstream /*stream*/) {
  return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  stream = Resolve(stream);
  // Captured into another graph it is a part of that, and outlives its handle.
  return emulated_gpu::Enqueue(
      stream, stream->frontier.capture == nullptr
                  ? Work([exec] { emulated_gpu::RunGraph(*exec); })
                  : Work([copy = *exec] { emulated_gpu::RunGraph(copy); }));
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  delete exec;
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph) {
  delete graph;
  return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent* event, unsigned /*flags*/) {
  *event = new CUevent_st;
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event) {
  delete event;
  return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  stream = Resolve(stream);
  const std::scoped_lock lock(AllCaptures().mutex);
  event->frontier = stream->frontier;
  event->nanoseconds = emulated_gpu::SpentNanoseconds();
  return CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent event) {
  const std::scoped_lock lock(AllCaptures().mutex);
  return event->frontier.capture == nullptr
             ? CUDA_SUCCESS
             : Invalidate(event->frontier, CUDA_ERROR_CAPTURED_EVENT);
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  *milliseconds = static_cast<float>(end->nanoseconds - start->nanoseconds) * 1e-6F;
  return CUDA_SUCCESS;
}

}  // extern "C"
