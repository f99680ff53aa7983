#ifndef GRADSMITH_CUDA_DRIVER_H_
#define GRADSMITH_CUDA_DRIVER_H_

#include <cuda.h>

#include <string_view>

#include "gradsmith/status.h"

/// The CUDA driver, loaded when first asked for. All of gradsmith speaks the driver API: it needs
/// no CUDA runtime library, and kernels are loaded from a constant image, without static
/// initialisers.

// Every function that is called, by its name in cuda.h (whose macros pick the version).
#define GRADSMITH_DRIVER_FUNCTIONS(X)  \
  X(cuInit)                            \
  X(cuDriverGetVersion)                \
  X(cuGetErrorName)                    \
  X(cuGetErrorString)                  \
  X(cuDeviceGet)                       \
  X(cuDeviceGetCount)                  \
  X(cuDeviceGetName)                   \
  X(cuDeviceGetAttribute)              \
  X(cuDeviceTotalMem)                  \
  X(cuDevicePrimaryCtxRetain)          \
  X(cuCtxGetCurrent)                   \
  X(cuCtxSetCurrent)                   \
  X(cuCtxSynchronize)                  \
  X(cuMemGetInfo)                      \
  X(cuMemAlloc)                        \
  X(cuMemFree)                         \
  X(cuMemAllocAsync)                   \
  X(cuMemFreeAsync)                    \
  X(cuMemcpyAsync)                     \
  X(cuMemsetD8Async)                   \
  X(cuStreamCreate)                    \
  X(cuStreamDestroy)                   \
  X(cuStreamSynchronize)               \
  X(cuStreamWaitEvent)                 \
  X(cuStreamIsCapturing)               \
  X(cuStreamGetCaptureInfo)            \
  X(cuStreamBeginCapture)              \
  X(cuStreamEndCapture)                \
  X(cuGraphInstantiateWithFlags)       \
  X(cuGraphLaunch)                     \
  X(cuGraphUpload)                     \
  X(cuGraphExecDestroy)                \
  X(cuGraphDestroy)                    \
  X(cuGraphRetainUserObject)           \
  X(cuUserObjectCreate)                \
  X(cuUserObjectRelease)               \
  X(cuStreamGetId)                     \
  X(cuThreadExchangeStreamCaptureMode) \
  X(cuEventCreate)                     \
  X(cuEventDestroy)                    \
  X(cuEventRecord)                     \
  X(cuEventSynchronize)                \
  X(cuEventElapsedTime)                \
  X(cuLibraryLoadData)                 \
  X(cuLibraryGetKernelCount)           \
  X(cuLibraryEnumerateKernels)         \
  X(cuKernelGetName)                   \
  X(cuKernelSetAttribute)              \
  X(cuLaunchKernel)                    \
  X(cuLaunchCooperativeKernel)

namespace gradsmith::cuda {

/// DriverApi holds the driver's functions under their own names.
struct DriverApi {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a member is declared
#define GRADSMITH_MEMBER(name) decltype(&::name) name = nullptr;
  GRADSMITH_DRIVER_FUNCTIONS(GRADSMITH_MEMBER)
#undef GRADSMITH_MEMBER
};

/// LoadDriver loads and initialises the driver once; the error says what is missing on this
/// machine.
const Result<DriverApi>& LoadDriver();

/// CheckDriver says why the driver cannot be used: what is missing on this machine, or that this is
/// the child of a fork whose parent has loaded it. NVIDIA's driver then refuses every call.
Status CheckDriver();

/// Driver returns the functions; call only after LoadDriver has succeeded, as it has wherever a
/// Device exists.
const DriverApi& Driver();

/// ToStatus is success, or an error that says what was being done and gives the driver's name and
/// text for the code. Running out of memory keeps its own code.
Status ToStatus(CUresult result, std::string_view doing);

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_DRIVER_H_
