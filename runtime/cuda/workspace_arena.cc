#include "cuda/workspace_arena.h"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <string>

#include "cuda/capture.h"
#include "cuda/device.h"
#include "cuda/driver.h"

namespace gradsmith::internal {

namespace {

/// Small needs that differ from call to call do not make it grow each time.
constexpr std::size_t kGranularity = std::size_t{2} << 20U;

}  // namespace

WorkspaceArena::WorkspaceArena(const ContextOptions& options)
    : ordinal_(options.device.index),
      stream_(static_cast<CUstream>(options.stream)),
      allocator_(options.allocator),
      limit_(options.workspace_limit),
      is_callers_(options.workspace != nullptr || options.workspace_size > 0) {
  if (is_callers_) {
    block_ = {options.workspace, options.workspace_size};
    limit_ = std::min(limit_, options.workspace_size);
  }
}

WorkspaceArena::~WorkspaceArena() {
  if (is_callers_ || (block_.address == nullptr && kept_.empty())) {
    return;
  }
  const cuda::CurrentDevice current(*cuda::DeviceInfo::Open(ordinal_).value());
  kept_.push_back(block_);
  for (const Block& block : kept_) {
    Free(block);
  }
}

Result<WorkspaceArena::Lease> WorkspaceArena::Take(std::size_t size) {
  Lease lease;
  lease.lock = std::unique_lock(mutex_);
  const bool capturing = cuda::IsCapturing(stream_);
  if (size > block_.size) {
    if (Status status = capturing ? NoGrowth(size) : Grow(size); !status.ok()) {
      return status;
    }
  }
  captured_ = captured_ || (capturing && size > 0);
  lease.address = block_.address;
  lease.capturing = capturing;
  return lease;
}

Status WorkspaceArena::NoGrowth(std::size_t size) const {
  return InvalidArgument(
      "the call needs " + std::to_string(size) + " bytes of workspace, of which there are " +
      std::to_string(block_.size) +
      ", and memory cannot be allocated while the stream is captured into a CUDA graph; run or "
      "prepare the call once before (Context::ForPreparing)");
}

Status WorkspaceArena::Grow(std::size_t size) {
  if (is_callers_ || size > limit_) {
    return OutOfMemory(
        "the call needs " + std::to_string(size) + " bytes of workspace; expected at most " +
        std::to_string(limit_) + ", the context's limit");
  }
  // The stream runs what uses the old block before it is freed; a captured graph may run later.
  if (captured_) {
    kept_.push_back(block_);
    captured_ = false;
  } else {
    Free(block_);
  }
  block_ = {};
  const std::size_t rounded = (size + kGranularity - 1) / kGranularity * kGranularity;
  Result<Block> block = Allocate(std::min(rounded, limit_));
  if (!block.ok()) {
    return block.status();
  }
  block_ = *block;
  return {};
}

Result<WorkspaceArena::Block> WorkspaceArena::Allocate(std::size_t size) const {
  if (allocator_.allocate != nullptr) {
    void* address = allocator_.allocate(allocator_.user, size, stream_);
    if (address == nullptr) {
      return OutOfMemory(
          "the context's allocator has no " + std::to_string(size) + " bytes of workspace");
    }
    return Block{address, size};
  }
  CUdeviceptr address = 0;
  if (Status status = cuda::ToStatus(
          cuda::Driver().cuMemAllocAsync(&address, size, stream_),
          "allocating " + std::to_string(size) + " bytes of workspace");
      !status.ok()) {
    return status;
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver gives addresses as integers
  return Block{reinterpret_cast<void*>(address), size};
}

void WorkspaceArena::Free(const Block& block) const {
  if (block.address == nullptr) {
    return;
  }
  if (allocator_.free != nullptr) {
    allocator_.free(allocator_.user, block.address, block.size, stream_);
  } else {
    cuda::Driver().cuMemFreeAsync(reinterpret_cast<CUdeviceptr>(block.address), stream_);
  }
}

}  // namespace gradsmith::internal
