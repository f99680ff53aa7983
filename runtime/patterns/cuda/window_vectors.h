#ifndef GRADSMITH_PATTERNS_CUDA_WINDOW_VECTORS_H_
#define GRADSMITH_PATTERNS_CUDA_WINDOW_VECTORS_H_

#include <cstdint>
#include <initializer_list>
#include <utility>

#include "cuda/op_task.h"
#include "gradsmith/tensor.h"
#include "patterns/cuda/windows.h"
#include "patterns/windows_task.h"

/// How tensors of the pattern `windows` lie in memory: which have vectors of 16 bytes.
namespace gradsmith::cuda {

/// HasVectors returns whether 16 bytes of neighbours along a dim, which have the stride 1, lie
/// whole in a tensor where the other dims have these counts and strides.
bool HasVectors(
    const TensorRef& tensor,
    int elements,
    std::initializer_list<std::pair<std::int64_t, std::int64_t>> others);

/// HasChannels returns whether all tensors have vectors along the channels.
bool HasChannels(
    const WindowsKind& kind,
    const OpTask& task,
    const internal::WindowsTask& windows,
    int elements);

/// AreContiguous returns whether all tensors are aligned, and contiguous with the spatial axes
/// last.
bool AreContiguous(
    const WindowsKind& kind,
    const OpTask& task,
    const internal::WindowsTask& windows);

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_WINDOW_VECTORS_H_
