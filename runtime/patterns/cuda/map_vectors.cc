#include "patterns/cuda/map_vectors.h"

#include <cstdint>

#include "cuda/alignment.h"

namespace gradsmith::cuda {

namespace {

/// Bits are in words, of which each vector's are in one.
bool IsAligned(const internal::MapTask& map, const OpTask& task, int tensor) {
  const bool is_of_bits = (task.op->bits >> static_cast<unsigned>(tensor) & 1U) != 0;
  return is_of_bits || AlignmentClass(map.tensors[tensor], task.lead().type) == kVectorBytes;
}

}  // namespace

bool IsWhole(const internal::MapTask& map, const OpTask& task, int tensor) {
  return !task.is_output(tensor) || (map.stores >> (tensor - task.inputs()) & 1U) != 0;
}

bool IsInVectors(const internal::MapTask& map, const OpTask& task, int tensor) {
  std::int64_t stride = 1;
  for (int axis = map.rank - 1; axis >= 0; --axis) {
    if (map.strides[tensor][axis] != stride) {
      return false;
    }
    stride *= map.dims[axis];
  }
  return IsAligned(map, task, tensor);
}

bool HasRowsOfVectors(const internal::MapTask& map, const OpTask& task, int tensor) {
  const int elements = ElementsOfVector(task.lead().type);
  const int last = map.rank - 1;
  if (last < 0 || map.dims[last] % elements != 0 || map.strides[tensor][last] != 1) {
    return false;
  }
  for (int axis = 0; axis < last; ++axis) {
    if (map.strides[tensor][axis] % elements != 0) {
      return false;
    }
  }
  return IsAligned(map, task, tensor);
}

bool IsBroadcast(const internal::MapTask& map, int tensor) {
  for (int axis = 0; axis < map.rank; ++axis) {
    if (map.strides[tensor][axis] == 0) {
      return true;
    }
  }
  return false;
}

}  // namespace gradsmith::cuda
