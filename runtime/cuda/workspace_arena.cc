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

bool IsOfThread(CUstream stream) {
  return stream == CU_STREAM_PER_THREAD;
}

}  // namespace

WorkspaceArena::WorkspaceArena(const ContextOptions& options)
    : memory_(options),
      graph_memory_(memory_),
      limit_(options.workspace_limit),
      is_callers_(options.workspace != nullptr || options.workspace_size > 0) {
  if (is_callers_) {
    limit_ = std::min(limit_, options.workspace_size);
    blocks_[0].block = {options.workspace, options.workspace_size};
  }
}

WorkspaceArena::~WorkspaceArena() {
  if (is_callers_ || blocks_.empty()) {
    return;
  }
  const Result<const cuda::DeviceInfo*> device = cuda::DeviceInfo::Open(memory_.ordinal());
  if (!device.ok()) {
    return;  // in a fork's child the memory is the parent's
  }
  const cuda::CurrentDevice current(**device);
  if (IsOfThread(memory_.stream())) {
    cuda::Driver().cuCtxSynchronize();  // other threads' streams cannot be named here
  }
  for (const auto& [stream, blocks] : blocks_) {
    memory_.Free(blocks.block);
  }
}

Result<WorkspaceArena::Lease> WorkspaceArena::Take(std::size_t size) {
  Lease lease;
  lease.lock = std::unique_lock(mutex_);
  lease.capturing = cuda::IsCapturing(memory_.stream());
  if (size > 0 || is_callers_) {
    const Result<void*> address = TakeFor(lease.capturing, size);
    if (!address.ok()) {
      return address.status();
    }
    lease.address = *address;
  }
  return lease;
}

Result<void*> WorkspaceArena::TakeFor(bool capturing, std::size_t size) {
  if (size > limit_) {
    return OutOfMemory(
        "the call needs " + std::to_string(size) + " bytes of workspace; expected at most " +
        std::to_string(limit_) + ", the context's limit");
  }
  const Result<Blocks*> blocks = BlocksOfStream();
  if (!blocks.ok()) {
    return blocks.status();
  }
  if (is_callers_ || !capturing) {
    Status status = size > (*blocks)->block.size ? Grow(size, *blocks) : Status();
    return status.ok() ? Result<void*>((*blocks)->block.address) : std::move(status);
  }
  Status status = GrowCaptured(size, *blocks);
  return status.ok() ? Result<void*>((*blocks)->captured.address) : std::move(status);
}

Result<WorkspaceArena::Blocks*> WorkspaceArena::BlocksOfStream() {
  unsigned long long id = 0;
  if (IsOfThread(memory_.stream()) && !is_callers_) {
    if (Status status = cuda::ToStatus(
            cuda::Driver().cuStreamGetId(memory_.stream(), &id), "identifying a thread's stream");
        !status.ok()) {
      return status;
    }
  }
  return &blocks_[id];
}

std::size_t WorkspaceArena::Rounded(std::size_t size) const {
  return std::min((size + kGranularity - 1) / kGranularity * kGranularity, limit_);
}

Status WorkspaceArena::Grow(std::size_t size, Blocks* blocks) {
  // The stream runs what uses the old block before it is freed.
  memory_.Free(blocks->block);
  blocks->block = {};
  Result<Block> block = memory_.Allocate(Rounded(size));
  if (block.ok()) {
    blocks->block = *block;
  }
  return block.status();
}

Status WorkspaceArena::GrowCaptured(std::size_t size, Blocks* blocks) {
  const cuda::StreamCapture capture = cuda::CaptureOf(memory_.stream());
  if (capture.graph == nullptr) {
    return InvalidArgument(
        "the stream is being captured into a CUDA graph, and an error has spoilt the capture: it "
        "can only be ended");
  }
  if (blocks->capture == capture.id && size <= blocks->captured.size) {
    return {};
  }
  // What the stream's other calls needed, further calls of this capture are likely to need.
  Result<Block> block =
      graph_memory_.Allocate(Rounded(std::max(size, blocks->block.size)), capture.graph);
  if (block.ok()) {
    blocks->capture = capture.id;
    blocks->captured = *block;
  }
  return block.status();
}

}  // namespace gradsmith::internal
