#include "patterns/cuda/rows_launch.h"
#include "patterns/cuda/rows_memory.cuh"

/// The last step of sums over rows: each column's sums of all blocks are added in their order.
namespace gradsmith::cuda {
namespace {

/// A block has neighbouring columns, each of its threads so many of them. Threads below each other
/// have every so many of the blocks' sums.
template <typename A, typename Cut>
__device__ __forceinline__ void SumColumns(const RowsTask& task, const RowsColumns& columns) {
  const int tensor = columns.first + static_cast<int>(blockIdx.y);
  if (task.tensors[tensor] == nullptr) {
    return;
  }
  __shared__ A sums[Cut::kDeep][Cut::kWidth];
  const int place = static_cast<int>(threadIdx.x) % Cut::kWidth;
  const int depth = static_cast<int>(threadIdx.x) / Cut::kWidth;
  const std::int64_t step = std::int64_t{columns.sums} * columns.length;
  for (std::int64_t begin = std::int64_t{blockIdx.x} * Cut::kColumns; begin < columns.length;
       begin += std::int64_t{gridDim.x} * Cut::kColumns) {
    const std::int64_t first = begin + place;
    const A* const from =
        static_cast<const A*>(columns.partials) + blockIdx.y * columns.length + first;
    A found[Cut::kAtOnce] = {};
    if (first < columns.length) {
#pragma unroll 4
      for (int block = depth; block < columns.blocks; block += Cut::kDeep) {
#pragma unroll
        for (int i = 0; i < Cut::kAtOnce; ++i) {
          if (i == 0 || first + i * Cut::kWidth < columns.length) {
            found[i] += from[block * step + i * Cut::kWidth];
          }
        }
      }
    }
    if constexpr (Cut::kDeep > 1) {
      static_assert(Cut::kAtOnce == 1);
      sums[depth][place] = found[0];
      __syncthreads();
      for (int half = Cut::kDeep / 2; half > 0; half /= 2) {
        if (depth < half) {
          found[0] += sums[depth + half][place];
          sums[depth][place] = found[0];
        }
        __syncthreads();
      }
    }
#pragma unroll
    for (int i = 0; i < Cut::kAtOnce; ++i) {
      const std::int64_t column = first + i * Cut::kWidth;
      if (depth == 0 && column < columns.length) {
        StoreOfAnyType(task, tensor, LengthOffset(task, tensor, column), found[i]);
      }
    }
  }
}

}  // namespace
}  // namespace gradsmith::cuda

#define GRADSMITH_ROWS_COLUMNS(suffix, A, Cut)                                 \
  extern "C" __global__ void __launch_bounds__(gradsmith::cuda::Cut::kThreads) \
      gradsmith_rows_columns_##suffix(                                         \
          const __grid_constant__ gradsmith::internal::RowsTask task,          \
          const __grid_constant__ gradsmith::cuda::RowsColumns columns) {      \
    gradsmith::cuda::SumColumns<A, gradsmith::cuda::Cut>(task, columns);       \
  }

GRADSMITH_ROWS_COLUMNS(f32, float, FewColumns)
GRADSMITH_ROWS_COLUMNS(f64, double, FewColumns)
GRADSMITH_ROWS_COLUMNS(many_f32, float, ManyColumns)
GRADSMITH_ROWS_COLUMNS(many_f64, double, ManyColumns)
