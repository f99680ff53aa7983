#ifndef GRADSMITH_PATTERNS_CUDA_SITE_LAUNCH_H_
#define GRADSMITH_PATTERNS_CUDA_SITE_LAUNCH_H_

#include <cstdint>

#include "patterns/cuda/windows.h"
#include "patterns/cuda/windows_launch.h"
#include "patterns/windows_task.h"

/// How the kernels `channels` and `elements` of the pattern `windows` are cut.
namespace gradsmith::cuda {

/// MakeSiteLaunch has each thread compute `lanes` neighbouring channels of the tensor that is
/// written: a vector of them, or one. Threads go along memory: that tensor has the strides.
WindowsLaunch MakeSiteLaunch(
    const WindowsKind& kind,
    const internal::WindowsTask& task,
    const internal::PerDim<std::int64_t>& strides,
    std::int64_t lanes);

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_SITE_LAUNCH_H_
