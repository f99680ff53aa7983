#ifndef GRADSMITH_TESTS_EMULATED_GPU_STREAM_H_
#define GRADSMITH_TESTS_EMULATED_GPU_STREAM_H_

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

/// What a driver's handles are on the emulated GPU. A stream does what it is given at once, in the
/// thread that gives it, unless it is captured into a graph.

using Work = std::function<void()>;

struct CUctx_st {
  int ordinal = 0;
};

/// What a graph keeps until it is destroyed, with all that was instantiated from it.
struct CUuserObject_st {
  CUuserObject_st(void* value, CUhostFn destroy) : value(value), destroy(destroy) {}
  CUuserObject_st(const CUuserObject_st&) = delete;
  CUuserObject_st& operator=(const CUuserObject_st&) = delete;
  /// As the driver does, calls `destroy` some time later: when a stream is waited for.
  ~CUuserObject_st();

  void* value;
  CUhostFn destroy;
};

struct CUgraph_st {
  struct Node {
    Work work;
    /// The nodes that come before.
    std::vector<int> after;
  };
  std::vector<Node> nodes;
  std::vector<std::shared_ptr<CUuserObject_st>> kept;
};

struct CUgraphExec_st {
  std::vector<CUgraph_st::Node> nodes;
  std::vector<std::shared_ptr<CUuserObject_st>> kept;
};

namespace emulated_gpu {

struct Capture {
  cuuint64_t id = 0;
  CUstream origin = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;
  bool is_valid = true;
  std::unique_ptr<CUgraph_st> graph = std::make_unique<CUgraph_st>();
  std::vector<CUstream> streams;
};

/// A place in a capture: its nodes that come before what follows.
struct Frontier {
  std::shared_ptr<Capture> capture;
  std::vector<int> nodes;
};

/// The GPU's time goes by what it is given to do, not by a clock: what a test measures does not
/// depend on what else the machine does. Spend lets time pass, SpentNanoseconds tells how much has.
void Spend(std::uint64_t nanoseconds);
std::uint64_t SpentNanoseconds();

/// Runs the nodes of a graph, in an order that their dependencies allow.
void RunGraph(const CUgraphExec_st& graph);

/// Does what a stream is given, or adds it to the graph that the stream is captured into.
CUresult Enqueue(CUstream stream, Work work);

/// An error where this thread may not do now what would disturb a capture.
CUresult CheckNoCaptureForbids();

CUcontext CurrentContext();
void SetCurrentContext(CUcontext context);
/// The default stream of the current context, or this thread's, for those of their names, and other
/// streams themselves.
CUstream Resolve(CUstream stream);

}  // namespace emulated_gpu

struct CUstream_st {
  CUcontext context = nullptr;
  cuuint64_t id = 0;
  emulated_gpu::Frontier frontier;
};

struct CUevent_st {
  std::uint64_t nanoseconds = 0;
  emulated_gpu::Frontier frontier;
};

#endif  // GRADSMITH_TESTS_EMULATED_GPU_STREAM_H_
