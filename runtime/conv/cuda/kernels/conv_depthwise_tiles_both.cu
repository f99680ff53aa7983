#include "conv/cuda/kernels/depthwise_tiles_filter.cuh"
#include "conv/cuda/kernels/depthwise_tiles_result.cuh"

/// All gradients of depthwise convolutions in channels last, by single steps and where y is as large
/// as x, in one pass over dY; see conv/cuda/depthwise_tiles.h. What of dY a tile of dX meets is what
/// the same tile of x is multiplied with for the filter's gradient.
namespace gradsmith::conv::depthwise_tiles {
namespace {

/// Adds the products of a row of dY with a row of x's tile, by a row of taps; and at the tap where
/// a pixel of dY meets that of x in the same place, each pixel of dY to its sum.
template <typename G, int kSide, typename T>
__device__ __forceinline__ void AddRowOfFilter(
    const Accumulator<T> (&values)[G::kColumns][2],
    const unsigned int (&x)[G::kToColumns][kPairWords<T>],
    bool is_center,
    Accumulator<T> (&sums)[kSide][2],
    Accumulator<T> (&gradient_sums)[2]) {
#pragma unroll
  for (int to = 0; to < G::kToColumns; ++to) {
    Accumulator<T> pixel[2];
    Unpack(x[to], pixel, T());
#pragma unroll
    for (int from = 0; from < G::kColumns; ++from) {
      const int tap = G::TapOf(to, from);
      if (G::IsTap(tap)) {
        sums[tap][0] += values[from][0] * pixel[0];
        sums[tap][1] += values[from][1] * pixel[1];
        if (is_center && tap == G::kCenter) {
          gradient_sums[0] += values[from][0];
          gradient_sums[1] += values[from][1];
        }
      }
    }
  }
}

/// A thread's sums over its tiles; taps are in reverse.
template <int kSide, typename A>
struct Sums {
  A filter[kSide][kSide][2] = {};
  A gradient[1][2] = {};
};

/// Computes the tile of dX at (row, column), whose x is `x`, and adds to the sums. `pixels` and
/// `filters` are at the thread's tile and channels, `to` at its image and channels.
template <typename G, int kSide, typename T>
__device__ __forceinline__ void ComputeTile(
    const Arguments& p,
    const T* pixels,
    const Accumulator<T>* filters,
    const InTiles<G, T>& x,
    int row,
    int column,
    T* to,
    bool accumulate,
    Sums<kSide, Accumulator<T>>* sums) {
  using A = Accumulator<T>;
  A results[G::kToRows][G::kToColumns][2] = {};
#pragma unroll
  for (int i = 0; i < G::kRows; ++i) {
    A values[G::kColumns][2];
    LoadRow<G>(pixels + i * p.pitch * kChannels, values);
#pragma unroll
    for (int to_row = 0; to_row < G::kToRows; ++to_row) {
      const int tap = G::TapOf(to_row, i);
      if (G::IsTap(tap)) {
        AddRow<G, kSide>(values, filters + tap * kSide * kChannels, results[to_row]);
        AddRowOfFilter<G, kSide, T>(
            values, x.words[to_row], tap == G::kCenter, sums->filter[tap], sums->gradient[0]);
      }
    }
  }
  StoreTileAt<G>(p.to, row, column, to, results, accumulate);
}

/// dX, partial sums (slice, channel, tap), and, where they are wanted, those of dY (slice, channel).
template <typename G, int kSide, typename T>
__device__ __forceinline__ void ComputeBoth(
    const Arguments& p,
    const T* y,
    const T* x,
    const T* w,
    T* x_gradient,
    bool accumulate,
    Accumulator<T>* partial,
    Accumulator<T>* gradient_partial) {
  constexpr int kTaps = kSide * kSide;
  GRADSMITH_DYNAMIC_SHARED(shared);
  auto* filters = reinterpret_cast<Accumulator<T>*>(shared);
  T* pixels = reinterpret_cast<T*>(filters + kTaps * kChannels);
  int group = static_cast<int>(blockIdx.x);
  const auto slice = static_cast<std::uint32_t>(DivideBy(p.groups, &group));
  const int first_channel = group * kChannels;
  const int channels = min(kChannels, p.channels - first_channel);
  const Place place = PlaceOf(p, channels);
  const T* mine = pixels + (FirstSlot<G, T>(p, place) * kChannels + place.channel);
  LoadFilters<kTaps>(w + std::int64_t{first_channel} * kTaps, p.reversed, channels, filters);
  Sums<kSide, Accumulator<T>> sums;
#pragma unroll 1
  for (std::uint32_t i = slice; i < p.blocks_of_group; i += p.slices) {
    const Block block = BlockOf(p, i);
    BeginToLoadBlock<G>(p, y, block, first_channel, channels, pixels);
    const std::int64_t at = block.image * p.to.batch_stride + first_channel + place.channel;
    const int row = (block.first_down + place.down) * G::kToRows + p.to_row;
    const int column = (block.first_across + place.across) * G::kToColumns + p.to_column;
    InTiles<G, T> tile;
    tile.Load(p.to, x + at, row, column, place.is_active);
    cuda::WaitForCopies<0>();
    __syncthreads();
    if (place.is_active) {
      ComputeTile<G, kSide>(
          p, mine, filters + place.channel, tile, row, column, x_gradient + at, accumulate, &sums);
    }
    __syncthreads();
  }
  const std::int64_t first = std::int64_t{slice} * p.channels + first_channel;
#pragma unroll
  for (int row = 0; row < kSide; ++row) {
    SumOverTiles</*kReversed=*/true>(
        sums.filter[row], channels, kTaps, partial + first * kTaps + (kSide - 1 - row) * kSide);
  }
  if (gradient_partial != nullptr) {
    SumOverTiles(sums.gradient, channels, 1, gradient_partial + first);
  }
}

}  // namespace
}  // namespace gradsmith::conv::depthwise_tiles

#define GRADSMITH_DEPTHWISE_TILES_BOTH(side, suffix, T)                                          \
  extern "C" __global__ void __launch_bounds__(GRADSMITH_DEPTHWISE_TILES_BOUNDS(                 \
      (gradsmith::conv::depthwise_tiles::KernelConfig{side, 1, false}), Work::kBoth))                    \
      gradsmith_depthwise_tiles_both_##side##x##side##_##suffix(                                 \
          gradsmith::conv::depthwise_tiles::Arguments arguments, const void* y, const void* x,   \
          const void* w, void* x_gradient, bool accumulate, void* partial,                       \
          void* gradient_partial) {                                                              \
    using namespace gradsmith::conv::depthwise_tiles;                                            \
    ComputeBoth<TileGeometry<side, 1, false, Work::kBoth, T>, side>(                             \
        arguments, static_cast<const T*>(y), static_cast<const T*>(x), static_cast<const T*>(w), \
        static_cast<T*>(x_gradient), accumulate, static_cast<Accumulator<T>*>(partial),          \
        static_cast<Accumulator<T>*>(gradient_partial));                                         \
  }

#define GRADSMITH_DEPTHWISE_TILES(suffix, T)   \
  GRADSMITH_DEPTHWISE_TILES_BOTH(3, suffix, T) \
  GRADSMITH_DEPTHWISE_TILES_BOTH(5, suffix, T) \
  GRADSMITH_DEPTHWISE_TILES_BOTH(7, suffix, T)

GRADSMITH_DEPTHWISE_TILES(f32, float)
GRADSMITH_DEPTHWISE_TILES(f16, __half)
GRADSMITH_DEPTHWISE_TILES(bf16, __nv_bfloat16)
