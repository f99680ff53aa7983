#ifndef GRADSMITH_PATTERNS_CUDA_ROWS_POLICY_H_
#define GRADSMITH_PATTERNS_CUDA_ROWS_POLICY_H_

#include <array>
#include <cstdint>

#include "cuda/device.h"
#include "cuda/policy.h"
#include "patterns/cuda/rows_launch.h"

namespace gradsmith::cuda {

/// RowsPolicy is how tasks of the pattern `rows` are cut. What is quickest depends on the GPU.
struct RowsPolicy {
  /// The least compute capability that it is for.
  int compute_capability = 0;
  /// Threads of a block whose teams are smaller.
  int threads = 256;
  /// Threads of a block that has all rows of a task whose columns are summed: one launch is all
  /// then, and the more threads share it the sooner it ends.
  int threads_of_few_rows = 512;
  /// Threads of a block of kernels by columns whose teams are smaller; 0 leaves their rows to the
  /// kernels along memory.
  int threads_by_columns = 512;
  /// Threads of such a block, at most: longer rows are cut into parts, which have so many columns
  /// at least.
  int most_threads_by_columns = kFewerRowsThreads;
  int least_columns_of_part = 1024;
  /// Such rows, of which something is found before outputs are made, are read twice in parts. Those
  /// whose sums take no more bytes for each sum of a column are left to the kernels along memory.
  std::int64_t most_bytes_along = std::int64_t{64} << 10U;
  /// Threads of a block of a flat row, of whole warps, at most kMostFlatThreads.
  int threads_of_flat_row = 256;
  /// A team's threads, at least, where the row has as many vectors or single elements.
  int least_members = 4;
  int least_members_of_elements = 16;
  /// What a thread is given of a row, in vectors and in single elements, while the row is short
  /// enough.
  int vectors_of_thread = 4;
  int vectors_of_summing_thread = 2;
  int elements_of_thread = 32;
  int elements_of_summing_thread = 8;
  /// Rows across memory that are no longer have one thread each, or one for as many as a vector
  /// has.
  int most_of_single_thread = 32;
  /// Threads that a multiprocessor has at once, at most: blocks go on to further rows.
  int resident_threads = 1024;
  /// Rows are cut into parts of so many vectors of each thread where there are fewer rows than
  /// multiprocessors and each is at least four parts long: into parts for so many blocks of each
  /// multiprocessor, which have so many threads at most.
  int blocks_of_parts = 4;
  int most_threads_of_part = 512;
  int vectors_of_part = 4;
  int elements_of_part = 8;
  int most_parts = 128;
  /// Rows as few as that which begin between vectors are read by single elements, and cut into
  /// parts, where they are longer.
  std::int64_t most_ragged = 32768;
  /// Shared memory that a block takes, at most.
  int most_shared_bytes = 210 << 10;
  /// Blocks that sum columns, for each multiprocessor, by their threads.
  int summing_threads = 1024;
  /// The same for kernels by columns, which need more registers.
  int summing_threads_by_columns = 512;
  /// Memory for sums of columns, at most, where there is more than one block.
  std::int64_t most_columns_bytes = std::int64_t{256} << 20U;
};

inline constexpr std::array<RowsPolicy, 1> kRowsPolicies = {{{}}};

/// RowsPolicyOf returns the policy of the latest compute capability that a device has.
inline const RowsPolicy& RowsPolicyOf(const DeviceInfo& device) {
  return LatestPolicy(kRowsPolicies, device);
}

/// RowsTarget is a GPU and how tasks are cut for it: by its own policy unless another is given,
/// which must live as long.
struct RowsTarget {
  const DeviceInfo& device;
  const RowsPolicy& policy = RowsPolicyOf(device);
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_ROWS_POLICY_H_
