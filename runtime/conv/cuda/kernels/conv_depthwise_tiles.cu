#include "conv/cuda/kernels/depthwise_tiles_result.cuh"

/// Forward and backward data of depthwise convolutions in channels last; see
/// conv/cuda/depthwise_tiles.h.
namespace gradsmith::conv::depthwise_tiles {
namespace {

/// Computes the tile at (row, column). `pixels` and `filters` are at the thread's tile and
/// channels, `to` at its image and channels.
template <typename G, int kSide, typename T>
__device__ __forceinline__ void ComputeTile(
    const Arguments& p,
    const T* pixels,
    const Accumulator<T>* filters,
    int row,
    int column,
    T* to,
    bool accumulate) {
  using A = Accumulator<T>;
  A sums[G::kToRows][G::kToColumns][2] = {};
#pragma unroll
  for (int i = 0; i < G::kRows; ++i) {
    A values[G::kColumns][2];
    LoadRow<G>(pixels + i * p.pitch * kChannels, values);
#pragma unroll
    for (int to_row = 0; to_row < G::kToRows; ++to_row) {
      const int tap = G::TapOf(to_row, i);
      if (G::IsTap(tap)) {
        AddRow<G, kSide>(values, filters + tap * kSide * kChannels, sums[to_row]);
      }
    }
  }
  StoreTileAt<G>(p.to, row, column, to, sums, accumulate);
}

/// y from x, or x from dY.
template <typename G, int kSide, typename T>
__device__ __forceinline__ void
Correlate(const Arguments& p, const T* from, const T* w, T* to, bool accumulate) {
  constexpr int kTaps = kSide * kSide;
  GRADSMITH_DYNAMIC_SHARED(shared);
  auto* filters = reinterpret_cast<Accumulator<T>*>(shared);
  T* pixels = reinterpret_cast<T*>(filters + kTaps * kChannels);
  int group = static_cast<int>(blockIdx.x);
  const Block block = BlockOf(p, static_cast<std::uint32_t>(DivideBy(p.groups, &group)));
  const int first_channel = group * kChannels;
  const int channels = min(kChannels, p.channels - first_channel);
  BeginToLoadBlock<G>(p, from, block, first_channel, channels, pixels);
  LoadFilters<kTaps>(w + std::int64_t{first_channel} * kTaps, p.reversed, channels, filters);
  cuda::WaitForCopies<0>();
  __syncthreads();
  const Place place = PlaceOf(p, channels);
  if (place.is_active) {
    ComputeTile<G, kSide>(
        p, pixels + (FirstSlot<G, T>(p, place) * kChannels + place.channel),
        filters + place.channel, (block.first_down + place.down) * G::kToRows + p.to_row,
        (block.first_across + place.across) * G::kToColumns + p.to_column,
        to + (block.image * p.to.batch_stride + first_channel + place.channel), accumulate);
  }
}

}  // namespace
}  // namespace gradsmith::conv::depthwise_tiles

#define GRADSMITH_DEPTHWISE_TILES_OF(name, side, step, spreads, suffix, T)                       \
  extern "C" __global__ void __launch_bounds__(GRADSMITH_DEPTHWISE_TILES_BOUNDS(                 \
      (gradsmith::conv::depthwise_tiles::KernelConfig{side, step, spreads}), Work::kResult))                     \
      gradsmith_depthwise_tiles_##name##_##suffix(                                               \
          gradsmith::conv::depthwise_tiles::Arguments arguments, const void* from,               \
          const void* w, void* to, bool accumulate) {                                            \
    using namespace gradsmith::conv::depthwise_tiles;                                            \
    Correlate<TileGeometry<side, step, spreads, Work::kResult, T>, side>(                                \
        arguments, static_cast<const T*>(from), static_cast<const T*>(w), static_cast<T*>(to),   \
        accumulate);                                                                             \
  }

#define GRADSMITH_DEPTHWISE_TILES(suffix, T)                              \
  GRADSMITH_DEPTHWISE_TILES_OF(3x3, 3, 1, false, suffix, T)               \
  GRADSMITH_DEPTHWISE_TILES_OF(5x5, 5, 1, false, suffix, T)               \
  GRADSMITH_DEPTHWISE_TILES_OF(7x7, 7, 1, false, suffix, T)               \
  GRADSMITH_DEPTHWISE_TILES_OF(forward_2x2_by_2, 2, 2, false, suffix, T)  \
  GRADSMITH_DEPTHWISE_TILES_OF(forward_3x3_by_2, 3, 2, false, suffix, T)  \
  GRADSMITH_DEPTHWISE_TILES_OF(forward_4x4_by_2, 4, 2, false, suffix, T)  \
  GRADSMITH_DEPTHWISE_TILES_OF(forward_5x5_by_2, 5, 2, false, suffix, T)  \
  GRADSMITH_DEPTHWISE_TILES_OF(data_2x2_by_2, 2, 2, true, suffix, T)      \
  GRADSMITH_DEPTHWISE_TILES_OF(data_3x3_by_2, 3, 2, true, suffix, T)      \
  GRADSMITH_DEPTHWISE_TILES_OF(data_4x4_by_2, 4, 2, true, suffix, T)      \
  GRADSMITH_DEPTHWISE_TILES_OF(data_5x5_by_2, 5, 2, true, suffix, T)

GRADSMITH_DEPTHWISE_TILES(f32, float)
GRADSMITH_DEPTHWISE_TILES(f16, __half)
GRADSMITH_DEPTHWISE_TILES(bf16, __nv_bfloat16)
