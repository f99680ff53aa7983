#include <memory>

#include "core/device_backend.h"
#include "cuda/cudnn.h"
#include "cuda/device.h"
#include "cuda/workspace_arena.h"

/// What core needs of the CUDA backend.
namespace gradsmith::internal {

std::shared_ptr<WorkspaceArena> MakeWorkspaceArena(const ContextOptions& options) {
  return std::make_shared<WorkspaceArena>(options);
}

Status CheckCudaDevice(int ordinal) {
  if (Status status = cuda::DeviceInfo::Open(ordinal).status(); !status.ok()) {
    return status;
  }
  return cuda::LoadCudnn().status();
}

}  // namespace gradsmith::internal
