#ifndef GRADSMITH_CUDA_WORKSPACE_MEMORY_H_
#define GRADSMITH_CUDA_WORKSPACE_MEMORY_H_

#include <cuda.h>

#include <cstddef>
#include <list>
#include <memory>
#include <utility>

#include "gradsmith/context.h"
#include "gradsmith/status.h"

namespace gradsmith::internal {

/// Block is device memory.
struct Block {
  void* address = nullptr;
  std::size_t size = 0;
};

/// WorkspaceMemory is where a context's workspace comes from: the caller's allocator, or the
/// driver's memory pool. Its functions want the device to be current.
class WorkspaceMemory {
 public:
  explicit WorkspaceMemory(const ContextOptions& options);

  /// Allocate returns memory for work that is enqueued on the context's stream.
  [[nodiscard]] Result<Block> Allocate(std::size_t size) const;
  /// Free gives memory back, behind the work that the context's stream has.
  void Free(const Block& block) const;

  /// AllocateAside returns memory for work on any stream, also while streams are being captured.
  [[nodiscard]] Result<Block> AllocateAside(std::size_t size) const;
  /// FreeAside gives memory back that no work uses any more; the context's stream may have gone.
  void FreeAside(const Block& block) const;

  [[nodiscard]] int ordinal() const { return ordinal_; }
  [[nodiscard]] CUstream stream() const { return stream_; }

 private:
  [[nodiscard]] Result<Block> AllocateOn(CUstream stream, std::size_t size) const;
  void FreeOn(CUstream stream, const Block& block) const;

  int ordinal_;
  CUstream stream_;
  Allocator allocator_;
};

/// GraphMemory is workspace that CUDA graphs of the caller's use: each has its own, for as long as
/// the graph lives or anything that was instantiated from it, and so also beyond its context.
class GraphMemory {
 public:
  explicit GraphMemory(WorkspaceMemory memory) : memory_(std::move(memory)) {}
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;
  GraphMemory(GraphMemory&&) = delete;
  GraphMemory& operator=(GraphMemory&&) = delete;
  ~GraphMemory();

  /// Allocate returns memory for a graph that is being captured, which keeps it.
  Result<Block> Allocate(std::size_t size, CUgraph graph);

 private:
  struct GraphBlock;

  using Blocks = std::list<std::shared_ptr<GraphBlock>>;
  struct Left;

  static Status GiveTo(CUgraph graph, const GraphBlock& block);
  /// Unused takes those out of the blocks that no graph uses any more.
  static Blocks Unused(Blocks* blocks);
  static void Free(const Blocks& unused);
  static Left& LeftBehind();
  static void FreeLeftBehind();

  WorkspaceMemory memory_;
  Blocks blocks_;
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CUDA_WORKSPACE_MEMORY_H_
