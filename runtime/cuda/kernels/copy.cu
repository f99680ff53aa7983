#include "cuda/kernels/element_vector.cuh"

// Copies of any strides, by the element's size or by both types, and transposition through shared
// memory.
namespace gradsmith::cuda {
namespace {

template <typename From, typename To>
__device__ __forceinline__ void Copy(const From* from, To* to, const PairGrid& grid) {
  ForEachBatch(grid.count, [&](const auto& indices, const auto& valid) {
    From values[kElementBatch];
    std::int64_t to_offsets[kElementBatch];
#pragma unroll
    for (int i = 0; i < kElementBatch; ++i) {
      if (valid[i]) {
        const Offsets offsets = OffsetsAt(grid, indices[i]);
        to_offsets[i] = offsets.to;
        values[i] = from[offsets.from];
      }
    }
#pragma unroll
    for (int i = 0; i < kElementBatch; ++i) {
      if (valid[i]) {
        if constexpr (std::is_same_v<From, To>) {
          to[to_offsets[i]] = values[i];
        } else {
          to[to_offsets[i]] = Convert<To>(values[i]);
        }
      }
    }
  });
}

struct Tile {
  std::int64_t row;
  std::int64_t column;
  Offsets offsets;
};

/// The tile-th tile: row tiles fastest, so that neighbouring blocks read the same cache lines.
__device__ __forceinline__ Tile TileAt(const TransposeTask& task, std::int64_t tile, int side) {
  const Division rows = Divide(tile, task.row_tiles);
  const Division columns = Divide(rows.quotient, task.column_tiles);
  return {
      rows.remainder * side, columns.remainder * side, OffsetsAt(task.batch, columns.quotient)};
}

__device__ __forceinline__ std::int64_t CountTiles(const TransposeTask& task) {
  return task.row_tiles * task.column_tiles * task.batch.count;
}

/// Lanes go along rows when they read, along columns when they write; the tile's odd pitch keeps
/// both free of bank conflicts.
template <typename T, int kSide, int kPitch>
__device__ __forceinline__ void Transpose(const T* from, T* to, const TransposeTask& task) {
  __shared__ T tile[kSide][kPitch];
  constexpr int kStep = kTransposeThreads / kSide;
  const int fast = static_cast<int>(threadIdx.x) % kSide;
  const int slow = static_cast<int>(threadIdx.x) / kSide;
  const std::int64_t tiles = CountTiles(task);
  for (std::int64_t index = blockIdx.x; index < tiles; index += gridDim.x) {
    const Tile at = TileAt(task, index, kSide);
    const T* source = from + at.offsets.from;
    T* target = to + at.offsets.to;
#pragma unroll
    for (int i = 0; i < kSide; i += kStep) {
      const std::int64_t row = at.row + fast;
      const std::int64_t column = at.column + slow + i;
      if (row < task.rows && column < task.columns) {
        tile[slow + i][fast] = source[row + column * task.from_column_stride];
      }
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kSide; i += kStep) {
      const std::int64_t row = at.row + slow + i;
      const std::int64_t column = at.column + fast;
      if (row < task.rows && column < task.columns) {
        target[row * task.to_row_stride + column] = tile[fast][slow + i];
      }
    }
    __syncthreads();
  }
}

/// Transposes 16-bit elements two by two: rows, columns, strides and addresses are even. A thread
/// reads two words of two rows each and exchanges halves before it stores them.
__device__ __forceinline__ void
TransposePairs(const std::uint32_t* from, std::uint32_t* to, const TransposeTask& task) {
  constexpr int kSide = 64;
  constexpr int kWords = kSide / 2;
  constexpr int kStep = kTransposeThreads / kWords;
  // [parity of the row][row / 2][column / 2]
  __shared__ std::uint32_t tile[2][kWords][kWords + 1];
  const int fast = static_cast<int>(threadIdx.x) % kWords;
  const int slow = static_cast<int>(threadIdx.x) / kWords;
  const std::int64_t tiles = CountTiles(task);
  for (std::int64_t index = blockIdx.x; index < tiles; index += gridDim.x) {
    const Tile at = TileAt(task, index, kSide);
    const std::uint32_t* source = from + at.offsets.from / 2;
    std::uint32_t* target = to + at.offsets.to / 2;
    std::uint32_t words[kWords / kStep][2];
#pragma unroll
    for (int i = 0; i < kWords / kStep; ++i) {
      const std::int64_t row = at.row + 2 * fast;
      const std::int64_t column = at.column + 2 * (slow + i * kStep);
      if (row < task.rows && column < task.columns) {
        const std::uint32_t* pair = source + (row + column * task.from_column_stride) / 2;
        words[i][0] = pair[0];
        words[i][1] = pair[task.from_column_stride / 2];
      } else {
        words[i][0] = words[i][1] = 0;
      }
    }
#pragma unroll
    for (int i = 0; i < kWords / kStep; ++i) {
      const std::uint32_t low = words[i][0];
      const std::uint32_t high = words[i][1];
      tile[0][fast][slow + i * kStep] = (low & 0xFFFFU) | (high << 16U);
      tile[1][fast][slow + i * kStep] = (low >> 16U) | (high & 0xFFFF0000U);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kSide / kStep; ++i) {
      const int local = slow + i * kStep;
      const std::int64_t row = at.row + local;
      const std::int64_t column = at.column + 2 * fast;
      if (row < task.rows && column < task.columns) {
        target[(row * task.to_row_stride + column) / 2] = tile[local % 2][local / 2][fast];
      }
    }
    __syncthreads();
  }
}

}  // namespace
}  // namespace gradsmith::cuda

#define GRADSMITH_COPY(name, From, To)                                                      \
  extern "C" __global__ void __launch_bounds__(gradsmith::cuda::kElementThreads)            \
      gradsmith_copy_##name(const From* from, To* to, const gradsmith::cuda::PairGrid grid) { \
    gradsmith::cuda::Copy(from, to, grid);                                                  \
  }

// Of one type: by size.
GRADSMITH_COPY(2, std::uint16_t, std::uint16_t)
GRADSMITH_COPY(4, std::uint32_t, std::uint32_t)
GRADSMITH_COPY(8, std::uint64_t, std::uint64_t)
GRADSMITH_COPY(16, uint4, uint4)

GRADSMITH_COPY(f32_f64, float, double)
GRADSMITH_COPY(f32_f16, float, __half)
GRADSMITH_COPY(f32_bf16, float, __nv_bfloat16)
GRADSMITH_COPY(f64_f32, double, float)
GRADSMITH_COPY(f64_f16, double, __half)
GRADSMITH_COPY(f64_bf16, double, __nv_bfloat16)
GRADSMITH_COPY(f16_f32, __half, float)
GRADSMITH_COPY(f16_f64, __half, double)
GRADSMITH_COPY(f16_bf16, __half, __nv_bfloat16)
GRADSMITH_COPY(bf16_f32, __nv_bfloat16, float)
GRADSMITH_COPY(bf16_f64, __nv_bfloat16, double)
GRADSMITH_COPY(bf16_f16, __nv_bfloat16, __half)

#define GRADSMITH_TRANSPOSE(name, T, side, pitch)                                        \
  extern "C" __global__ void __launch_bounds__(gradsmith::cuda::kTransposeThreads)       \
      gradsmith_transpose_##name(                                                        \
          const T* from, T* to, const gradsmith::cuda::TransposeTask task) {             \
    gradsmith::cuda::Transpose<T, side, pitch>(from, to, task);                          \
  }

GRADSMITH_TRANSPOSE(2, std::uint16_t, 64, 66)
GRADSMITH_TRANSPOSE(4, std::uint32_t, 32, 33)
GRADSMITH_TRANSPOSE(8, std::uint64_t, 32, 33)

extern "C" __global__ void __launch_bounds__(gradsmith::cuda::kTransposeThreads)
    gradsmith_transpose_pairs(
        const std::uint32_t* from,
        std::uint32_t* to,
        const gradsmith::cuda::TransposeTask task) {
  gradsmith::cuda::TransposePairs(from, to, task);
}
