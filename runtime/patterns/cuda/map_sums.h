#ifndef GRADSMITH_PATTERNS_CUDA_MAP_SUMS_H_
#define GRADSMITH_PATTERNS_CUDA_MAP_SUMS_H_

#include <memory>

#include "core/plan.h"
#include "cuda/device.h"
#include "cuda/kernel_image.h"
#include "cuda/op_task.h"
#include "gradsmith/status.h"
#include "patterns/cuda/map_policy.h"
#include "patterns/map_task.h"

/// Maps of which outputs may be sums, for patterns/cuda/map.h.
namespace gradsmith::cuda {

/// MapWithSums is a map, and its outputs that are sums, if any, as bits.
struct MapWithSums {
  internal::MapTask map;
  unsigned sums = 0;
};

/// MakeMapSums is the type of MakeMapSumPlan.
using MakeMapSums = Result<std::unique_ptr<internal::Plan>>(
    const MapPolicy& policy,
    const KernelImage& image,
    const OpTask& task,
    const DeviceInfo& device,
    const MapWithSums& with_sums);

/// MakeMapSumPlan returns a plan with a pass for each sum, the last of which stores what else is
/// written; without sums, a plan with one pass.
MakeMapSums MakeMapSumPlan;

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_MAP_SUMS_H_
