#ifndef GRADSMITH_PATTERNS_CUDA_WHOLE_LAUNCH_H_
#define GRADSMITH_PATTERNS_CUDA_WHOLE_LAUNCH_H_

#include <cstdint>
#include <optional>

#include "cuda/op_task.h"
#include "patterns/cuda/windows.h"
#include "patterns/cuda/windows_launch.h"
#include "patterns/cuda/windows_policy.h"
#include "patterns/windows_task.h"

/// How the kernels `whole` and `whole_channels` of the pattern `windows` are cut.
namespace gradsmith::cuda {

/// IsWhole returns whether each channel has one window, with all of its elements and no more.
bool IsWhole(const internal::WindowsTask& task);

/// MakeWholeLaunch returns nothing where the kernel `whole` does not serve.
std::optional<WholeLaunch> MakeWholeLaunch(
    const WholeOrder& order,
    const WindowsKind& kind,
    const OpTask& task,
    const internal::WindowsTask& windows,
    bool column_major);

/// ThreadsOf returns how many threads the kernel `whole` takes.
std::int64_t ThreadsOf(const WindowsKind& kind, const WholeLaunch& launch, int elements);

/// IsWorthSharing returns whether the kernel `whole` is quicker than others, which may take
/// contiguous tensors by tiles.
bool IsWorthSharing(
    const WholeOrder& order,
    const WindowsKind& kind,
    const WholeLaunch& launch,
    bool has_tiles);

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_WHOLE_LAUNCH_H_
