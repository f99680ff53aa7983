#include "cuda/workspace_memory.h"

#include <atomic>
#include <map>
#include <mutex>
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
  GraphBlock(const WorkspaceMemory& from, Block block) : memory(from), block(block) {}

  WorkspaceMemory memory;
  Block block;
  /// Whether the graph has gone, and all that was instantiated from it.
  std::atomic<bool> is_unused = false;
};

/// What graphs still use whose contexts have gone.
struct GraphMemory::Left {
  std::mutex mutex;
  std::vector<std::shared_ptr<GraphBlock>> blocks;
};

GraphMemory::Left& GraphMemory::LeftBehind() {
  static auto& left = *new Left;
  return left;
}

GraphMemory::~GraphMemory() {
  Left& left = LeftBehind();
  const std::scoped_lock lock(left.mutex);
  left.blocks.insert(left.blocks.end(), blocks_.begin(), blocks_.end());
  FreeUnused(&left.blocks);
}

Result<Block> GraphMemory::Allocate(std::size_t size, CUgraph graph) {
  FreeUnused(&blocks_);
  {
    Left& left = LeftBehind();
    const std::scoped_lock lock(left.mutex);
    FreeUnused(&left.blocks);
  }
  const Result<Block> allocated = memory_.AllocateAside(size);
  if (!allocated.ok()) {
    return allocated;
  }
  const auto block = std::make_shared<GraphBlock>(memory_, *allocated);
  if (Status status = GiveTo(graph, block); !status.ok()) {
    memory_.FreeAside(*allocated);
    return status;
  }
  blocks_.push_back(block);
  return allocated;
}

Status GraphMemory::GiveTo(CUgraph graph, const std::shared_ptr<GraphBlock>& block) const {
  constexpr const char* kDoing = "keeping workspace for a CUDA graph";
  const auto drop = [](void* holder) {
    // Called by a thread of the driver's, which must not call the driver.
    const std::unique_ptr<std::shared_ptr<GraphBlock>> held(
        static_cast<std::shared_ptr<GraphBlock>*>(holder));
    (*held)->is_unused = true;
  };
  auto holder = std::make_unique<std::shared_ptr<GraphBlock>>(block);
  CUuserObject object = nullptr;
  if (Status status = cuda::ToStatus(
          cuda::Driver().cuUserObjectCreate(
              &object, holder.get(), drop, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
          kDoing);
      !status.ok()) {
    return status;
  }
  static_cast<void>(holder.release());
  Status status = cuda::ToStatus(
      cuda::Driver().cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE), kDoing);
  if (!status.ok()) {
    cuda::Driver().cuUserObjectRelease(object, 1);
  }
  return status;
}

void GraphMemory::FreeUnused(std::vector<std::shared_ptr<GraphBlock>>* blocks) {
  std::erase_if(*blocks, [](const std::shared_ptr<GraphBlock>& block) {
    if (!block->is_unused) {
      return false;
    }
    const Result<const cuda::DeviceInfo*> device = cuda::DeviceInfo::Open(block->memory.ordinal());
    if (!device.ok()) {
      return false;  // in a fork's child the memory is the parent's
    }
    const cuda::CurrentDevice current(**device);
    block->memory.FreeAside(block->block);
    return true;
  });
}

}  // namespace gradsmith::internal
