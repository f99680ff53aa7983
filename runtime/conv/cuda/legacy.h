#ifndef GRADSMITH_CONV_CUDA_LEGACY_H_
#define GRADSMITH_CONV_CUDA_LEGACY_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "conv/task.h"
#include "core/candidate.h"
#include "core/plan.h"
#include "cuda/cudnn.h"
#include "cuda/thread_state.h"
#include "gradsmith/status.h"

/// Candidates of cuDNN's legacy convolution API (cudnnConvolutionForward and its gradients). It has
/// symmetric pads only, and no double in NHWC.
namespace gradsmith::conv {

/// Their source.
inline constexpr const char* kLegacy = "legacy";

/// LegacyConvolution holds a task's descriptors, made once.
class LegacyConvolution;

/// IsTf32 is whether float may be multiplied in TF32 under a math type: FMA math alone keeps it
/// from that.
bool IsTf32(DataType type, cudnnMathType_t math);

/// ListLegacy returns what cuDNN's legacy heuristics offer, best first. An id is such as "algorithm
/// 1/math 2", an engine the algorithm's number.
Result<std::vector<internal::Candidate>> ListLegacy(cuda::CudnnHandle& handle, const Task& task);

/// BuildLegacyPlan builds the plan of such an id.
Result<std::unique_ptr<internal::Plan>>
BuildLegacyPlan(cuda::CudnnHandle& handle, const Task& task, const std::string& choice);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_LEGACY_H_
