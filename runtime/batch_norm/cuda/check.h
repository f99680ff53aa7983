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
/// absent ones. Its `largest_error` is the largest of the channels' errors, each relative to what
/// was expected of the channel, and `not_finite` counts elements that are not finite and should be,
/// or the other way round. What was expected counts as no smaller than the terms that it is summed
/// from, which may cancel by chance. The task's addresses are on the current device; `before` holds
/// what outputs that were added to were before, laid out alike, and null for others. Nothing is
/// empty, and a channel has two samples or more.
Status CheckChannels(
    CUstream stream,
    const Task& task,
    const std::array<const void*, kMaxOperands>& before,
    std::span<const double> scalars,
    cuda::Difference* differences);

/// HurtfulFills returns how often a task's inputs are to be filled with data that hurts, so that
/// all kinds of it are among the channels that CheckChannels computes.
int HurtfulFills(const Task& task);

/// FillHurtful is the `number`-th time. It overwrites X and, of the gradient, dY, the statistics
/// and ReLU's bias. The task's addresses are on the current device.
Status FillHurtful(CUstream stream, const Task& task, int number);

}  // namespace gradsmith::batch_norm

#endif  // GRADSMITH_BATCH_NORM_CUDA_CHECK_H_
