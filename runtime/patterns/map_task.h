#ifndef GRADSMITH_PATTERNS_MAP_TASK_H_
#define GRADSMITH_PATTERNS_MAP_TASK_H_

#include <cstdint>

/// Compiled by kernels as well: plain C++17.
namespace gradsmith::internal {

inline constexpr int kMaxMapRank = 8;
inline constexpr int kMaxMapTensors = 6;
inline constexpr int kMaxMapScalars = 4;

/// MapTask is an element-wise computation: an index space, outermost dim first, and for each
/// tensor, the inputs before the outputs, where it begins and its strides in elements. An input
/// that is broadcast along a dim has a stride of zero there. Neighbouring dims that one stride
/// serves in all tensors are one, and dims come in the order in which the first output lies in
/// memory.
struct MapTask {
  std::int64_t count = 0;
  int rank = 0;
  /// Bit o is set where output o is added to what it holds.
  unsigned accumulate = 0;
  std::int64_t dims[kMaxMapRank] = {};
  std::int64_t strides[kMaxMapTensors][kMaxMapRank] = {};
  void* tensors[kMaxMapTensors] = {};
  double scalars[kMaxMapScalars] = {};
};

/// DenseMapTask is a MapTask whose tensors all are dense, in the same order of their dims: element
/// i of each is at its i-th place. Few bytes to pass: small tensors wait for little else.
struct DenseMapTask {
  std::int64_t count = 0;
  unsigned accumulate = 0;
  void* tensors[kMaxMapTensors] = {};
  double scalars[kMaxMapScalars] = {};
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_PATTERNS_MAP_TASK_H_
