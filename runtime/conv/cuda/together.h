#ifndef GRADSMITH_CONV_CUDA_TOGETHER_H_
#define GRADSMITH_CONV_CUDA_TOGETHER_H_

#include "core/plan.h"
#include "core/problem_key.h"
#include "cuda/run_op.h"
#include "gradsmith/status.h"

namespace gradsmith::conv {

/// FindCallPlan returns the plan of a call (call.h), which this thread keeps as it keeps plans: the
/// family's FamilyOnCuda::compose. Each primitive is chosen alone; then, where there are two, how
/// they are computed together. In benchmark mode they are timed in turn and side by side, and in
/// forms that share their copies, where either alone would be quicker without. The choice is
/// remembered as others are. In other modes, and where nothing may be timed, a rule decides.
Result<internal::Plan*> FindCallPlan(const cuda::TaskCall& op, internal::ProblemKey* key);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_TOGETHER_H_
