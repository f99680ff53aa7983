#ifndef GRADSMITH_CONV_CUDA_TENSOR_CORES_H_
#define GRADSMITH_CONV_CUDA_TENSOR_CORES_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "conv/task.h"
#include "core/candidate.h"
#include "core/plan.h"
#include "cuda/device.h"
#include "gradsmith/status.h"

/// Our own convolutions on tensor cores, as matrix products whose operands are gathered on the way:
/// of double, of float as sums of two numbers in TF32, which is as exact as float, of float in
/// TF32, and of half and bf16, which are summed in float and rounded once. All three primitives,
/// for channels last. In float, what is infinite makes NaN, but not in TF32, half and bf16; padding
/// is multiplied as zeros, by which an infinite factor makes NaN in any of them. Half and
/// bf16 go by lines too: taps along the last axis read what is copied once.
namespace gradsmith::conv {

/// The name of the source of candidates.
inline constexpr const char* kTensorCores = "own/tensor-cores";

/// ListTensorCores returns the candidates for a task, the most promising first; none where the
/// device or the kernels do not take it, or where tiles would be empty for the most part; of half
/// and bf16 few, and only where cuDNN's engines leave something to gain. Float is in TF32 where
/// that is allowed, and only there. All are one engine, which has no name here. A filter's
/// gradient is summed in slices, whose sums take workspace; in as few as the limit has room for,
/// down to one that takes none, and then whatever the channels.
std::vector<internal::Candidate> ListTensorCores(
    const cuda::DeviceInfo& device,
    const Task& task,
    bool allow_tf32,
    std::size_t workspace_limit);

/// BuildTensorCoresPlan makes the plan of a choice, whether it is listed or not; in TF32 only where
/// that is allowed.
Result<std::unique_ptr<internal::Plan>> BuildTensorCoresPlan(
    const cuda::DeviceInfo& device,
    const Task& task,
    bool allow_tf32,
    const std::string& choice);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_TENSOR_CORES_H_
