#ifndef GRADSMITH_BATCH_NORM_CUDA_CHECK_H_
#define GRADSMITH_BATCH_NORM_CUDA_CHECK_H_

#include <cuda.h>

#include <array>
#include <span>

#include "batch_norm/cuda/task.h"
#include "cuda/tensor_ops.h"
#include "gradsmith/status.h"

/// The other opinion that every candidate is held to: batch normalization by its definition, summed
/// in double, one block for each channel. It shares nothing with our own kernels.
namespace gradsmith::batch_norm {

/// CheckChannels computes up to 64 of the channels anew, spread over all, and writes how far the
/// outputs in memory are from them to device memory: one difference for each output, zero for
/// absent ones. What was expected counts as no smaller than the terms that it is summed from, which
/// may cancel by chance. The task's addresses are on the current device; `before` holds what
/// outputs that were added to were before, laid out alike, and null for others. Nothing is empty,
/// and a channel has two samples or more.
Status CheckChannels(
    CUstream stream,
    const Task& task,
    const std::array<const void*, kMaxOperands>& before,
    std::span<const double> scalars,
    cuda::Difference* differences);

}  // namespace gradsmith::batch_norm

#endif  // GRADSMITH_BATCH_NORM_CUDA_CHECK_H_
