#include "cuda/workspace_memory.h"

#include <atomic>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "cuda/capture.h"
#include "cuda/device.h"
#include "cuda/driver.h"

namespace gradsmith::internal {

namespace {

/// AsideStream returns a stream of the current device that nobody captures and nothing waits for.
/// There is one for each device, as long as the process lives.
Result<CUstream> AsideStream(int ordinal) {
  static std::mutex mutex;
  static auto& streams = *new std::map<int, CUstream>;
  const std::scoped_lock lock(mutex);
  CUstream& stream = streams[ordinal];
  if (stream == nullptr) {
    if (Status status = cuda::ToStatus(
            cuda::Driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING),
            "opening a stream to allocate workspace on");
        !status.ok()) {
      return status;
    }
  }
  return stream;
}

}  // namespace

WorkspaceMemory::WorkspaceMemory(const ContextOptions& options)
    : ordinal_(options.device.index),
      stream_(static_cast<CUstream>(options.stream)),
      allocator_(options.allocator) {}

Result<Block> WorkspaceMemory::Allocate(std::size_t size) const {
  return AllocateOn(stream_, size);
}

void WorkspaceMemory::Free(const Block& block) const {
  FreeOn(stream_, block);
}

Result<Block> WorkspaceMemory::AllocateAside(std::size_t size) const {
  const cuda::RelaxedCapture relaxed;
  const Result<CUstream> aside = AsideStream(ordinal_);
  if (!aside.ok()) {
    return aside.status();
  }
  Result<Block> block = AllocateOn(*aside, size);
  if (!block.ok()) {
    return block;
  }
  // Other streams may use the memory once this one has come to it.
  if (Status status = cuda::ToStatus(
          cuda::Driver().cuStreamSynchronize(*aside), "waiting for memory for a CUDA graph");
      !status.ok()) {
    FreeOn(*aside, *block);
    return status;
  }
  return block;
}

void WorkspaceMemory::FreeAside(const Block& block) const {
  const cuda::RelaxedCapture relaxed;
  if (const Result<CUstream> aside = AsideStream(ordinal_); aside.ok()) {
    FreeOn(*aside, block);
  }
}

Result<Block> WorkspaceMemory::AllocateOn(CUstream stream, std::size_t size) const {
  if (allocator_.allocate != nullptr) {
    void* address = allocator_.allocate(allocator_.user, size, stream);
    if (address == nullptr) {
      return OutOfMemory(
          "the context's allocator has no " + std::to_string(size) + " bytes of workspace");
    }
    return Block{address, size};
  }
  CUdeviceptr address = 0;
  if (Status status = cuda::ToStatus(
          cuda::Driver().cuMemAllocAsync(&address, size, stream),
          "allocating " + std::to_string(size) + " bytes of workspace");
      !status.ok()) {
    return status;
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver gives addresses as integers
  return Block{reinterpret_cast<void*>(address), size};
}

void WorkspaceMemory::FreeOn(CUstream stream, const Block& block) const {
  if (block.address == nullptr) {
    return;
  }
  if (allocator_.free != nullptr) {
    allocator_.free(allocator_.user, block.address, block.size, stream);
  } else {
    cuda::Driver().cuMemFreeAsync(reinterpret_cast<CUdeviceptr>(block.address), stream);
  }
}

struct GraphMemory::GraphBlock {
  explicit GraphBlock(WorkspaceMemory from) : memory(std::move(from)) {}

  WorkspaceMemory memory;
  Block block;
  /// Whether the graph has gone, and all that was instantiated from it. What a thread of the
  /// driver's lets go of is this alone: the allocator's owner may call the driver as it goes.
  std::shared_ptr<std::atomic<bool>> is_unused = std::make_shared<std::atomic<bool>>(false);
};

/// What graphs still use whose contexts have gone.
struct GraphMemory::Left {
  std::mutex mutex;
  Blocks blocks;
};

GraphMemory::Left& GraphMemory::LeftBehind() {
  static auto& left = *new Left;
  return left;
}

GraphMemory::~GraphMemory() {
  Free(Unused(&blocks_));
  if (!blocks_.empty()) {
    Left& left = LeftBehind();
    const std::scoped_lock lock(left.mutex);
    left.blocks.splice(left.blocks.end(), blocks_);
  }
  FreeLeftBehind();
}

Result<Block> GraphMemory::Allocate(std::size_t size, CUgraph graph) {
  Free(Unused(&blocks_));
  FreeLeftBehind();
  // First what may throw: a block that nobody knows of would never be freed.
  Blocks made = {std::make_shared<GraphBlock>(memory_)};
  const std::shared_ptr<GraphBlock>& block = made.front();
  Result<Block> allocated = memory_.AllocateAside(size);
  if (!allocated.ok()) {
    return allocated;
  }
  block->block = *allocated;
  if (Status status = GiveTo(graph, *block); !status.ok()) {
    memory_.FreeAside(*allocated);
    return status;
  }
  blocks_.splice(blocks_.end(), made);
  return allocated;
}

Status GraphMemory::GiveTo(CUgraph graph, const GraphBlock& block) {
  constexpr const char* kDoing = "keeping workspace for a CUDA graph";
  const auto drop = [](void* holder) {
    // Called by a thread of the driver's, which must not call the driver.
    const std::unique_ptr<std::shared_ptr<std::atomic<bool>>> is_unused(
        static_cast<std::shared_ptr<std::atomic<bool>>*>(holder));
    **is_unused = true;
  };
  auto* holder = new (std::nothrow) std::shared_ptr(block.is_unused);
  if (holder == nullptr) {
    return OutOfMemory("");
  }
  CUuserObject object = nullptr;
  if (Status status = cuda::ToStatus(
          cuda::Driver().cuUserObjectCreate(
              &object, holder, drop, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
          kDoing);
      !status.ok()) {
    delete holder;
    return status;
  }
  Status status = cuda::ToStatus(
      cuda::Driver().cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE), kDoing);
  if (!status.ok()) {
    cuda::Driver().cuUserObjectRelease(object, 1);
  }
  return status;
}

GraphMemory::Blocks GraphMemory::Unused(Blocks* blocks) {
  Blocks unused;
  for (auto next = blocks->begin(); next != blocks->end();) {
    const auto block = next++;
    if (*(*block)->is_unused) {
      unused.splice(unused.end(), *blocks, block);
    }
  }
  return unused;
}

void GraphMemory::Free(const Blocks& unused) {
  for (const std::shared_ptr<GraphBlock>& block : unused) {
    const Result<const cuda::DeviceInfo*> device = cuda::DeviceInfo::Open(block->memory.ordinal());
    if (device.ok()) {  // not in a child of fork, whose parent has the memory
      const cuda::CurrentDevice current(**device);
      block->memory.FreeAside(block->block);
    }
  }
}

/// The lock is not held while memory is freed, by a function of a caller's perhaps.
void GraphMemory::FreeLeftBehind() {
  Left& left = LeftBehind();
  Blocks unused;
  {
    const std::scoped_lock lock(left.mutex);
    unused = Unused(&left.blocks);
  }
  Free(unused);
}

}  // namespace gradsmith::internal
