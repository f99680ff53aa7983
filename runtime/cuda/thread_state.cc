#include "cuda/thread_state.h"

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "cuda/cudnn.h"

namespace gradsmith::cuda {

namespace {

/// A plan takes some 200 KiB of host memory.
constexpr std::size_t kPlansOfThread = 2048;

}  // namespace

Result<std::unique_ptr<CudnnHandle>> CudnnHandle::Create() {
  if (!LoadCudnn().ok()) {
    return LoadCudnn().status();
  }
  cudnnHandle_t raw = nullptr;
  if (Status status = ToStatus(Cudnn().cudnnCreate(&raw), "opening " + CudnnVersionText());
      !status.ok()) {
    return status;
  }
  return std::unique_ptr<CudnnHandle>(new CudnnHandle(raw));
}

CudnnHandle::~CudnnHandle() {
  Cudnn().cudnnDestroy(raw_);
}

Status CudnnHandle::UseStream(CUstream stream) {
  if (stream == stream_) {
    return {};
  }
  const cudnnStatus_t result = Cudnn().cudnnSetStream(raw_, reinterpret_cast<cudaStream_t>(stream));
  if (result != CUDNN_STATUS_SUCCESS) {
    return ToStatus(result, "setting cuDNN's stream");
  }
  stream_ = stream;
  return {};
}

/// ThreadStates is what one thread has taken from the states that no thread uses.
class ThreadStates {
 public:
  ThreadStates() = default;
  ThreadStates(const ThreadStates&) = delete;
  ThreadStates& operator=(const ThreadStates&) = delete;
  ThreadStates(ThreadStates&&) = delete;
  ThreadStates& operator=(ThreadStates&&) = delete;
  ~ThreadStates() {
    Free& free = FreeStates();
    const std::scoped_lock lock(free.mutex);
    for (auto& [ordinal, state] : states_) {
      free.states[ordinal].push_back(std::move(state));
    }
  }

  ThreadState& Of(const DeviceInfo& device) {
    if (last_ordinal_ != device.ordinal()) {
      std::unique_ptr<ThreadState>& state = states_[device.ordinal()];
      if (state == nullptr) {
        state = Take(device.ordinal());
      }
      last_ = state.get();
      last_ordinal_ = device.ordinal();
    }
    return *last_;
  }

 private:
  struct Free {
    std::mutex mutex;
    std::map<int, std::vector<std::unique_ptr<ThreadState>>> states;
  };

  static Free& FreeStates() {
    static auto& free = *new Free;
    return free;
  }

  static std::unique_ptr<ThreadState> Take(int ordinal) {
    Free& free = FreeStates();
    const std::scoped_lock lock(free.mutex);
    std::vector<std::unique_ptr<ThreadState>>& states = free.states[ordinal];
    if (states.empty()) {
      return std::unique_ptr<ThreadState>(new ThreadState);
    }
    std::unique_ptr<ThreadState> state = std::move(states.back());
    states.pop_back();
    return state;
  }

  std::map<int, std::unique_ptr<ThreadState>> states_;
  ThreadState* last_ = nullptr;
  int last_ordinal_ = -1;
};

ThreadState::ThreadState() : plans_(kPlansOfThread) {}

ThreadState& ThreadState::OfThisThread(const DeviceInfo& device) {
  thread_local ThreadStates states;
  return states.Of(device);
}

Result<CudnnHandle*> ThreadState::handle() {
  if (handle_ == nullptr) {
    Result<std::unique_ptr<CudnnHandle>> handle = CudnnHandle::Create();
    if (!handle.ok()) {
      return handle.status();
    }
    handle_ = std::move(*handle);
  }
  return handle_.get();
}

}  // namespace gradsmith::cuda
