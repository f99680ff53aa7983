#ifndef GRADSMITH_BATCH_NORM_CUDA_CHECK_H_
#define GRADSMITH_BATCH_NORM_CUDA_CHECK_H_

#include "cuda/implementation.h"

/// The other opinion that every candidate is held to: batch normalization by its definition, summed
/// in double, one block for each channel. It shares nothing with our own kernels.
namespace gradsmith::batch_norm {

/// The comparison computes up to 64 of the channels anew, spread over all. What is held to the
/// bounds of the output's type is the largest of the channels' errors, each relative to what was
/// expected of the channel, which counts as no smaller than the terms that it is summed from: they
/// may cancel by chance. Nothing is empty, and a channel has two samples or more. Data that hurts
/// overwrites X and, of the gradient, dY, the statistics and ReLU's bias.
extern const cuda::Comparison kChannelsComparison;

}  // namespace gradsmith::batch_norm

#endif  // GRADSMITH_BATCH_NORM_CUDA_CHECK_H_
