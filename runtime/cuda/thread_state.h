#ifndef GRADSMITH_CUDA_THREAD_STATE_H_
#define GRADSMITH_CUDA_THREAD_STATE_H_

#include <cuda.h>

#include <memory>
#include <set>

#include "core/plan.h"
#include "core/ready_plan.h"
#include "cuda/call_graph.h"
#include "cuda/cudnn.h"
#include "cuda/device.h"
#include "gradsmith/status.h"

namespace gradsmith::cuda {

/// CudnnHandle owns a cuDNN handle of one device. Threads must not share one.
class CudnnHandle {
 public:
  /// Create makes the handle on the current device.
  static Result<std::unique_ptr<CudnnHandle>> Create();
  CudnnHandle(const CudnnHandle&) = delete;
  CudnnHandle& operator=(const CudnnHandle&) = delete;
  CudnnHandle(CudnnHandle&&) = delete;
  CudnnHandle& operator=(CudnnHandle&&) = delete;
  ~CudnnHandle();

  [[nodiscard]] cudnnHandle_t raw() const { return raw_; }
  /// UseStream sets the stream that is run on.
  Status UseStream(CUstream stream);

 private:
  explicit CudnnHandle(cudnnHandle_t raw) : raw_(raw) {}

  cudnnHandle_t raw_;
  /// cuDNN's own default is the null stream.
  CUstream stream_ = nullptr;
};

/// ThreadState is what one thread keeps for one device: cuDNN's plans and handles are not to be
/// shared. When a thread ends, another takes its states over, so that plans outlive threads and
/// nothing of cuDNN is torn down while the program ends.
class ThreadState {
 public:
  /// OfThisThread returns the state for a device, which is current.
  static ThreadState& OfThisThread(const DeviceInfo& device);

  /// handle returns the thread's cuDNN handle; the error says why there is none.
  Result<CudnnHandle*> handle();

  internal::ReadyPlans& plans() { return plans_; }

  CallGraphs& call_graphs() { return call_graphs_; }

  /// Keep holds a plan that is in a CUDA graph of the caller's, whose kernels are the plan's, for
  /// as long as the process lives: when the graph goes is not told.
  void Keep(internal::Plan& plan) { captured_.insert(plan.shared_from_this()); }

 private:
  friend class ThreadStates;
  ThreadState();

  std::unique_ptr<CudnnHandle> handle_;
  internal::ReadyPlans plans_;
  CallGraphs call_graphs_;
  std::set<std::shared_ptr<internal::Plan>> captured_;
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_THREAD_STATE_H_
