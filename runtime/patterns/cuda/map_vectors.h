#ifndef GRADSMITH_PATTERNS_CUDA_MAP_VECTORS_H_
#define GRADSMITH_PATTERNS_CUDA_MAP_VECTORS_H_

#include "cuda/op_task.h"
#include "patterns/map_task.h"

/// Which tensors of a map lie in vectors of kVectorBytes.
namespace gradsmith::cuda {

/// Whether tensor t is read, or written in each element, by a map.
bool IsWhole(const internal::MapTask& map, const OpTask& task, int tensor);

/// Whether a tensor begins at a whole vector, and has its elements in the order of the index space,
/// with nothing between them: wherever a vector begins, it is whole.
bool IsInVectors(const internal::MapTask& map, const OpTask& task, int tensor);

/// Whether rows along the last dim are whole vectors in a tensor.
bool HasRowsOfVectors(const internal::MapTask& map, const OpTask& task, int tensor);

/// Whether a tensor is broadcast along some dim.
bool IsBroadcast(const internal::MapTask& map, int tensor);

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_MAP_VECTORS_H_
