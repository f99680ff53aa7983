#ifndef GRADSMITH_PATTERNS_CUDA_MAP_H_
#define GRADSMITH_PATTERNS_CUDA_MAP_H_

#include <memory>
#include <string>

#include "core/plan.h"
#include "cuda/implementation.h"
#include "cuda/kernel_image.h"
#include "gradsmith/status.h"

/// The pattern `map` (patterns/map.h) on CUDA. patterns/run_map.h runs operators that have formulas by
/// it. A family of handwritten functors has a table of one row:
///
///     constexpr std::array<Implementation, 1> kTable = {MapBy<kImage_prelu_map>};
///
/// where prelu_map.cu has GRADSMITH_MAP_KERNELS(PReluGrad, PReluGradMap) for each operator. Operators with sums (GRADSMITH_MAP_SUM_KERNELS too) have a table of their own, of
/// MapBy<kImage, true>.
namespace gradsmith::cuda {

/// MakeMapPlan returns the plan of a task whose kernels are in the image, by the operator's name.
/// `has_sums` says whether outputs may be sums.
Result<std::unique_ptr<internal::Plan>>
MakeMapPlan(const KernelImage& image, const OpTask& task, const Target& target, bool has_sums);

template <const KernelImage& kImage, bool kSums>
Result<std::unique_ptr<internal::Plan>>
BuildMap(const Target& target, const OpTask& task, const std::string& /*variant*/) {
  return MakeMapPlan(kImage, task, target, kSums);
}

template <const KernelImage& kImage, bool kSums = false>
inline constexpr Implementation MapBy =
    {.name = "own/map", .adds = true, .takes_all = true, .build = &BuildMap<kImage, kSums>};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_MAP_H_
