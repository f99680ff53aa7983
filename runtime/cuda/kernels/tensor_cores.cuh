#ifndef GRADSMITH_CUDA_KERNELS_TENSOR_CORES_CUH_
#define GRADSMITH_CUDA_KERNELS_TENSOR_CORES_CUH_

#include <cstdint>

#include "conv/cuda/tensor_cores_arguments.h"
#include "cuda/kernels/indices.cuh"

/// Matrix products on tensor cores, from panels in shared memory.
namespace gradsmith::conv::tensor_cores {

using cuda::DivideBy;
using cuda::IsWithin;

#if __CUDA_ARCH__ >= 800
#define GRADSMITH_HAS_TENSOR_CORES 1
#endif

enum class Math {
  kFloat,  ///< as sums of two numbers in TF32
  kDouble
};

/// Begins to copy a chunk to shared memory; zeros where there is nothing to copy.
__device__ __forceinline__ void CopyChunk(void* to, const void* from, bool exists) {
#ifdef GRADSMITH_HAS_TENSOR_CORES
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
               "r"(exists ? kChunkBytes : 0)
               : "memory");
#endif
}

template <typename T>
__device__ __forceinline__ const void* ChunkAt(const T* first, int chunk) {
  return reinterpret_cast<const char*>(first) + std::int64_t{chunk} * kChunkBytes;
}

__device__ __forceinline__ void EndOfCopies() {
#ifdef GRADSMITH_HAS_TENSOR_CORES
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Waits until at most kPending groups of copies are under way.
template <int kPending>
__device__ __forceinline__ void WaitForCopies() {
#ifdef GRADSMITH_HAS_TENSOR_CORES
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#endif
}

/// Adds the product of 16 x 8 and 8 x 8 numbers in TF32.
__device__ __forceinline__ void
AddProduct(const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], float (&sums)[4]) {
#ifdef GRADSMITH_HAS_TENSOR_CORES
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

__device__ __forceinline__ void
AddProduct(const double (&a)[4], const double (&b)[2], double (&sums)[4]) {
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+d"(sums[0]), "+d"(sums[1]), "+d"(sums[2]), "+d"(sums[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#elif defined(GRADSMITH_HAS_TENSOR_CORES)
#pragma unroll
  for (int term = 0; term < 2; ++term) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
          : "+d"(sums[2 * half]), "+d"(sums[2 * half + 1])
          : "d"(a[2 * term + half]), "d"(b[term]));
    }
  }
#endif
}

/// Tensor cores cut off the bits that TF32 lacks. What this adds first makes that a rounding, which
/// is off by up to 0.75 of the last bit instead of 0.5, and leaves alone what is a number in TF32.
/// It costs one instruction, where the exact conversion goes through a narrow unit.
__device__ __forceinline__ float BeforeCutOff(float value) {
  constexpr float kShare = 1.5F / 4096;
  return __fmaf_rn(value, kShare, value);
}

/// A number in TF32 that is near.
__device__ __forceinline__ float ToTf32(float value) {
  constexpr unsigned kBits = 0xFFFFE000U;
  return __uint_as_float(__float_as_uint(BeforeCutOff(value)) & kBits);
}

/// A thread's part of a block of an operand, as the math takes it.
template <Math kMath, int kCount>
struct Fragment;

template <int kCount>
struct Fragment<Math::kFloat, kCount> {
  std::uint32_t high[kCount];
  std::uint32_t low[kCount];

  __device__ __forceinline__ void Set(int i, float value) {
    const float part = ToTf32(value);
    high[i] = __float_as_uint(part);
    low[i] = __float_as_uint(value - part);
  }
};

template <int kCount>
struct Fragment<Math::kDouble, kCount> {
  double values[kCount];

  __device__ __forceinline__ void Set(int i, double value) { values[i] = value; }
};

template <int kBlocks>
__device__ __forceinline__ void Multiply(
    const Fragment<Math::kDouble, 4>& a,
    const Fragment<Math::kDouble, 2> (&b)[kBlocks],
    double (&sums)[kBlocks][4]) {
#pragma unroll
  for (int j = 0; j < kBlocks; ++j) {
    AddProduct(a.values, b[j].values, sums[j]);
  }
}

/// What the low parts multiply with each other is below float's precision. Tensor cores cut off
/// what does not fit a sum: few terms are added by them, and these sums by ordinary additions.
/// Neighbouring products do not wait for each other.
template <int kBlocks>
__device__ __forceinline__ void Multiply(
    const Fragment<Math::kFloat, 4>& a,
    const Fragment<Math::kFloat, 2> (&b)[kBlocks],
    float (&sums)[kBlocks][4]) {
  float few[kBlocks][4] = {};
#pragma unroll
  for (int j = 0; j < kBlocks; ++j) {
    AddProduct(a.low, b[j].high, few[j]);
  }
#pragma unroll
  for (int j = 0; j < kBlocks; ++j) {
    AddProduct(a.high, b[j].low, few[j]);
  }
#pragma unroll
  for (int j = 0; j < kBlocks; ++j) {
    AddProduct(a.high, b[j].high, few[j]);
  }
#pragma unroll
  for (int j = 0; j < kBlocks; ++j) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      sums[j][i] += few[j][i];
    }
  }
}

template <Math kMath>
struct ElementOf {
  using Type = float;
};
template <>
struct ElementOf<Math::kDouble> {
  using Type = double;
};
template <Math kMath>
using Element = typename ElementOf<kMath>::Type;

template <Math kMath, int kTile>
constexpr Tile TileOf() {
  return kMath == Math::kDouble ? kDoubleTiles[kTile] : kFloatTiles[kTile];
}

/// Where elements of a panel are.
template <typename T, int kLines, bool kDeep>
struct Panel {
  static constexpr int kSize = sizeof(T);
  static constexpr int kDepth = kDepthBytes / kSize;
  static constexpr int kVector = kChunkBytes / kSize;
  static constexpr int kStride = StrideOf(kLines, kDeep, kSize);
  static constexpr int kElements = PanelElements(kLines, kDeep, kSize);
  /// A panel's rows in memory, and the chunks of each.
  static constexpr int kRuns = kDeep ? kLines : kDepth;
  static constexpr int kChunks = (kDeep ? kDepth : kLines) / kVector;

  __device__ static int At(int line, int term) {
    return kDeep ? line * kStride + term : term * kStride + line;
  }
};

/// The chunks of a panel that a thread copies: the same one of every kStep-th run.
template <typename Panel, int kThreads>
struct Share {
  static constexpr int kStep = kThreads / Panel::kChunks;
  static constexpr int kCount = Panel::kRuns / kStep;
  static_assert(kStep > 0 && kStep * kCount == Panel::kRuns, "threads share a panel evenly");

  int first_run = static_cast<int>(threadIdx.x) / Panel::kChunks;
  int element = static_cast<int>(threadIdx.x) % Panel::kChunks * Panel::kVector;

  __device__ int Run(int i) const { return first_run + i * kStep; }
};

/// A warp's sums of its part of a tile.
template <Math kMath, int kTile, bool kRowsDeep, bool kColumnsDeep>
class Sums {
 public:
  using T = Element<kMath>;
  static constexpr Tile kShape = TileOf<kMath, kTile>();
  static constexpr int kThreads = ThreadsOf(kShape);
  using RowPanel = Panel<T, kShape.rows, kRowsDeep>;
  using ColumnPanel = Panel<T, kShape.columns, kColumnsDeep>;
  static constexpr int kStageElements = RowPanel::kElements + ColumnPanel::kElements;

  __device__ Sums() {
    constexpr int kWarpsOfRow = kShape.columns / kShape.warp_columns;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    first_row_ = warp / kWarpsOfRow * kShape.warp_rows;
    first_column_ = warp % kWarpsOfRow * kShape.warp_columns;
  }

  /// Adds the products of a stage's panels.
  __device__ __forceinline__ void Add(const T* stage) {
    const T* rows = stage;
    const T* columns = stage + RowPanel::kElements;
    const int line = Lane() / 4;
#pragma unroll
    for (int first = 0; first < RowPanel::kDepth; first += 8) {
      const int term = first + Lane() % 4;
      Fragment<kMath, 2> b[kColumnBlocks];
#pragma unroll
      for (int j = 0; j < kColumnBlocks; ++j) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          b[j].Set(i, columns[ColumnPanel::At(first_column_ + 8 * j + line, term + 4 * i)]);
        }
      }
#pragma unroll
      for (int k = 0; k < kRowBlocks; ++k) {
        Fragment<kMath, 4> a;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int row = first_row_ + 16 * k + line + 8 * (i % 2);
          a.Set(i, rows[RowPanel::At(row, term + 4 * (i / 2))]);
        }
        Multiply(a, b, sums_[k]);
      }
    }
  }

  /// Calls `row_at(row of the tile)` for a pointer to the row of the result that it is, or null,
  /// and adds or writes what is below `columns`.
  template <typename RowAt>
  __device__ __forceinline__ void
  Store(int first_column, int columns, bool accumulate, RowAt row_at) const {
    struct alignas(2 * sizeof(T)) Pair {
      T first;
      T second;
    };
#pragma unroll
    for (int k = 0; k < kRowBlocks; ++k) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        T* row = row_at(first_row_ + 16 * k + 8 * half + Lane() / 4);
        if (row == nullptr) {
          continue;
        }
#pragma unroll
        for (int j = 0; j < kColumnBlocks; ++j) {
          const int column = first_column + first_column_ + 8 * j + Lane() % 4 * 2;
          if (column < columns) {
            auto* to = reinterpret_cast<Pair*>(row + column);
            Pair pair = accumulate ? *to : Pair{0, 0};
            pair.first += sums_[k][j][2 * half];
            pair.second += sums_[k][j][2 * half + 1];
            *to = pair;
          }
        }
      }
    }
  }

 private:
  static constexpr int kRowBlocks = kShape.warp_rows / 16;
  static constexpr int kColumnBlocks = kShape.warp_columns / 8;

  __device__ static int Lane() { return static_cast<int>(threadIdx.x) % 32; }

  int first_row_;
  int first_column_;
  T sums_[kRowBlocks][kColumnBlocks][4] = {};
};

/// Runs through `count` stages: `load(memory)` begins to copy the next one's panels.
template <typename Sums, typename Load>
__device__ __forceinline__ void
AddStages(int count, typename Sums::T* memory, Load load, Sums* sums) {
  int loaded = 0;
  const auto load_next = [&] {
    if (loaded < count) {
      load(memory + loaded % kStages * Sums::kStageElements);
    }
    ++loaded;
    EndOfCopies();
  };
#pragma unroll
  for (int i = 0; i < kStages - 1; ++i) {
    load_next();
  }
  for (int stage = 0; stage < count; ++stage) {
    WaitForCopies<kStages - 2>();
    __syncthreads();  // the copies of all threads are there, and the oldest stage has been read
    load_next();
    sums->Add(memory + stage % kStages * Sums::kStageElements);
  }
}

}  // namespace gradsmith::conv::tensor_cores

#endif  // GRADSMITH_CUDA_KERNELS_TENSOR_CORES_CUH_
