#ifndef GRADSMITH_PATTERNS_MAP_TASK_H_
#define GRADSMITH_PATTERNS_MAP_TASK_H_

#include <cstdint>

/// Compiled by kernels as well: plain C++17.
namespace gradsmith::internal {

inline constexpr int kMaxMapRank = 8;
inline constexpr int kMaxMapTensors = 8;
inline constexpr int kMaxMapScalars = 4;

/// MapTask is an element-wise computation: an index space, outermost dim first, and for each
/// tensor, the inputs before the outputs, where it begins and its strides in elements. A tensor
/// that is broadcast along a dim has a stride of zero there. Neighbouring dims that one stride
/// serves in all tensors are one, and dims come in the order in which the first tensor that is not
/// broadcast, an output if there is one, lies in memory.
struct MapTask {
  std::int64_t count = 0;
  int rank = 0;
  /// Bit o is set where output o is added to what it holds.
  unsigned accumulate = 0;
  /// Bit o is set where output o has an element for each of the index space.
  unsigned stores = 0;
  /// Whether elements of 16 bits are of bf16, and not half, in kernels that serve both.
  bool is_bf16 = false;
  /// Bit t is set where vectors of tensor t are whole although rows of the last dim are not, as
  /// nothing lies between them.
  unsigned in_vectors = 0;
  /// How far the words of an input of bits lie apart. Its strides are those of its bits.
  std::int64_t word_step = 1;
  std::int64_t dims[kMaxMapRank] = {};
  std::int64_t strides[kMaxMapTensors][kMaxMapRank] = {};
  void* tensors[kMaxMapTensors] = {};
  double scalars[kMaxMapScalars] = {};
};

/// DenseMapTask is a MapTask whose tensors all are dense, in the same order of their dims: element
/// i of each is at its i-th place, as are bits in words that lie beside each other. Few bytes to
/// pass: small tensors wait for little else.
struct DenseMapTask {
  std::int64_t count = 0;
  unsigned accumulate = 0;
  unsigned stores = 0;
  bool is_bf16 = false;
  void* tensors[kMaxMapTensors] = {};
  double scalars[kMaxMapScalars] = {};
};

/// The `output` of a MapSumTask that sums nothing.
inline constexpr int kNoMapSum = -1;

/// MapSumTask is a MapTask of which one output is summed over the dims along which it is broadcast.
/// Those dims come last, behind the dims of the sums' places; each group keeps its order. Without a
/// sum all dims are of places.
struct MapSumTask {
  /// The map as the pass computes it: its `stores` are the outputs that the pass writes beside.
  MapTask map;
  /// The output that is summed, counted among the outputs, and its place among the tensors.
  int output = kNoMapSum;
  int tensor = 0;
  /// How many dims the places have, how many places there are, and the terms of each.
  int place_rank = 0;
  std::int64_t places = 1;
  std::int64_t terms = 1;
  /// The dim along which neighbours in memory lie, and whether these are places, not terms of one.
  int last = 0;
  bool has_places_last = false;
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_PATTERNS_MAP_TASK_H_
