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
  /// Its number among the tiles that have the same columns.
  std::int64_t number;
};

/// The tile-th tile: row tiles fastest, so that neighbouring blocks read the same cache lines.
__device__ __forceinline__ Tile TileAt(const TransposeTask& task, std::int64_t tile, int side) {
  const Division rows = Divide(tile, task.row_tiles);
  const Division columns = Divide(rows.quotient, task.column_tiles);
  return {
      rows.remainder * side, columns.remainder * side, OffsetsAt(task.batch, columns.quotient),
      columns.quotient * task.row_tiles + rows.remainder};
}

/// Up to kLength elements of a run, kWidth at once where all are wanted.
template <int kWidth, int kLength, typename T>
__device__ __forceinline__ void LoadRun(const T* from, std::int64_t count, T (&to)[kLength]) {
  if (count >= kLength) {
#pragma unroll
    for (int i = 0; i < kLength; i += kWidth) {
      LoadAtOnce<kWidth>(from + i, to + i);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kLength; ++i) {
    to[i] = i < count ? from[i] : T(0);
  }
}

template <int kWidth, int kLength, typename T>
__device__ __forceinline__ void StoreRun(const T (&from)[kLength], std::int64_t count, T* to) {
  if (count >= kLength) {
#pragma unroll
    for (int i = 0; i < kLength; i += kWidth) {
      StoreAtOnce<kWidth>(from + i, to + i);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kLength; ++i) {
    if (i < count) {
      to[i] = from[i];
    }
  }
}

/// A transposition's elements are but bits.
struct NotSummed {};

template <typename Element, typename T, int kLength>
__device__ __forceinline__ float SumOf(const T (&bits)[kLength]) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kLength; ++i) {
    Element element;
    memcpy(&element, &bits[i], sizeof(element));
    sum += Convert<float>(element);
  }
  return sum;
}

/// Adds up what the threads of a column's runs hold: kTransposeRuns neighbours.
__device__ __forceinline__ float SumOverRuns(float sum) {
#pragma unroll
  for (int distance = kTransposeRuns / 2; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(0xFFFFFFFFU, sum, distance);
  }
  return sum;
}

/// A block transposes one tile of elements of 2 or 4 bytes. A thread reads runs of 16 bytes along
/// rows, of as many columns as make a word of 4 bytes, and writes runs of 16 bytes along columns;
/// kWidth elements at once is what strides and addresses allow. In shared memory a row has 32
/// words; groups of four are exchanged so that neither way do threads meet in a bank. Where there
/// is an Element, each tile leaves the sums of its columns in `sums` (tiles of a column, columns).
template <typename T, int kWidth, typename Element = NotSummed>
__device__ __forceinline__ void
TransposeTile(const T* from, T* to, const TransposeTask& task, float* sums = nullptr) {
  constexpr int kLength = kVectorLength<T>;
  constexpr int kSide = kTransposeRuns * kLength;
  constexpr int kColumnsOfWord = static_cast<int>(4 / sizeof(T));
  __shared__ uint4 tile[kSide][kTransposeRuns];
  const Tile at = TileAt(task, blockIdx.x, kSide);
  const auto thread = static_cast<int>(threadIdx.x);
  {
    const int run = thread % kTransposeRuns;
    const int word = thread / kTransposeRuns;
    T loaded[kColumnsOfWord][kLength];
    const std::int64_t row = at.row + run * kLength;
#pragma unroll
    for (int j = 0; j < kColumnsOfWord; ++j) {
      const std::int64_t column = at.column + word * kColumnsOfWord + j;
      const std::int64_t count = column < task.columns ? task.rows - row : 0;
      LoadRun<kWidth>(
          from + at.offsets.from + row + column * task.from_column_stride, count, loaded[j]);
      if constexpr (!std::is_same_v<Element, NotSummed>) {
        const float sum = SumOverRuns(SumOf<Element>(loaded[j]));
        if (run == 0 && column < task.columns) {
          sums[at.number * task.columns + column] = sum;
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kLength; ++i) {
      std::uint32_t packed = 0;
#pragma unroll
      for (int j = 0; j < kColumnsOfWord; ++j) {
        packed |= std::uint32_t{loaded[j][i]} << (j * 16);
      }
      auto* words = reinterpret_cast<std::uint32_t*>(&tile[run * kLength + i][(word / 4) ^ run]);
      words[word % 4] = packed;
    }
  }
  __syncthreads();
#pragma unroll
  for (int item = thread; item < kSide * kTransposeRuns; item += kTransposeThreads) {
    const int run = item % kTransposeRuns;
    const int local = item / kTransposeRuns;
    const std::int64_t row = at.row + local;
    const std::int64_t column = at.column + run * kLength;
    T values[kLength];
    memcpy(values, &tile[local][run ^ (local / kLength)], sizeof(values));
    if (row < task.rows) {
      StoreRun<kWidth>(
          values, task.columns - column, to + at.offsets.to + row * task.to_row_stride + column);
    }
  }
}

/// Elements of 8 bytes. Lanes go along rows when they read, along columns when they write; the odd
/// pitch keeps both free of bank conflicts.
__device__ __forceinline__ void
TransposeWords(const std::uint64_t* from, std::uint64_t* to, const TransposeTask& task) {
  constexpr int kSide = 32;
  __shared__ std::uint64_t tile[kSide][kSide + 1];
  constexpr int kStep = kTransposeThreads / kSide;
  const int fast = static_cast<int>(threadIdx.x) % kSide;
  const int slow = static_cast<int>(threadIdx.x) / kSide;
  const Tile at = TileAt(task, blockIdx.x, kSide);
#pragma unroll
  for (int i = 0; i < kSide; i += kStep) {
    const std::int64_t row = at.row + fast;
    const std::int64_t column = at.column + slow + i;
    if (row < task.rows && column < task.columns) {
      tile[slow + i][fast] = from[at.offsets.from + row + column * task.from_column_stride];
    }
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kSide; i += kStep) {
    const std::int64_t row = at.row + slow + i;
    const std::int64_t column = at.column + fast;
    if (row < task.rows && column < task.columns) {
      to[at.offsets.to + row * task.to_row_stride + column] = tile[fast][slow + i];
    }
  }
}

}  // namespace
}  // namespace gradsmith::cuda

#define GRADSMITH_COPY(name, From, To)                                                        \
  extern "C" __global__ void __launch_bounds__(gradsmith::cuda::kElementThreads)              \
      gradsmith_copy_##name(const From* from, To* to, const gradsmith::cuda::PairGrid grid) { \
    gradsmith::cuda::Copy(from, to, grid);                                                    \
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

// Kernels are named by the element's size and the elements that are moved at once.
#define GRADSMITH_TRANSPOSE(size, width, T)                                        \
  extern "C" __global__ void __launch_bounds__(gradsmith::cuda::kTransposeThreads) \
      gradsmith_transpose_##size##_##width(                                        \
          const T* from, T* to, const gradsmith::cuda::TransposeTask task) {       \
    gradsmith::cuda::TransposeTile<T, width>(from, to, task);                      \
  }

GRADSMITH_TRANSPOSE(2, 1, std::uint16_t)
GRADSMITH_TRANSPOSE(2, 2, std::uint16_t)
GRADSMITH_TRANSPOSE(2, 4, std::uint16_t)
GRADSMITH_TRANSPOSE(2, 8, std::uint16_t)
GRADSMITH_TRANSPOSE(4, 1, std::uint32_t)
GRADSMITH_TRANSPOSE(4, 2, std::uint32_t)
GRADSMITH_TRANSPOSE(4, 4, std::uint32_t)

// Kernels are named by the element's type and the elements that are moved at once.
#define GRADSMITH_TRANSPOSE_AND_SUM(name, width, T, Element)                              \
  extern "C" __global__ void __launch_bounds__(gradsmith::cuda::kTransposeThreads)        \
      gradsmith_transpose_and_sum_##name##_##width(                                       \
          const T* from, T* to, const gradsmith::cuda::TransposeTask task, float* sums) { \
    gradsmith::cuda::TransposeTile<T, width, Element>(from, to, task, sums);              \
  }

GRADSMITH_TRANSPOSE_AND_SUM(f16, 1, std::uint16_t, __half)
GRADSMITH_TRANSPOSE_AND_SUM(f16, 2, std::uint16_t, __half)
GRADSMITH_TRANSPOSE_AND_SUM(f16, 4, std::uint16_t, __half)
GRADSMITH_TRANSPOSE_AND_SUM(f16, 8, std::uint16_t, __half)
GRADSMITH_TRANSPOSE_AND_SUM(bf16, 1, std::uint16_t, __nv_bfloat16)
GRADSMITH_TRANSPOSE_AND_SUM(bf16, 2, std::uint16_t, __nv_bfloat16)
GRADSMITH_TRANSPOSE_AND_SUM(bf16, 4, std::uint16_t, __nv_bfloat16)
GRADSMITH_TRANSPOSE_AND_SUM(bf16, 8, std::uint16_t, __nv_bfloat16)
GRADSMITH_TRANSPOSE_AND_SUM(f32, 1, std::uint32_t, float)
GRADSMITH_TRANSPOSE_AND_SUM(f32, 2, std::uint32_t, float)
GRADSMITH_TRANSPOSE_AND_SUM(f32, 4, std::uint32_t, float)

extern "C" __global__ void __launch_bounds__(gradsmith::cuda::kTransposeThreads)
    gradsmith_transpose_8_1(
        const std::uint64_t* from,
        std::uint64_t* to,
        const gradsmith::cuda::TransposeTask task) {
  gradsmith::cuda::TransposeWords(from, to, task);
}
