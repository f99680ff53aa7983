#ifndef GRADSMITH_CONV_CUDA_FILL_PLAN_H_
#define GRADSMITH_CONV_CUDA_FILL_PLAN_H_

#include <memory>

#include "core/plan.h"
#include "cuda/device.h"
#include "cuda/op_task.h"

namespace gradsmith::conv {

/// MakeFillPlan returns a plan that makes of a call's results what its primitives are added to: the
/// bias of each channel (one rounding, and no pass more than adding the bias afterwards); and where
/// nothing is summed, zero, unless the result is added to. Null where nothing is to be filled.
std::unique_ptr<internal::Plan> MakeFillPlan(
    const cuda::DeviceInfo& device,
    const cuda::OpTask& call);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_FILL_PLAN_H_
