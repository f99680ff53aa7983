#include "patterns/cuda/rows_launch.h"
#include "patterns/cuda/rows_memory.cuh"

/// The last step of sums over rows: each column's sums of all blocks are added in their order.
namespace gradsmith::cuda {
namespace {

/// Adds up what threads below each other found, so that the first ones have it.
template <typename A, int kAtOnce>
__device__ __forceinline__ void
AddDepths(int deep, int width, A (&found)[kAtOnce], A (&sums)[kAtOnce][kRowsColumnsThreads]) {
  const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
  for (int i = 0; i < kAtOnce; ++i) {
    sums[i][thread] = found[i];
  }
  __syncthreads();
  for (int half = deep / 2; half > 0; half /= 2) {
    if (thread < half * width) {
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        found[i] += sums[i][thread + half * width];
        sums[i][thread] = found[i];
      }
    }
    __syncthreads();
  }
}

/// A block has kAtOnce times so many neighbouring columns; threads below each other have every so
/// many of the blocks' sums. Where there are columns for all threads, more of them at once are on
/// their way from memory.
template <typename A, int kAtOnce>
__device__ __forceinline__ void SumColumns(const RowsTask& task, const RowsColumns& columns) {
  const int width = columns.width;
  const int deep = kRowsColumnsThreads / width;
  const int tensor = columns.first + static_cast<int>(blockIdx.y);
  if (task.tensors[tensor] == nullptr) {
    return;
  }
  __shared__ A sums[kAtOnce][kRowsColumnsThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const int place = thread & (width - 1);
  const int depth = thread / width;
  const std::int64_t step = std::int64_t{columns.sums} * columns.length;
  const std::int64_t of_block = std::int64_t{width} * kAtOnce;
  for (std::int64_t begin = blockIdx.x * of_block; begin < columns.length;
       begin += gridDim.x * of_block) {
    const std::int64_t first = begin + place;
    const A* const from =
        static_cast<const A*>(columns.partials) + blockIdx.y * columns.length + first;
    A found[kAtOnce] = {};
#pragma unroll 4
    for (int block = depth; block < columns.blocks; block += deep) {
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (first + i * width < columns.length) {
          found[i] += from[block * step + i * width];
        }
      }
    }
    if (deep > 1) {
      AddDepths(deep, width, found, sums);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const std::int64_t column = first + i * width;
      if (depth == 0 && column < columns.length) {
        StoreOfAnyType(task, tensor, LengthOffset(task, tensor, column), found[i]);
      }
    }
  }
}

}  // namespace
}  // namespace gradsmith::cuda

#define GRADSMITH_ROWS_COLUMNS(suffix, A, kAtOnce)                                   \
  extern "C" __global__ void __launch_bounds__(gradsmith::cuda::kRowsColumnsThreads) \
      gradsmith_rows_columns_##suffix(                                               \
          const __grid_constant__ gradsmith::internal::RowsTask task,                \
          const __grid_constant__ gradsmith::cuda::RowsColumns columns) {            \
    gradsmith::cuda::SumColumns<A, kAtOnce>(task, columns);                          \
  }

GRADSMITH_ROWS_COLUMNS(f32, float, 1)
GRADSMITH_ROWS_COLUMNS(f64, double, 1)
GRADSMITH_ROWS_COLUMNS(many_f32, float, gradsmith::cuda::kRowsColumnsAtOnce)
GRADSMITH_ROWS_COLUMNS(many_f64, double, gradsmith::cuda::kRowsColumnsAtOnce)
