#include "patterns/cuda/rows_launch.h"
#include "patterns/cuda/rows_memory.cuh"

/// The last step of sums over rows: each column's sums of all blocks are added in their order.
namespace gradsmith::cuda {
namespace {

/// A block has so many neighbouring columns; threads below each other have every so many of the
/// blocks' sums.
template <typename A>
__device__ __forceinline__ void SumColumns(const RowsTask& task, const RowsColumns& columns) {
  const int width = columns.width;
  const int deep = kRowsColumnsThreads / width;
  const int tensor = columns.first + static_cast<int>(blockIdx.y);
  if (task.tensors[tensor] == nullptr) {
    return;
  }
  __shared__ A sums[kRowsColumnsThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const int place = thread & (width - 1);
  const int depth = thread / width;
  const std::int64_t step = std::int64_t{columns.sums} * columns.length;
  for (std::int64_t begin = std::int64_t{blockIdx.x} * width; begin < columns.length;
       begin += std::int64_t{gridDim.x} * width) {
    const std::int64_t column = begin + place;
    A sum = 0;
    if (column < columns.length) {
      const A* from =
          static_cast<const A*>(columns.partials) + blockIdx.y * columns.length + column;
#pragma unroll 4
      for (int block = depth; block < columns.blocks; block += deep) {
        sum += from[block * step];
      }
    }
    sums[thread] = sum;
    __syncthreads();
    for (int half = deep / 2; half > 0; half /= 2) {
      if (depth < half) {
        sum += sums[thread + half * width];
        sums[thread] = sum;
      }
      __syncthreads();
    }
    if (depth == 0 && column < columns.length) {
      StoreOfAnyType(task, tensor, LengthOffset(task, tensor, column), sum);
    }
  }
}

}  // namespace
}  // namespace gradsmith::cuda

#define GRADSMITH_ROWS_COLUMNS(suffix, A)                                            \
  extern "C" __global__ void __launch_bounds__(gradsmith::cuda::kRowsColumnsThreads) \
      gradsmith_rows_columns_##suffix(                                               \
          const __grid_constant__ gradsmith::internal::RowsTask task,                \
          const __grid_constant__ gradsmith::cuda::RowsColumns columns) {            \
    gradsmith::cuda::SumColumns<A>(task, columns);                                   \
  }

GRADSMITH_ROWS_COLUMNS(f32, float)
GRADSMITH_ROWS_COLUMNS(f64, double)
