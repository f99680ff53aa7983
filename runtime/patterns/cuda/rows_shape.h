#ifndef GRADSMITH_PATTERNS_CUDA_ROWS_SHAPE_H_
#define GRADSMITH_PATTERNS_CUDA_ROWS_SHAPE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "gradsmith/tensor.h"
#include "patterns/cuda/rows.h"
#include "patterns/cuda/rows_launch.h"
#include "patterns/cuda/rows_policy.h"
#include "patterns/rows_task.h"

/// How a task of the pattern `rows` is laid over a GPU.
namespace gradsmith::cuda {

/// RowsAccess is how a kernel of an operator reads and writes rows, which tells the kernel.
struct RowsAccess {
  /// Whether rows lie across memory: neighbours in memory are of different rows.
  bool is_across = false;
  /// Elements that are loaded at once; 1 where they do not lie so.
  int vector = 1;
  /// Whether rows begin and end between vectors, which lie alike in all operands.
  bool is_ragged = false;
  /// Whether a thread has the same columns of every row (patterns/cuda/rows_by_columns.h).
  bool is_by_columns = false;
};

/// RowsShape is the shape of a task's launches.
struct RowsShape {
  RowsAccess access;
  RowsLaunch launch;
  unsigned threads = 32;
  unsigned shared_bytes = 0;
  std::int64_t blocks = 0;
  std::size_t partials_bytes = 0;
  std::size_t columns_bytes = 0;
  /// Whether the kernel that adds up the blocks' sums is the one of ManyColumns.
  bool has_many_columns = false;
};

/// MostShared returns the bytes of shared memory that a block takes on a device, at most.
int MostShared(const RowsTarget& target);

/// BytesOfSum returns the bytes of a sum of elements of so many bytes.
constexpr int BytesOfSum(int bytes) {
  return bytes == sizeof(double) ? sizeof(double) : sizeof(float);
}

RowsAccess AccessOf(
    const RowsTarget& target,
    const internal::RowsTask& task,
    std::span<const TensorRef> tensors,
    const RowsInfo& info);

/// ShapeOf cuts a task for a device. `bytes` are those of an element of the wider type.
RowsShape ShapeOf(
    const RowsTarget& target,
    const internal::RowsTask& task,
    const RowsAccess& access,
    const RowsInfo& info,
    int bytes);

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_ROWS_SHAPE_H_
