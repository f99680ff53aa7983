#ifndef GRADSMITH_CUDA_WORKSPACE_ARENA_H_
#define GRADSMITH_CUDA_WORKSPACE_ARENA_H_

#include <cuda.h>

#include <cstddef>
#include <map>
#include <mutex>

#include "cuda/workspace_memory.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"

namespace gradsmith::internal {

/// WorkspaceArena is the scratch memory of the calls on one stream. They share one block, which
/// grows to the largest that was asked for: the stream runs them one after the other. The calls
/// that are captured into a CUDA graph share another, which is the graph's alone: it may run
/// beside whatever follows on the stream, and beside other graphs.
class WorkspaceArena {
 public:
  explicit WorkspaceArena(const ContextOptions& options);
  WorkspaceArena(const WorkspaceArena&) = delete;
  WorkspaceArena& operator=(const WorkspaceArena&) = delete;
  WorkspaceArena(WorkspaceArena&&) = delete;
  WorkspaceArena& operator=(WorkspaceArena&&) = delete;
  ~WorkspaceArena();

  /// Lease is the block for one call. While it lives no other thread enqueues work that uses the
  /// block, so a call's launches follow each other on the stream.
  struct Lease {
    std::unique_lock<std::mutex> lock;
    void* address = nullptr;
    /// Whether the stream is being captured into a CUDA graph.
    bool capturing = false;
  };

  /// Take returns at least `size` bytes, aligned to 256, on the current device.
  Result<Lease> Take(std::size_t size);

  /// limit returns the most bytes that Take gives.
  [[nodiscard]] std::size_t limit() const { return limit_; }

 private:
  /// What the calls on one stream share.
  struct Blocks {
    Block block;
    /// The capture that `captured` was given to, by StreamCapture's number; 0 for none.
    cuuint64_t capture = 0;
    Block captured;
  };

  /// BlocksOfStream returns those of the stream that this thread means by the context's.
  Result<Blocks*> BlocksOfStream();
  Result<void*> TakeFor(bool capturing, std::size_t size);
  Status Grow(std::size_t size, Blocks* blocks);
  Status GrowCaptured(std::size_t size, Blocks* blocks);
  [[nodiscard]] std::size_t Rounded(std::size_t size) const;

  WorkspaceMemory memory_;
  GraphMemory graph_memory_;
  std::size_t limit_;
  bool is_callers_;
  std::mutex mutex_;
  /// One entry, but for CU_STREAM_PER_THREAD, which is another stream in each thread.
  std::map<unsigned long long, Blocks> blocks_;
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CUDA_WORKSPACE_ARENA_H_
