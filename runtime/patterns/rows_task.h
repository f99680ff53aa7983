#ifndef GRADSMITH_PATTERNS_ROWS_TASK_H_
#define GRADSMITH_PATTERNS_ROWS_TASK_H_

#include <cstdint>

/// Compiled by kernels as well: plain C++17.
namespace gradsmith::internal {

inline constexpr int kMaxRowsRank = 8;
inline constexpr int kMaxRowsTensors = 10;
inline constexpr int kMaxRowsScalars = 4;

/// RowsTask is a computation on rows: the space of the rows and that of the elements of one, each
/// with its dims, outermost first, and for each operand where it begins and its strides in
/// elements along both. An operand that has one element for each row has strides of zero along
/// the elements, and the other way round. Neighbouring dims that one stride serves in all operands
/// are one, and dims come in the order in which the first input lies in memory.
struct RowsTask {
  std::int64_t rows = 0;
  std::int64_t length = 0;
  int row_rank = 0;
  int length_rank = 0;
  /// Bit i is set where operand i is added to what it holds.
  unsigned accumulate = 0;
  std::int64_t row_dims[kMaxRowsRank] = {};
  std::int64_t length_dims[kMaxRowsRank] = {};
  std::int64_t row_strides[kMaxRowsTensors][kMaxRowsRank] = {};
  std::int64_t length_strides[kMaxRowsTensors][kMaxRowsRank] = {};
  /// Null for what is absent.
  void* tensors[kMaxRowsTensors] = {};
  /// The library's DataType of each, as a number.
  int types[kMaxRowsTensors] = {};
  double scalars[kMaxRowsScalars] = {};
};

/// DenseRowTask is a RowsTask of one row, whose operands of elements all are dense, in the same
/// order of their dims: element i of each is at its i-th place. Few bytes to pass: small tensors
/// wait for little else.
struct DenseRowTask {
  std::int64_t length = 0;
  unsigned accumulate = 0;
  void* tensors[kMaxRowsTensors] = {};
  int types[kMaxRowsTensors] = {};
  double scalars[kMaxRowsScalars] = {};
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_PATTERNS_ROWS_TASK_H_
