#ifndef GRADSMITH_CUDA_WORKSPACE_ARENA_H_
#define GRADSMITH_CUDA_WORKSPACE_ARENA_H_

#include <cuda.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "gradsmith/context.h"
#include "gradsmith/status.h"

namespace gradsmith::internal {

/// WorkspaceArena is the scratch memory of the calls on one stream. They share one block, which
/// grows to the largest that was asked for: the stream runs them one after the other.
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

  /// Take returns at least `size` bytes, aligned to 256, on the current device. Growing while the
  /// stream is captured into a CUDA graph is refused; a block that a graph has captured is kept.
  Result<Lease> Take(std::size_t size);

  /// limit returns the most bytes that Take gives.
  [[nodiscard]] std::size_t limit() const { return limit_; }

 private:
  struct Block {
    void* address = nullptr;
    std::size_t size = 0;
  };

  Status Grow(std::size_t size);
  [[nodiscard]] Status NoGrowth(std::size_t size) const;
  [[nodiscard]] Result<Block> Allocate(std::size_t size) const;
  void Free(const Block& block) const;

  int ordinal_;
  CUstream stream_;
  Allocator allocator_;
  std::size_t limit_;
  bool is_callers_;
  std::mutex mutex_;
  Block block_;
  /// Blocks that captured graphs may still use.
  std::vector<Block> kept_;
  /// Whether block_ was given out while the stream was captured.
  bool captured_ = false;
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CUDA_WORKSPACE_ARENA_H_
