#ifndef GRADSMITH_CORE_DEVICE_BACKEND_H_
#define GRADSMITH_CORE_DEVICE_BACKEND_H_

#include <cstddef>
#include <memory>

#include "gradsmith/context.h"
#include "gradsmith/status.h"

/// What core needs of the CUDA backend: defined in cuda/backend.cc, or in core/no_cuda where the
/// library is built without.
namespace gradsmith::internal {

/// CheckBuilt says what the build lacks to have a backend; it asks for no device.
Status CheckBuilt(Backend backend);

/// MakeWorkspaceArena makes what a CUDA context takes its workspace from; null without CUDA.
std::shared_ptr<WorkspaceArena> MakeWorkspaceArena(const ContextOptions& options);

/// CheckCudaDevice says what is missing to run on a device.
Status CheckCudaDevice(int ordinal);

/// Device memory for DeviceBuffer.
Result<void*> AllocateCudaMemory(int ordinal, std::size_t size);
void FreeCudaMemory(int ordinal, void* address);
/// CopyCudaMemory copies between host and device on the context's stream, and waits.
Status CopyCudaMemory(const Context& context, void* to, const void* from, std::size_t size);
Status SynchronizeCuda(const Context& context);

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_DEVICE_BACKEND_H_
