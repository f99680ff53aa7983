#ifndef GRADSMITH_PATTERNS_CUDA_MAP_H_
#define GRADSMITH_PATTERNS_CUDA_MAP_H_

#include <memory>

#include "core/plan.h"
#include "cuda/implementation.h"
#include "cuda/kernel_image.h"
#include "gradsmith/status.h"
#include "patterns/cuda/map_policy.h"
#include "patterns/cuda/map_sums.h"

/// The pattern `map` (patterns/map.h) on CUDA. patterns/run_map.h runs operators by it.
namespace gradsmith::cuda {

/// MakeMapPlan returns the plan of a task whose kernels are in the image, by the operator's name.
/// `policy` says how it is cut, MapPolicyOf the device where nothing else is asked; `make_sums` is
/// MakeMapSumPlan where outputs may be sums, else null, so that the program needs no kernel for
/// them.
Result<std::unique_ptr<internal::Plan>> MakeMapPlan(
    const MapPolicy& policy,
    const KernelImage& image,
    const OpTask& task,
    const Target& target,
    MakeMapSums* make_sums);

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_MAP_H_
