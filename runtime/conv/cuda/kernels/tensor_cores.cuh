#ifndef GRADSMITH_CONV_CUDA_KERNELS_TENSOR_CORES_CUH_
#define GRADSMITH_CONV_CUDA_KERNELS_TENSOR_CORES_CUH_

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "conv/cuda/tensor_cores_arguments.h"
#include "cuda/kernels/element.cuh"
#include "conv/cuda/kernels/exchange.cuh"
#include "cuda/kernels/indices.cuh"
#include "cuda/kernels/ptx.cuh"
#include "cuda/kernels/tf32.cuh"

/// Matrix products on tensor cores, from panels in shared memory.
namespace gradsmith::conv::tensor_cores {

using cuda::BeforeCutOff;
using cuda::DivideBy;
using cuda::EndOfCopies;
using cuda::IsWithin;
using cuda::Lane;
using cuda::WaitForCopies;
using cuda::Whole;

/// Position says where a position is.
struct Position {
  int image;
  int at[kSpatialRank];
};

__device__ __forceinline__ Position
PositionOf(const cuda::Divisor (&sizes)[kSpatialRank], int number) {
  Position position;
#pragma unroll
  for (int axis = kSpatialRank - 1; axis >= 0; --axis) {
    const int quotient = DivideBy(sizes[axis], &number);
    position.at[axis] = number;
    number = quotient;
  }
  position.image = number;
  return position;
}

__device__ __forceinline__ int
PixelAt(int image, const int (&at)[kSpatialRank], const int (&sizes)[kSpatialRank]) {
  int pixel = image;
#pragma unroll
  for (int axis = 0; axis < kSpatialRank; ++axis) {
    pixel = pixel * sizes[axis] + at[axis];
  }
  return pixel;
}

/// RowOfNone is the row of no position: no tap reaches the source from there.
__device__ __forceinline__ SourceRow RowOfNone() {
  constexpr int kNowhere = -(1 << 30);
  return {0, {kNowhere, kNowhere, kNowhere}};
}

__device__ __forceinline__ SourceRow RowOf(
    const Position& position,
    const int (&steps)[kSpatialRank],
    const int (&sizes)[kSpatialRank],
    int chunks_of_pixel) {
  SourceRow row;
#pragma unroll
  for (int axis = 0; axis < kSpatialRank; ++axis) {
    row.at[axis] = position.at[axis] * steps[axis];
  }
  row.chunk = PixelAt(position.image, row.at, sizes) * chunks_of_pixel;
  return row;
}

/// Begins to copy a chunk to shared memory; zeros where there is nothing to copy, and then `chunk`
/// may be anything.
template <bool kShared = false, typename T>
__device__ __forceinline__ void CopyChunk(T* to, const T* first, int chunk, bool exists) {
  const char* from = reinterpret_cast<const char*>(first) + std::int64_t{chunk} * kChunkBytes;
  cuda::BeginCopy<kShared>(cuda::SharedAddress(to), from, exists);
}

/// A number in TF32 that is near.
__device__ __forceinline__ float ToTf32(float value) {
  constexpr unsigned kBits = 0xFFFFE000U;
  return __uint_as_float(__float_as_uint(BeforeCutOff(value)) & kBits);
}

/// A thread's part of a block of an operand, as the math takes it: pairs of half or bf16, and
/// otherwise what is named below.
template <Math kMath, int kCount>
struct Fragment {
  std::uint32_t values[kCount];

  __device__ __forceinline__ void Set(int i, std::uint32_t pair) { values[i] = pair; }
};

template <int kCount>
struct Fragment<Math::kTf32, kCount> {
  std::uint32_t values[kCount];

  __device__ __forceinline__ void Set(int i, float value) {
    values[i] = __float_as_uint(BeforeCutOff(value));
  }
};

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

template <Math kMath, int kBlocks, typename T>
__device__ __forceinline__ void Multiply(
    const Fragment<kMath, 4>& a,
    const Fragment<kMath, 2> (&b)[kBlocks],
    T (&sums)[kBlocks][4]) {
#pragma unroll
  for (int j = 0; j < kBlocks; ++j) {
    if constexpr (kMath == Math::kDouble) {
      cuda::AddProductOfDouble(a.values, b[j].values, sums[j]);
    } else if constexpr (kMath == Math::kHalf) {
      cuda::AddProductOfHalf(a.values, b[j].values, sums[j]);
    } else if constexpr (kMath == Math::kBfloat16) {
      cuda::AddProductOfBfloat16(a.values, b[j].values, sums[j]);
    } else {
      cuda::AddProductOfTf32(a.values, b[j].values, sums[j]);
    }
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
    cuda::AddProductOfTf32(a.low, b[j].high, few[j]);
  }
#pragma unroll
  for (int j = 0; j < kBlocks; ++j) {
    cuda::AddProductOfTf32(a.high, b[j].low, few[j]);
  }
#pragma unroll
  for (int j = 0; j < kBlocks; ++j) {
    cuda::AddProductOfTf32(a.high, b[j].high, few[j]);
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
template <>
struct ElementOf<Math::kHalf> {
  using Type = __half;
};
template <>
struct ElementOf<Math::kBfloat16> {
  using Type = __nv_bfloat16;
};
template <Math kMath>
using Element = typename ElementOf<kMath>::Type;
template <Math kMath>
using Sum = cuda::Accumulator<Element<kMath>>;

/// Panel knows where its elements are.
template <typename T, int kLines, bool kDeep>
struct Panel {
  static constexpr int kSize = sizeof(T);
  static constexpr bool kIsDeep = kDeep;
  static constexpr int kDepth = kDepthBytes / kSize;
  static constexpr int kVector = kChunkBytes / kSize;
  static constexpr int kStride = StrideOf(kLines, kDeep, kSize);
  static constexpr int kElements = PanelElements(kLines, kDeep, kSize);
  /// A panel's rows in memory, and the chunks of each.
  static constexpr int kRuns = kDeep ? kLines : kDepth;
  static constexpr int kChunks = (kDeep ? kDepth : kLines) / kVector;
  /// Four lines' elements of a term are a chunk: a thread has these, in blocks that are spread over
  /// 32 lines.
  static constexpr bool kSpread = !kDeep && kSize == 4;
  /// What a thread reads at once for a product: an element, or a pair of terms.
  using Word = std::conditional_t<kSize == 2, std::uint32_t, T>;

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

/// Four elements, in registers or in memory.
struct alignas(16) Four {
  float values[4];
};

/// LoadMatrices, of floats.
__device__ __forceinline__ Four ReadMatrices(const float* row) {
  std::uint32_t bits[4] = {};
  cuda::LoadMatrices(cuda::SharedAddress(row), bits);
  Four read;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    read.values[i] = __uint_as_float(bits[i]);
  }
  return read;
}

/// Reads a thread's elements of a product's terms of 32 rows from `first` on: two blocks, as the
/// instructions take them.
template <typename Panel, typename T>
__device__ __forceinline__ void
ReadRows(const T* panel, int first, int term, typename Panel::Word (&to)[2][4]) {
  if constexpr (Panel::kSize == 2) {
#pragma unroll
    for (int block = 0; block < 2; ++block) {
      const int row = first + 16 * block;
      if constexpr (Panel::kIsDeep) {
        const int at = Panel::At(row + Lane() % 16, term + Lane() / 16 * 8);
        cuda::LoadMatrices(cuda::SharedAddress(panel + at), to[block]);
      } else {
        const int at = Panel::At(row + Lane() / 8 % 2 * 8, term + Lane() / 16 * 8 + Lane() % 8);
        cuda::LoadTransposed(cuda::SharedAddress(panel + at), to[block]);
      }
    }
  } else if constexpr (Panel::kSpread) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int at = Panel::At(first + Lane() / 4 * 4, term + Lane() % 4 + 4 * half);
      const Four four = *reinterpret_cast<const Four*>(panel + at);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        to[i / 2][i % 2 + 2 * half] = four.values[i];
      }
    }
  } else {
#pragma unroll
    for (int block = 0; block < 2; ++block) {
      if constexpr (Panel::kSize == 4) {
        const Four four = ReadMatrices(
            panel + Panel::At(first + 16 * block + Lane() % 16, term + Lane() / 16 * 4));
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          to[block][i] = four.values[i];
        }
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int row = first + 16 * block + Lane() / 4 + 8 * (i % 2);
          to[block][i] = panel[Panel::At(row, term + Lane() % 4 + 4 * (i / 2))];
        }
      }
    }
  }
}

/// The same of rows that need not follow each other: a lane gives its own of each block.
template <typename Panel, typename T>
__device__ __forceinline__ void
ReadOwnRows(const T* panel, const int* rows, int term, std::uint32_t (&to)[2][4]) {
#pragma unroll
  for (int block = 0; block < 2; ++block) {
    const int at = Panel::At(rows[block], term + Lane() / 16 * 8);
    cuda::LoadMatrices(cuda::SharedAddress(panel + at), to[block]);
  }
}

/// The same of 32 columns: four blocks.
template <typename Panel, typename T>
__device__ __forceinline__ void
ReadColumns(const T* panel, int first, int term, typename Panel::Word (&to)[4][2]) {
  if constexpr (Panel::kSize == 2) {
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      const int column = first + 16 * pair + Lane() / 16 * 8;
      std::uint32_t words[4];
      if constexpr (Panel::kIsDeep) {
        const int at = Panel::At(column + Lane() % 8, term + Lane() / 8 % 2 * 8);
        cuda::LoadMatrices(cuda::SharedAddress(panel + at), words);
      } else {
        const int at = Panel::At(column, term + Lane() % 16);
        cuda::LoadTransposed(cuda::SharedAddress(panel + at), words);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        to[2 * pair + i / 2][i % 2] = words[i];
      }
    }
  } else if constexpr (Panel::kSpread) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int at = Panel::At(first + Lane() / 4 * 4, term + Lane() % 4 + 4 * half);
      const Four four = *reinterpret_cast<const Four*>(panel + at);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        to[i][half] = four.values[i];
      }
    }
  } else if constexpr (Panel::kSize == 4) {
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      const int column = first + 16 * pair + Lane() / 16 * 8 + Lane() % 8;
      const Four four = ReadMatrices(panel + Panel::At(column, term + Lane() / 8 % 2 * 4));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        to[2 * pair + i / 2][i % 2] = four.values[i];
      }
    }
  } else {
#pragma unroll
    for (int block = 0; block < 4; ++block) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int column = first + 8 * block + Lane() / 4;
        to[block][i] = panel[Panel::At(column, term + Lane() % 4 + 4 * i)];
      }
    }
  }
}

/// A pair of neighbours in half or bf16.
template <typename T>
struct alignas(4) Pair {
  T values[2];
};

template <typename T>
__device__ __forceinline__ std::uint32_t BitsOf(const Pair<T>& pair) {
  std::uint32_t bits = 0;
  memcpy(&bits, &pair, sizeof(bits));
  return bits;
}

template <typename T>
__device__ __forceinline__ Pair<T> PairOf(std::uint32_t bits) {
  Pair<T> pair;
  memcpy(&pair, &bits, sizeof(bits));
  return pair;
}

/// A warp's sums of its part of a tile. kByLines: a correlation's, in half or bf16.
template <Math kMath, int kTile, bool kRowsDeep, bool kColumnsDeep, bool kByLines = false>
class Sums {
 public:
  using T = Element<kMath>;
  using S = Sum<kMath>;
  /// The filter's gradient alone sums over what is not innermost in memory.
  static constexpr Tile kShape =
      kByLines ? kLineTilesOfHalf[kTile] : TileAt(kMath, !kRowsDeep, kTile);
  static constexpr int kThreads = ThreadsOf(kShape);
  using RowPanel = Panel<T, kByLines ? LineRowsOf(kShape.rows) : kShape.rows, kRowsDeep>;
  using ColumnPanel = Panel<T, kShape.columns, kColumnsDeep>;
  static constexpr int kStageElements = RowPanel::kElements + ColumnPanel::kElements;
  static constexpr int kSourceRows = SourceRowsOf(kShape, !kRowsDeep, sizeof(T));

  __device__ Sums() {
    constexpr int kWarpsOfRow = kShape.columns / kShape.warp_columns;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    first_row_ = warp / kWarpsOfRow * kShape.warp_rows;
    first_column_ = warp % kWarpsOfRow * kShape.warp_columns;
  }

  /// PlaceRows places the tile's rows where lines have them: `row_at(row of the tile)` is where it
  /// is in a panel.
  template <typename RowAt>
  __device__ __forceinline__ void PlaceRows(RowAt row_at) {
#pragma unroll
    for (int k = 0; k < kRowBlocks; ++k) {
      own_rows_[k] = row_at(first_row_ + 16 * k + Lane() % 16);
    }
  }

  /// Adds the products of a stage's panels, of which `terms` exist. Calls `meanwhile` in between:
  /// warps that share tensor cores at different times, so that these are not left idle.
  template <typename Meanwhile>
  __device__ __forceinline__ void
  Add(const T* rows, const T* columns, int terms, Meanwhile meanwhile) {
    constexpr int kLater = RowPanel::kDepth / 2;
    if (kSkipsTerms && terms < RowPanel::kDepth) {
      meanwhile();
#pragma unroll 1
      for (int term = 0; term < terms; term += kTerms) {
        AddProducts(rows, columns, term);
      }
      return;
    }
    const bool is_later = kThreads > 128 && threadIdx.x >= 128;
#pragma unroll
    for (int term = 0; term < RowPanel::kDepth; term += kTerms) {
      AddProducts(rows, columns, term);
      if ((term == 0 && !is_later) || (term == kLater && is_later)) {
        meanwhile();
      }
    }
  }

  /// Calls `row_at(row of the tile)` for a pointer to the row of the result that it is, or null,
  /// and adds or writes what is below `columns`.
  template <typename RowAt>
  __device__ __forceinline__ void
  Store(int first_column, int columns, bool accumulate, RowAt row_at) const {
#pragma unroll
    for (int k = 0; k < kRowBlocks; ++k) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        auto* row = row_at(first_row_ + RowOf(k, half));
        if constexpr (sizeof(*row) == 2) {
          StoreRounded(k, half, first_column, columns, accumulate, row);
        } else if (row != nullptr) {
          StoreRuns(k, half, first_column, columns, accumulate, row);
        }
      }
    }
  }

 private:
  static constexpr int kTerms = TermsOfProduct(sizeof(T));
  /// A stage of 16-bit terms is longer than what many filters have of channels.
  static constexpr bool kSkipsTerms = sizeof(T) == 2 && kRowsDeep;
  static constexpr int kRowBlocks = kShape.warp_rows / 16;
  static constexpr int kColumnBlocks = kShape.warp_columns / 8;
  /// Neighbouring columns that a thread has: two of one block, or one of each of four.
  static constexpr int kRun = ColumnPanel::kSpread ? 4 : 2;
  struct alignas(kRun * sizeof(S)) Run {
    S values[kRun];
  };

  __device__ __forceinline__ void AddProducts(const T* rows, const T* columns, int term) {
    Fragment<kMath, 2> b[kColumnBlocks];
#pragma unroll
    for (int j = 0; j < kColumnBlocks; j += 4) {
      typename ColumnPanel::Word read[4][2];
      ReadColumns<ColumnPanel>(columns, first_column_ + 8 * j, term, read);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        b[j + i / 2].Set(i % 2, read[i / 2][i % 2]);
      }
    }
#pragma unroll
    for (int k = 0; k < kRowBlocks; k += 2) {
      typename RowPanel::Word read[2][4];
      if constexpr (kByLines) {
        ReadOwnRows<RowPanel>(rows, own_rows_ + k, term, read);
      } else {
        ReadRows<RowPanel>(rows, first_row_ + 16 * k, term, read);
      }
#pragma unroll
      for (int block = 0; block < 2; ++block) {
        Fragment<kMath, 4> a;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          a.Set(i, read[block][i]);
        }
        Multiply(a, b, sums_[k + block]);
      }
    }
  }

  __device__ static int RowOf(int block, int half) {
    return RowPanel::kSpread ? block / 2 * 32 + Lane() / 4 * 4 + block % 2 * 2 + half
                             : block * 16 + half * 8 + Lane() / 4;
  }

  __device__ static int ColumnOf(int run) {
    return ColumnPanel::kSpread ? run / 2 * 32 + Lane() % 4 * 8 + run % 2 * 4
                                : run * 8 + Lane() % 4 * 2;
  }

  __device__ __forceinline__ void
  StoreRuns(int block, int half, int first_column, int columns, bool accumulate, S* row) const {
#pragma unroll
    for (int run = 0; run < 2 * kColumnBlocks / kRun; ++run) {
      const int column = first_column + first_column_ + ColumnOf(run);
      if (column < columns) {
        AddOrWrite(block, half, run, accumulate, reinterpret_cast<Run*>(row + column));
      }
    }
  }

  /// Rounds once. The lanes of a row exchange pairs, so that each has eight columns of a block.
  __device__ __forceinline__ void
  StoreRounded(int block, int half, int first_column, int columns, bool accumulate, T* row) const {
#pragma unroll
    for (int first = 0; first < kColumnBlocks; first += 4) {
      const int column = first_column + first_column_ + 8 * (first + Lane() % 4);
      const bool exists = row != nullptr && column < columns;
      std::uint32_t words[4] = {};
      if (accumulate) {
        if (exists) {
          const uint4 before = *reinterpret_cast<const uint4*>(row + column);
          memcpy(words, &before, sizeof(words));
        }
        cuda::TransposeAmongFour(words);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        Pair<T> pair = PairOf<T>(words[i]);
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          const S sum = sums_[block][first + i][2 * half + k];
          pair.values[k] = cuda::Convert<T>(cuda::Convert<S>(pair.values[k]) + sum);
        }
        words[i] = BitsOf(pair);
      }
      cuda::TransposeAmongFour(words);
      if (exists) {
        *reinterpret_cast<uint4*>(row + column) = {words[0], words[1], words[2], words[3]};
      }
    }
  }

  __device__ __forceinline__ void AddOrWrite(int block, int half, int run, bool accumulate, Run* to)
      const {
    Run sums = accumulate ? *to : Run{};
#pragma unroll
    for (int i = 0; i < kRun; ++i) {
      sums.values[i] += ColumnPanel::kSpread ? sums_[block][run / 2 * 4 + i][2 * half + run % 2]
                                             : sums_[block][run][2 * half + i];
    }
    *to = sums;
  }

  int first_row_;
  int first_column_;
  int own_rows_[kRowBlocks];
  S sums_[kRowBlocks][kColumnBlocks][4] = {};
};

/// Runs through `count` stages: `load(memory)` begins to copy the next one's panels. Terms come in
/// lines of so many, each of which begins with a stage of its own.
template <typename Sums, typename Load>
__device__ __forceinline__ void
AddStages(int count, int line, typename Sums::T* memory, Load load, Sums* sums) {
  constexpr int kStages = Sums::kShape.stages;
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
  int left = line;
  for (int stage = 0; stage < count; ++stage) {
    WaitForCopies<kStages - 2>();
    __syncthreads();  // the copies of all threads are there, and the oldest stage has been read
    const typename Sums::T* panels = memory + stage % kStages * Sums::kStageElements;
    sums->Add(panels, panels + Sums::RowPanel::kElements, left, load_next);
    left -= Sums::RowPanel::kDepth;
    left = left > 0 ? left : line;
  }
}

}  // namespace gradsmith::conv::tensor_cores

#endif  // GRADSMITH_CONV_CUDA_KERNELS_TENSOR_CORES_CUH_
