#ifndef GRADSMITH_PATTERNS_CUDA_MAP_H_
#define GRADSMITH_PATTERNS_CUDA_MAP_H_

#include <memory>
#include <string>

#include "core/plan.h"
#include "cuda/implementation.h"
#include "cuda/kernel_image.h"
#include "gradsmith/status.h"

/// The pattern `map` (patterns/map.h) on CUDA. A family of such operators has a table of one row:
///
///     constexpr std::array<Implementation, 1> kTable = {MapBy<kImage_elementwise_map>};
///
/// where elementwise_map.cu has GRADSMITH_MAP_KERNELS(SigmoidGrad, SigmoidGradMap) for each
/// operator.
namespace gradsmith::cuda {

/// MakeMapPlan returns the plan of a task whose kernels are in the image, by the operator's name.
Result<std::unique_ptr<internal::Plan>> MakeMapPlan(const KernelImage& image, const OpTask& task);

template <const KernelImage& kImage>
Result<std::unique_ptr<internal::Plan>>
BuildMap(const Target& /*target*/, const OpTask& task, const std::string& /*variant*/) {
  return MakeMapPlan(kImage, task);
}

template <const KernelImage& kImage>
inline constexpr Implementation MapBy =
    {.name = "own/map", .adds = true, .takes_all = true, .build = &BuildMap<kImage>};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_MAP_H_
