#ifndef GRADSMITH_CONV_CUDA_GRAPH_H_
#define GRADSMITH_CONV_CUDA_GRAPH_H_

#include "conv/task.h"
#include "cuda/graph.h"
#include "gradsmith/status.h"

namespace gradsmith::conv {

/// The source of candidates of cuDNN's graph API.
inline constexpr const char* kGraph = "graph";

/// MakeGraph builds the operation graph of a task, whose uids are its operands.
Result<cuda::OperationGraph> MakeGraph(const cuda::GraphTarget& target, const Task& task);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_GRAPH_H_
