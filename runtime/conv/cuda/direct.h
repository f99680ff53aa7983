#ifndef GRADSMITH_CONV_CUDA_DIRECT_H_
#define GRADSMITH_CONV_CUDA_DIRECT_H_

#include <cuda.h>

#include <cstdint>
#include <memory>

#include "conv/task.h"
#include "core/plan.h"
#include "cuda/device.h"
#include "cuda/tensor_ops.h"
#include "gradsmith/status.h"

/// Our own convolution, by the definition: one thread sums one element of the result, or a block
/// some elements whose sums are long. It takes any problem, is slow, and stands for two things: the
/// candidate that is always there, and the other opinion that every faster one is held to.
namespace gradsmith::conv {

/// The candidate's name.
inline constexpr const char* kDirect = "own/direct";

/// DirectSumsByBlocks says whether Direct has blocks of threads add up the terms of an element,
/// where they are many and elements too few to have a thread each.
bool DirectSumsByBlocks(const Task& task);

/// Direct computes the primitive's result (y, x or w), all elements, summing float, half and bf16
/// in float, but by blocks in double, and double in double. Where `accumulate`, the result is added
/// to what is there. Addresses are on the current device.
Status Direct(
    const cuda::DeviceInfo& device,
    CUstream stream,
    Primitive primitive,
    const Problem& problem,
    void* x,
    void* w,
    void* y,
    bool accumulate);

/// MakeDirectPlan returns a plan that computes the task by Direct.
std::unique_ptr<internal::Plan> MakeDirectPlan(const cuda::DeviceInfo& device, const Task& task);

/// CheckSample computes some thousands of the result's elements anew, summing in double, and writes
/// how far those in memory are from them to device memory. The corners, a border of each axis, and
/// elements spread over the whole are among them; a result of up to `kFullCheck` elements is
/// checked whole. Of sums over very many positions it is fewer, at least 164 of a large sample and
/// 70 of a small one. Where `before` is not null, it holds what the result was before it was added
/// to, laid out alike.
inline constexpr long long kFullCheck = 8192;
/// A small sample, for what is checked beside the usual, is an eighth of a large one.
enum class SampleSize : unsigned char { kLarge, kSmall };
Status CheckSample(
    const cuda::DeviceInfo& device,
    CUstream stream,
    Primitive primitive,
    const Problem& problem,
    const void* x,
    const void* w,
    const void* y,
    const void* before,
    cuda::Difference* difference,
    SampleSize size = SampleSize::kLarge);

/// CheckedElements returns how many elements CheckSample computes.
std::int64_t
CheckedElements(Primitive primitive, const Problem& problem, SampleSize size = SampleSize::kLarge);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_DIRECT_H_
