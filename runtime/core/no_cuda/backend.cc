#include <memory>

#include "core/device_backend.h"
#include "core/exceptions.h"
#include "core/no_cuda/no_cuda.h"

/// The CUDA backend of a build without it.
namespace gradsmith::internal {

Status NoCuda() {
  return CatchExceptions([] {
    return Unsupported("this gradsmith was built without CUDA (CMake option GRADSMITH_CUDA)");
  });
}

Status CheckBuilt(Backend backend) {
  return backend == Backend::kCpu ? Status() : NoCuda();
}

std::shared_ptr<WorkspaceArena> MakeWorkspaceArena(const ContextOptions& /*options*/) {
  return nullptr;
}

Status CheckCudaDevice(int /*ordinal*/) {
  return NoCuda();
}

Result<void*> AllocateCudaMemory(int /*ordinal*/, std::size_t /*size*/) {
  return NoCuda();
}

void FreeCudaMemory(int /*ordinal*/, void* /*address*/) {}

Status CopyCudaMemory(
    const Context& /*context*/,
    void* /*to*/,
    const void* /*from*/,
    std::size_t /*size*/) {
  return NoCuda();
}

Status SynchronizeCuda(const Context& /*context*/) {
  return NoCuda();
}

}  // namespace gradsmith::internal
