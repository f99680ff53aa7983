#ifndef GRADSMITH_BATCH_NORM_CUDA_GRAPH_H_
#define GRADSMITH_BATCH_NORM_CUDA_GRAPH_H_

#include "batch_norm/cuda/form.h"
#include "cuda/graph.h"
#include "gradsmith/status.h"

namespace gradsmith::batch_norm {

/// MakeGraph builds the operation graph (norm-backward) of a GraphForm, whose uids are the
/// gradient's operands.
Result<cuda::OperationGraph> MakeGraph(const cuda::GraphTarget& target, const StagedForm& form);

}  // namespace gradsmith::batch_norm

#endif  // GRADSMITH_BATCH_NORM_CUDA_GRAPH_H_
