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

/// LegacyConvolution holds a task's descriptors, made once.
class LegacyConvolution;

/// IsTf32 is whether float may be multiplied in TF32 under a math type: FMA math alone keeps it
/// from that.
bool IsTf32(DataType type, cudnnMathType_t math);

/// ListLegacy returns what cuDNN's legacy heuristics offer, best first, each id with `prefix`
/// before it.
Result<std::vector<internal::Candidate>>
ListLegacy(cuda::CudnnHandle& handle, const Task& task, const std::string& prefix);

/// BuildLegacyPlan builds the plan of "algorithm 1/math 2", the part of an id after its prefix.
Result<std::unique_ptr<internal::Plan>>
BuildLegacyPlan(cuda::CudnnHandle& handle, const Task& task, const std::string& choice);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_LEGACY_H_
