#ifndef GRADSMITH_TESTS_RUNTIME_CUDA_GRAPH_CAPTURE_H_
#define GRADSMITH_TESTS_RUNTIME_CUDA_GRAPH_CAPTURE_H_

#include <cuda.h>
#include <gtest/gtest.h>

#include <utility>

#include "cuda/driver.h"
#include "cuda/dynamic_library.h"
#include "support/device_memory.h"

/// CUDA graphs as callers make them.
namespace gradsmith::cuda {

struct CaptureApi {
  decltype(&::cuStreamBeginCapture) begin = nullptr;
  decltype(&::cuStreamEndCapture) end = nullptr;
  decltype(&::cuGraphInstantiateWithFlags) instantiate = nullptr;
  decltype(&::cuGraphLaunch) launch = nullptr;
  decltype(&::cuGraphDestroy) destroy = nullptr;
  decltype(&::cuGraphExecDestroy) destroy_exec = nullptr;
  decltype(&::cuStreamQuery) query = nullptr;

  static const CaptureApi& Get() {
    static const CaptureApi& api = *new CaptureApi(Load());
    return api;
  }

 private:
  static CaptureApi Load() {
    const Result<DynamicLibrary> library = DynamicLibrary::Open({"libcuda.so.1"});
    support::Require(library.status());
    CaptureApi api;
    support::Require(library->Find("cuStreamBeginCapture_v2", &api.begin));
    support::Require(library->Find("cuStreamEndCapture", &api.end));
    support::Require(library->Find("cuGraphInstantiateWithFlags", &api.instantiate));
    support::Require(library->Find("cuGraphLaunch", &api.launch));
    support::Require(library->Find("cuGraphDestroy", &api.destroy));
    support::Require(library->Find("cuGraphExecDestroy", &api.destroy_exec));
    support::Require(library->Find("cuStreamQuery", &api.query));
    return api;
  }
};

/// CudaGraph is what was given to a stream between Begin and End, to be run again and again.
class CudaGraph {
 public:
  explicit CudaGraph(CUstream stream) : stream_(stream) {}
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  CudaGraph(CudaGraph&&) = delete;
  CudaGraph& operator=(CudaGraph&&) = delete;
  ~CudaGraph() {
    if (exec_ != nullptr) {
      CaptureApi::Get().destroy_exec(exec_);
    }
    if (graph_ != nullptr) {
      CaptureApi::Get().destroy(graph_);
    }
  }

  void Begin(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
    support::Require(ToStatus(CaptureApi::Get().begin(stream_, mode), "beginning a capture"));
  }
  /// End returns what the driver says of the whole capture.
  Status End() {
    Status status = ToStatus(CaptureApi::Get().end(stream_, &graph_), "ending a capture");
    if (status.ok()) {
      status =
          ToStatus(CaptureApi::Get().instantiate(&exec_, graph_, 0), "instantiating a CUDA graph");
    }
    return status;
  }
  Status Launch() const { return Launch(stream_); }
  Status Launch(CUstream stream) const {
    return ToStatus(CaptureApi::Get().launch(exec_, stream), "launching a CUDA graph");
  }

 private:
  CUstream stream_;
  CUgraph graph_ = nullptr;
  CUgraphExec exec_ = nullptr;
};

/// CaptureStatus says where a stream's capture stands.
inline CUstreamCaptureStatus CaptureStatus(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  EXPECT_EQ(Driver().cuStreamIsCapturing(stream, &status), CUDA_SUCCESS);
  return status;
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_TESTS_RUNTIME_CUDA_GRAPH_CAPTURE_H_
