#include "cuda/kernels/element.cuh"
#include "conv/cuda/kernels/window.cuh"

/// Forward and backward data of few channels in a group, from windows in shared memory; see
/// conv/cuda/window.h. Rows of the product are cells, columns a cell's channels, terms the chunks
/// that these meet.
namespace gradsmith::conv::window {
namespace {

/// An element of the filter as a block of columns meets it in a chunk; 0 where it does not.
template <typename Math>
__device__ float FilterAt(
    const CorrelateArguments& p,
    const typename Math::T* filter,
    const ColumnBlock& block,
    int chunk,
    int element,
    int column) {
  if (chunk >= p.chunks) {
    return 0;
  }
  const Chunk& met = p.table[chunk];
  const auto slab = static_cast<int>(blockIdx.y);
  const int from = (slab * p.slab_source) + ((block.chunk + met.place) * Math::kVector) + element;
  int first[kRank] = {block.first[0], block.first[1]};
  int to = (slab * p.slab_result) + block.channel + column;
  if (p.is_merged) {
    first[1] = column / p.result_pitch;
    to = column % p.result_pitch;
    if (first[1] >= p.cell_sizes[1]) {
      return 0;
    }
  }
  const int group = to / p.group_result;
  if (from / p.group_source != group) {
    return 0;
  }
  int tap = 0;
#pragma unroll
  for (int axis = 0; axis < kRank; ++axis) {
    const int distance = first[axis] + p.pad[axis] + p.factor[axis] * met.offset[axis];
    const int along = distance / p.dilation[axis];
    if (distance < 0 || along * p.dilation[axis] != distance || along >= p.filter_sizes[axis]) {
      return 0;
    }
    tap = tap * p.filter_sizes[axis] + along;
  }
  const int y = p.is_backward ? from : to;
  const int x = p.is_backward ? to - group * p.group_result : from - group * p.group_source;
  const int x_channels = p.is_backward ? p.group_result : p.group_source;
  const int taps = p.filter_sizes[0] * p.filter_sizes[1];
  return cuda::Convert<float>(filter[(std::int64_t{y} * taps + tap) * x_channels + x]);
}

/// Two neighbours in half or bf16, as 4 bytes.
template <typename T>
__device__ __forceinline__ std::uint32_t PairOf(float first, float second) {
  if constexpr (sizeof(T) == 2) {
    union {
      T values[2];
      std::uint32_t bits;
    } pair = {{cuda::Convert<T>(first), cuda::Convert<T>(second)}};
    return pair.bits;
  }
  return 0;
}

constexpr int kRegistersOfLane = kBlocksOfSet * 2;

/// Makes what lanes multiply by of the filter, for all sets of a slab: a thread for each register.
template <typename Math>
__device__ __forceinline__ void MakeFragments(
    const CorrelateArguments& p,
    const typename Math::T* filter,
    std::uint32_t* fragments) {
  const int count = p.sets * p.steps * 32 * kRegistersOfLane;
  const auto i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) {
    return;
  }
  const int part = i % 2;
  const int lane = i / kRegistersOfLane % 32;
  const int step = i / (kRegistersOfLane * 32) % p.steps;
  const int set = i / (kRegistersOfLane * 32) / p.steps;
  const int block = set * kBlocksOfSet + i / 2 % kBlocksOfSet;
  std::uint32_t value = 0;
  if (block < p.blocks) {
    const auto at = [&](int element) {
      return FilterAt<Math>(p, filter, p.columns[block], 2 * step + part, element, lane / 4);
    };
    value = Math::kVector == 4 ? AsTf32(at(lane % 4))
                               : PairOf<typename Math::T>(at(lane % 4 * 2), at(lane % 4 * 2 + 1));
  }
  fragments[static_cast<int>(blockIdx.y) * count + i] = value;
}

/// The columns of a block as a tile's rows meet them: where they begin, and how many rows and
/// columns of cells there are.
template <typename T>
struct Target {
  T* first;
  int cells[kRank];

  __device__ bool Has(const TileRow& row) const {
    return row.cell[0] < cells[0] && row.cell[1] < cells[1];
  }
};

/// `image` is the tile's image of the result, from the slab's channels on.
template <typename T>
__device__ __forceinline__ Target<T>
TargetOf(const CorrelateArguments& p, const TilePlace& tile, const ColumnBlock& block, T* image) {
  Target<T> target;
  int pixel = 0;
#pragma unroll
  for (int axis = 0; axis < kRank; ++axis) {
    target.cells[axis] = block.cells[axis] - tile.first[axis];
    pixel =
        pixel * p.result_sizes[axis] + tile.first[axis] * p.cell_sizes[axis] + block.first[axis];
  }
  target.first = image + pixel * p.result_pitch + block.channel;
  return target;
}

/// Writes a lane's two columns of a block.
template <typename T>
__device__ __forceinline__ void StorePair(
    const CorrelateArguments& p,
    const Target<T>& target,
    const TileRow& row,
    int first_column,
    const float* sums,
    bool accumulate) {
  if (!target.Has(row)) {
    return;
  }
  const int column = Lane() % 4 * 2;
  T* to = target.first + row.result + column;
  bool exist[2] = {true, true};
  if (p.is_merged) {
    const int at = (first_column + row.cell[1]) * p.cell_sizes[1];
    const int end = min(p.cell_sizes[1], p.result_sizes[1] - at) * p.result_pitch;
    exist[0] = column < end;
    exist[1] = column + 1 < end;
  }
  struct alignas(2 * sizeof(T)) Pair {
    T values[2];
  };
  if (exist[1] && reinterpret_cast<std::uintptr_t>(to) % sizeof(Pair) == 0) {
    Pair pair = accumulate ? *reinterpret_cast<Pair*>(to) : Pair{{T(0.0F), T(0.0F)}};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      pair.values[i] = cuda::Convert<T>(cuda::Convert<float>(pair.values[i]) + sums[i]);
    }
    *reinterpret_cast<Pair*>(to) = pair;
    return;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (exist[i]) {
      to[i] = cuda::Convert<T>((accumulate ? cuda::Convert<float>(to[i]) : 0.0F) + sums[i]);
    }
  }
}

/// Two blocks of 16-bit columns that are neighbours: lanes exchange pairs, so that each writes 8
/// bytes and four of them a sector of memory. `target` is the first's.
template <typename T>
__device__ __forceinline__ void
StoreNeighbours(const Target<T>& target, const TileRow& row, const float* low, const float* high) {
  const bool is_odd = Lane() % 2 != 0;
  const std::uint32_t mine[2] = {PairOf<T>(low[0], low[1]), PairOf<T>(high[0], high[1])};
  const std::uint32_t other = __shfl_xor_sync(0xFFFFFFFFU, is_odd ? mine[0] : mine[1], 1);
  if (target.Has(row)) {
    const int column = (is_odd ? kColumns : 0) + Lane() % 4 / 2 * 4;
    *reinterpret_cast<uint2*>(target.first + row.result + column) =
        is_odd ? make_uint2(other, mine[1]) : make_uint2(mine[0], other);
  }
}

/// A warp's product: kRowBlocks blocks of rows by a set of column blocks.
template <typename Math, bool kShared>
class Product {
 public:
  using T = typename Math::T;

  /// `rows` are the tile's, from this product's first on.
  __device__ Product(const CorrelateArguments& p, const TileRow* rows, int set)
      : p_(p), rows_(rows), set_(set) {}

  __device__ __forceinline__ void Add(const uint4* fragments, const int* offsets, unsigned window) {
    const int chunk = p_.columns[Block(0)].chunk;
    const unsigned apart = (p_.columns[Block(1)].chunk - chunk) * kChunkBytes;
    unsigned at[kRowBlocks];
#pragma unroll
    for (int k = 0; k < kRowBlocks; ++k) {
      at[k] = window + rows_[k * kRows + Lane() % 16].window + chunk * kChunkBytes;
    }
    const uint4* columns = fragments + set_ * p_.steps * 32 + Lane();
    const int* offset = offsets + Lane() / 16;
    if constexpr (kShared) {
      Operands next;
      next.Read(at, offset[0], apart, columns[0]);
      for (int step = 1; step < p_.steps; ++step) {
        const Operands now = next;  // what the next step multiplies is on its way meanwhile
        next.Read(at, offset[2 * step], apart, columns[step * 32]);
        Multiply(now);
      }
      Multiply(next);
    } else {  // there are not registers enough for that
      for (int step = 0; step < p_.steps; ++step) {
        Operands now;
        now.Read(at, offset[2 * step], apart, columns[step * 32]);
        Multiply(now);
      }
    }
  }

  __device__ __forceinline__ void Store(const TilePlace& tile, T* image, bool accumulate) const {
    const Target<T> targets[kBlocksOfSet] = {
        TargetOf(p_, tile, p_.columns[Block(0)], image),
        TargetOf(p_, tile, p_.columns[Block(1)], image)};
#pragma unroll
    for (int k = 0; k < kRowBlocks; ++k) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const TileRow row = rows_[k * kRows + half * 8 + Lane() / 4];
        if (sizeof(T) == 2 && p_.is_adjacent && !accumulate) {
          StoreNeighbours(targets[0], row, sums_[k][0] + 2 * half, sums_[k][1] + 2 * half);
          continue;
        }
#pragma unroll
        for (int j = 0; j < kBlocksOfSet; ++j) {
          if (set_ * kBlocksOfSet + j < p_.blocks) {
            StorePair(p_, targets[j], row, tile.first[1], sums_[k][j] + 2 * half, accumulate);
          }
        }
      }
    }
  }

 private:
  static constexpr int kLoads = kShared ? 1 : kBlocksOfSet;

  /// A lane's part of a step's factors.
  struct Operands {
    std::uint32_t a[kRowBlocks][kLoads][4];
    std::uint32_t b[kBlocksOfSet][2];

    __device__ __forceinline__ void
    Read(const unsigned (&at)[kRowBlocks], int offset, unsigned apart, const uint4& columns) {
#pragma unroll
      for (int k = 0; k < kRowBlocks; ++k) {
#pragma unroll
        for (int j = 0; j < kLoads; ++j) {
          LoadMatrices(at[k] + offset + j * apart, a[k][j]);
        }
      }
      b[0][0] = columns.x;
      b[0][1] = columns.y;
      b[1][0] = columns.z;
      b[1][1] = columns.w;
    }
  };

  __device__ __forceinline__ void Multiply(Operands operands) {
#pragma unroll
    for (int k = 0; k < kRowBlocks; ++k) {
#pragma unroll
      for (int j = 0; j < kLoads; ++j) {
        if constexpr (sizeof(T) == 4) {
#pragma unroll
          for (std::uint32_t& value : operands.a[k][j]) {
            value = AsTf32(__uint_as_float(value));
          }
        }
      }
#pragma unroll
      for (int j = 0; j < kBlocksOfSet; ++j) {
        AddProduct<Math>(operands.a[k][j % kLoads], operands.b[j], sums_[k][j]);
      }
    }
  }

  /// The last set may have one block alone: it computes that twice.
  __device__ int Block(int j) const { return min(set_ * kBlocksOfSet + j, p_.blocks - 1); }

  const CorrelateArguments& p_;
  const TileRow* rows_;
  int set_;
  float sums_[kRowBlocks][kBlocksOfSet][4] = {};
};

/// Writes what is known of a tile's rows; those beyond the tile exist nowhere, and read what there
/// is.
__device__ __forceinline__ void MakeRows(const CorrelateArguments& p, TileRow* rows) {
  constexpr int kNowhere = 1 << 30;
  const int positions = p.tiling.tile[0] * p.tiling.tile[1];
  const int window_columns = static_cast<int>(p.tiling.window_columns.divisor);
  for (int i = static_cast<int>(threadIdx.x); i < p.tile_rows; i += kThreads) {
    int column = i;
    const int row = DivideBy(p.tiling.tile_columns, &column);
    const int window = row * p.source_step[0] * window_columns + column * p.source_step[1];
    const int result =
        (row * p.cell_sizes[0] * p.result_sizes[1] + column * p.cell_sizes[1]) * p.result_pitch;
    rows[i] = i < positions ? TileRow{window * p.tiling.pixel_bytes, result, {row, column}}
                            : TileRow{0, 0, {kNowhere, kNowhere}};
  }
}

template <typename Math, bool kShared>
__device__ __forceinline__ void Correlate(
    const CorrelateArguments& p,
    const typename Math::T* source,
    const uint4* fragments,
    typename Math::T* result,
    int first_slab,
    bool accumulate) {
  GRADSMITH_DYNAMIC_SHARED(shared);
  const int fragment_chunks = p.sets * p.steps * (kFragmentBytes / kChunkBytes);
  auto* offsets = reinterpret_cast<int*>(shared + fragment_chunks);
  auto* rows = reinterpret_cast<TileRow*>(offsets + kMostChunks);
  const unsigned windows = SharedAddress(rows + p.tile_rows);
  MakeRows(p, rows);
  const int slab = first_slab + static_cast<int>(blockIdx.y);
  for (int i = static_cast<int>(threadIdx.x); i < fragment_chunks; i += kThreads) {
    BeginCopy(SharedAddress(shared + i), fragments + slab * fragment_chunks + i, true);
  }
  // What is beyond the last chunk is multiplied by zeros: the first will do.
  for (int i = static_cast<int>(threadIdx.x); i < 2 * p.steps; i += kThreads) {
    const Chunk& met = p.table[i < p.chunks ? i : 0];
    const int row = met.offset[0] - p.origin[0];
    const int column = met.offset[1] - p.origin[1];
    offsets[i] =
        (row * static_cast<int>(p.tiling.window_columns.divisor) + column) * p.tiling.pixel_bytes +
        met.place * kChunkBytes;
  }
  const auto load = [&](const TilePlace& tile, unsigned window) {
    const int first[kRank] = {
        tile.first[0] * p.source_step[0] + p.origin[0],
        tile.first[1] * p.source_step[1] + p.origin[1]};
    LoadWindow<kThreads>(
        ImageOf(source + slab * p.slab_source, p.source_pitch, p.source_sizes, tile.image), first,
        p.tiling.window_pixels, p.tiling.window_columns, p.tiling.slab_chunks, p.tiling.pixel_bytes,
        window);
  };
  const auto multiply = [&](const TilePlace& tile, unsigned window) {
    auto* image =
        result + (p.is_merged ? 0 : slab * p.slab_result) +
        tile.image * (std::int64_t{p.result_sizes[0]} * p.result_sizes[1] * p.result_pitch);
    constexpr int kRowsOfProduct = kRows * kRowBlocks;
    const int items = p.tile_rows / kRowsOfProduct * p.sets;
    for (int item = static_cast<int>(threadIdx.x) / 32; item < items; item += kThreads / 32) {
      Product<Math, kShared> product(p, rows + item / p.sets * kRowsOfProduct, item % p.sets);
      product.Add(shared, offsets, window);
      product.Store(tile, image, accumulate);
    }
  };
  ForEachTile(p.tiling, windows, load, multiply);
}

}  // namespace
}  // namespace gradsmith::conv::window

// NOLINTBEGIN(bugprone-macro-parentheses): types, in declarations
#define GRADSMITH_WINDOW_CORRELATE(name, math, shared)                                   \
  extern "C" __global__ void __launch_bounds__(                                          \
      gradsmith::conv::window::kThreads, gradsmith::conv::window::kBlocksOfSm)           \
      gradsmith_window_correlate_##name(                                                 \
          const __grid_constant__ gradsmith::conv::window::CorrelateArguments arguments, \
          const gradsmith::conv::window::math::T* source, const uint4* fragments,        \
          gradsmith::conv::window::math::T* result, int first_slab, bool accumulate) {   \
    gradsmith::conv::window::Correlate<gradsmith::conv::window::math, shared>(           \
        arguments, source, fragments, result, first_slab, accumulate);                   \
  }

#define GRADSMITH_WINDOW_FRAGMENTS(name, math)                                       \
  extern "C" __global__ void gradsmith_window_fragments_##name(                      \
      const __grid_constant__ gradsmith::conv::window::CorrelateArguments arguments, \
      const gradsmith::conv::window::math::T* filter, std::uint32_t* fragments) {    \
    gradsmith::conv::window::MakeFragments<gradsmith::conv::window::math>(           \
        arguments, filter, fragments);                                               \
  }
// NOLINTEND(bugprone-macro-parentheses)

GRADSMITH_WINDOW_FRAGMENTS(half, Half)
GRADSMITH_WINDOW_FRAGMENTS(bf16, Bfloat16)
GRADSMITH_WINDOW_FRAGMENTS(tf32, Tf32)
GRADSMITH_WINDOW_CORRELATE(half_shared, Half, true)
GRADSMITH_WINDOW_CORRELATE(half_apart, Half, false)
GRADSMITH_WINDOW_CORRELATE(bf16_shared, Bfloat16, true)
GRADSMITH_WINDOW_CORRELATE(bf16_apart, Bfloat16, false)
GRADSMITH_WINDOW_CORRELATE(tf32_shared, Tf32, true)
GRADSMITH_WINDOW_CORRELATE(tf32_apart, Tf32, false)
