#ifndef GRADSMITH_BATCH_NORM_CUDA_FORM_H_
#define GRADSMITH_BATCH_NORM_CUDA_FORM_H_

#include "batch_norm/cuda/task.h"
#include "cuda/staged_plan.h"
#include "gradsmith/status.h"

/// In what form a task's operands meet cuDNN, which takes one layout, aligned, and parameters of
/// few types: those that do not suit it are staged.
namespace gradsmith::batch_norm {

/// StagedForm is the task as cuDNN sees it. All operands that are present are dense, aligned to 16
/// bytes, and of one layout.
struct StagedForm : cuda::StagedTask {
  bool channels_last = false;
};

/// GraphForm returns the form for the graph API's norm-backward, which takes parameters of any type
/// but double, writes all three outputs, and adds to none. The error says what it does not take.
Result<StagedForm> GraphForm(const cuda::OpTask& task);

/// LegacyForm returns the form for the legacy API, which has parameters in float, or in double
/// beside double, and adds to dX or to both other gradients. The error says what it does not take.
Result<StagedForm> LegacyForm(const cuda::OpTask& task);

/// Expanded returns a large tensor's dims with ones inserted, so that there are at least four.
Dims Expanded(const Dims& dims);
/// DenseStrides returns strides of the form's layout.
Strides DenseStrides(const Dims& dims, bool channels_last);

}  // namespace gradsmith::batch_norm

#endif  // GRADSMITH_BATCH_NORM_CUDA_FORM_H_
