#include <cstddef>
#include <memory>
#include <string>

#include "core/device_backend.h"
#include "cuda/cudnn.h"
#include "cuda/device.h"
#include "cuda/driver.h"
#include "cuda/workspace_arena.h"

/// What core needs of the CUDA backend.
namespace gradsmith::internal {

Status CheckBuilt(Backend /*backend*/) {
  return {};
}

std::shared_ptr<WorkspaceArena> MakeWorkspaceArena(const ContextOptions& options) {
  return std::make_shared<WorkspaceArena>(options);
}

Status CheckCudaDevice(int ordinal) {
  if (Status status = cuda::DeviceInfo::Open(ordinal).status(); !status.ok()) {
    return status;
  }
  return cuda::LoadCudnn().status();
}

Result<void*> AllocateCudaMemory(int ordinal, std::size_t size) {
  const Result<const cuda::DeviceInfo*> device = cuda::DeviceInfo::Open(ordinal);
  if (!device.ok()) {
    return device.status();
  }
  const cuda::CurrentDevice current(**device);
  CUdeviceptr address = 0;
  if (Status status = cuda::ToStatus(
          cuda::Driver().cuMemAlloc(&address, size),
          "allocating " + std::to_string(size) + " bytes of device memory");
      !status.ok()) {
    return status;
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver gives addresses as integers
  return reinterpret_cast<void*>(address);
}

void FreeCudaMemory(int ordinal, void* address) {
  if (const Result<const cuda::DeviceInfo*> device = cuda::DeviceInfo::Open(ordinal); device.ok()) {
    const cuda::CurrentDevice current(**device);
    cuda::Driver().cuMemFree(reinterpret_cast<CUdeviceptr>(address));
  }
}

Status CopyCudaMemory(const Context& context, void* to, const void* from, std::size_t size) {
  const Result<const cuda::DeviceInfo*> device = cuda::DeviceInfo::Open(context.device().index);
  if (!device.ok()) {
    return device.status();
  }
  const cuda::CurrentDevice current(**device);
  if (Status status = cuda::ToStatus(
          cuda::Driver().cuMemcpyAsync(
              reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from), size,
              static_cast<CUstream>(context.options().stream)),
          "copying " + std::to_string(size) + " bytes");
      !status.ok()) {
    return status;
  }
  return SynchronizeCuda(context);
}

Status SynchronizeCuda(const Context& context) {
  const Result<const cuda::DeviceInfo*> device = cuda::DeviceInfo::Open(context.device().index);
  if (!device.ok()) {
    return device.status();
  }
  const cuda::CurrentDevice current(**device);
  return cuda::ToStatus(
      cuda::Driver().cuStreamSynchronize(static_cast<CUstream>(context.options().stream)),
      "waiting for the stream");
}

}  // namespace gradsmith::internal
