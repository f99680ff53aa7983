#include "conv/cuda/kernels/window.cuh"

/// Backward filter of few channels in a group, from windows in shared memory; see
/// conv/cuda/window.h. Rows of the product are chunks of x at a tap, columns channels of y, terms
/// positions of y. A block has every so many-th tile, and its sums are added up by another kernel.
namespace gradsmith::conv::window {
namespace {

/// Pairs of terms as a lane has them of 16 positions: all bits of those that exist.
__device__ __forceinline__ std::uint32_t MaskOf(unsigned exist, int first) {
  return ((exist >> first & 1U) != 0 ? 0xFFFFU : 0) |
         ((exist >> (first + 1) & 1U) != 0 ? 0xFFFF0000U : 0);
}

/// A float of shared memory, as tensor cores take it.
__device__ __forceinline__ std::uint32_t LoadTf32(unsigned address) {
  return AsTf32(cuda::LoadShared(address));
}

/// A warp's sums: kBlocks blocks of 16 rows by 8 channels of y.
template <typename Math, int kBlocks>
class Sums {
 public:
  __device__ Sums(const FilterArguments& p, int block, int split)
      : p_(p), block_(block), split_(split) {
    const auto slab = static_cast<int>(blockIdx.y);
    y_channel_ = slab * p.slab_y + block * kColumns;
    const int group = y_channel_ / p.group_y;
    x_channel_ = group * p.group_x / Math::kVector * Math::kVector;
    const int first = (x_channel_ - slab * p.slab_x) / Math::kVector;
    const int columns = static_cast<int>(p.tiling.window_columns.divisor);
#pragma unroll
    for (int i = 0; i < kBlocks; ++i) {
#pragma unroll
      for (int half = 0; half < kOffsets; ++half) {
        // What is beyond the last chunk is summed, and not written.
        const int chunk =
            Math::kVector == 8 ? ChunkOf(i, Lane() / 8 % 2, 0) : ChunkOf(i, half, Lane() / 4);
        const Chunk& met = p.table[chunk < p.chunks ? chunk : 0];
        const int row = met.offset[0] - p.origin[0];
        const int column = met.offset[1] - p.origin[1];
        offsets_[i][half] =
            (row * columns + column) * p.tiling.pixel_bytes + (first + met.place) * kChunkBytes;
      }
    }
  }

  /// Adds a tile's products; `end` is how many of its rows and columns y has, `places` where its
  /// positions are in the window.
  __device__ __forceinline__ void
  Add(const int* places, unsigned x, unsigned y, const int (&end)[kRank]) {
    const bool is_whole = end[0] >= p_.tiling.tile[0] && end[1] >= p_.tiling.tile[1];
    const int positions = p_.tiling.tile[0] * p_.tiling.tile[1];
    for (int first = split_ * kRows; first < positions; first += p_.splits * kRows) {
      // y is zero where it does not exist, but x may be infinite.
      const unsigned exist = is_whole ? ~0U : Exist(first, end);
      if constexpr (Math::kVector == 8) {
        AddPositions(places + first, x, y + first * p_.y_pixel_bytes, exist);
      } else {
        AddFloats(places + first, x, y + first * p_.y_pixel_bytes, exist);
        AddFloats(places + first + 8, x, y + (first + 8) * p_.y_pixel_bytes, exist >> 8U);
      }
    }
  }

  /// Writes what is within groups of the share of the filter that is this warp's.
  __device__ __forceinline__ void Store(float* partial) const {
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int chunk = ChunkOf(block, i / 2, Lane() / 4);
        const int tap = chunk / p_.block_chunks;
        const int x =
            x_channel_ + chunk % p_.block_chunks * Math::kVector + Lane() / 4 % Math::kVector;
        const int y = y_channel_ + Lane() % 4 * 2 + i % 2;
        const int group = y / p_.group_y;
        if (chunk < p_.chunks && x / p_.group_x == group) {
          const std::int64_t row = std::int64_t{y} * p_.filter_taps + tap;
          partial[row * p_.group_x + (x - group * p_.group_x)] = sums_[block][i];
        }
      }
    }
  }

 private:
  /// A lane's rows of a block are of one chunk or two, whose addresses it needs.
  static constexpr int kOffsets = Math::kVector == 8 ? 1 : 2;

  /// The chunk of a block's row `row` + 8 * half.
  __device__ static int ChunkOf(int block, int half, int row) {
    return (block * kRows + half * 8 + row) / Math::kVector;
  }

  /// AddPositions adds the products of 16 positions, in 16 bits.
  __device__ __forceinline__ void
  AddPositions(const int* places, unsigned x, unsigned y, unsigned exist) {
    std::uint32_t b[2];
    LoadTransposed(y + Lane() % 16 * p_.y_pixel_bytes + block_ * kChunkBytes, b);
    const unsigned from = x + places[Lane() % 8 + Lane() / 16 * 8];
    const std::uint32_t masks[2] = {
        MaskOf(exist, Lane() % 4 * 2), MaskOf(exist, Lane() % 4 * 2 + 8)};
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      std::uint32_t a[4];
      LoadTransposed(from + offsets_[block][0], a);
      if (exist != ~0U) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          a[i] &= masks[i / 2];
        }
      }
      AddProduct<Math>(a, b, sums_[block]);
    }
  }

  /// AddFloats adds the products of 8 positions, in float.
  __device__ __forceinline__ void
  AddFloats(const int* places, unsigned x, unsigned y, unsigned exist) {
    constexpr int kBytes = 4;
    const int term = Lane() % 4;
    const int row = Lane() / 4;
    std::uint32_t b[2];
    unsigned from[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      b[i] = LoadTf32(y + (term + 4 * i) * p_.y_pixel_bytes + (block_ * kColumns + row) * kBytes);
      from[i] = x + places[term + 4 * i] + row % Math::kVector * kBytes;
    }
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      std::uint32_t a[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        a[i] = LoadTf32(from[i / 2] + offsets_[block][i % 2 * (kOffsets - 1)]);
        if ((exist >> (term + 4 * (i / 2)) & 1U) == 0) {
          a[i] = 0;
        }
      }
      AddProduct<Math>(a, b, sums_[block]);
    }
  }

  __device__ unsigned Exist(int first, const int (&end)[kRank]) const {
    int column = first + Lane() % 16;
    const int row = DivideBy(p_.tiling.tile_columns, &column);
    return __ballot_sync(0xFFFFFFFFU, row < end[0] && column < end[1]);
  }

  const FilterArguments& p_;
  int block_;
  int split_;
  int x_channel_;
  int y_channel_;
  unsigned offsets_[kBlocks][kOffsets];
  float sums_[kBlocks][4] = {};
};

template <typename Math, int kBlocks>
__device__ __forceinline__ void SumFilter(
    const FilterArguments& p,
    const typename Math::T* x,
    const typename Math::T* y,
    float* partial) {
  GRADSMITH_DYNAMIC_SHARED(shared);
  const int bytes_of_x = p.tiling.window_pixels * p.tiling.pixel_bytes;
  const auto slab = static_cast<int>(blockIdx.y);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const bool works = warp < p.blocks * p.splits;
  Sums<Math, kBlocks> sums(p, works ? warp % p.blocks : 0, warp / p.blocks);
  const auto load = [&](const TilePlace& tile, unsigned window) {
    const int first[kRank] = {
        tile.first[0] * p.stride[0] + p.origin[0], tile.first[1] * p.stride[1] + p.origin[1]};
    LoadWindow<kFilterThreads>(
        ImageOf(x + slab * p.slab_x, p.x_pitch, p.x_sizes, tile.image), first,
        p.tiling.window_pixels, p.tiling.window_columns, p.tiling.slab_chunks, p.tiling.pixel_bytes,
        window);
    LoadWindow<kFilterThreads>(
        ImageOf(y + slab * p.slab_y, p.y_pitch, p.y_sizes, tile.image), tile.first,
        p.tiling.tile[0] * p.tiling.tile[1], p.tiling.tile_columns, p.y_slab_chunks,
        p.y_pixel_bytes, window + bytes_of_x);
  };
  // Shared memory begins with the places of a tile's positions in its window.
  auto* places = reinterpret_cast<int*>(shared);
  const int positions = p.tiling.tile[0] * p.tiling.tile[1];
  for (int i = static_cast<int>(threadIdx.x); i < positions; i += kFilterThreads) {
    int column = i;
    const int row = DivideBy(p.tiling.tile_columns, &column);
    const int pixel = row * p.stride[0] * static_cast<int>(p.tiling.window_columns.divisor) +
                      column * p.stride[1];
    places[i] = pixel * p.tiling.pixel_bytes;
  }
  const auto multiply = [&](const TilePlace& tile, unsigned window) {
    if (works) {
      const int end[kRank] = {p.y_sizes[0] - tile.first[0], p.y_sizes[1] - tile.first[1]};
      sums.Add(places, window, window + bytes_of_x, end);
    }
  };
  ForEachTile(p.tiling, SharedAddress(places + positions), load, multiply);
  if (works) {
    const int slice = static_cast<int>(blockIdx.x) * p.splits + warp / p.blocks;
    sums.Store(partial + std::int64_t{slice} * p.filter_elements);
  }
}

}  // namespace
}  // namespace gradsmith::conv::window

// NOLINTBEGIN(bugprone-macro-parentheses): types, in declarations
#define GRADSMITH_WINDOW_FILTER(name, math, blocks)                                                \
  extern "C" __global__ void __launch_bounds__(                                                    \
      gradsmith::conv::window::kFilterThreads,                                                     \
      gradsmith::conv::window::FilterBlocksOfSm(blocks, sizeof(gradsmith::conv::window::math::T))) \
      gradsmith_window_filter_##name##_##blocks(                                                   \
          const __grid_constant__ gradsmith::conv::window::FilterArguments arguments,              \
          const gradsmith::conv::window::math::T* x, const gradsmith::conv::window::math::T* y,    \
          float* partial) {                                                                        \
    gradsmith::conv::window::SumFilter<gradsmith::conv::window::math, blocks>(                     \
        arguments, x, y, partial);                                                                 \
  }
// NOLINTEND(bugprone-macro-parentheses)

GRADSMITH_WINDOW_FILTER(half, Half, 5)
GRADSMITH_WINDOW_FILTER(half, Half, 9)
GRADSMITH_WINDOW_FILTER(half, Half, 13)
GRADSMITH_WINDOW_FILTER(bf16, Bfloat16, 5)
GRADSMITH_WINDOW_FILTER(bf16, Bfloat16, 9)
GRADSMITH_WINDOW_FILTER(bf16, Bfloat16, 13)
GRADSMITH_WINDOW_FILTER(tf32, Tf32, 5)
GRADSMITH_WINDOW_FILTER(tf32, Tf32, 9)
GRADSMITH_WINDOW_FILTER(tf32, Tf32, 13)
