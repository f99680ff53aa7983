#include "conv/cuda/kernels/depthwise_tiles_filter.cuh"

/// The filter's gradient of depthwise convolutions in channels last; see
/// conv/cuda/depthwise_tiles.h.
namespace gradsmith::conv::depthwise_tiles {
namespace {

/// Adds the products of a tile of dY with the pixels that it meets, the first of which `pixels` is
/// at.
template <typename G, int kSide, typename T>
__device__ __forceinline__ void AddTile(
    const InTiles<G, T>& gradients,
    const T* pixels,
    int pitch,
    Accumulator<T> (&sums)[kSide][kSide][2],
    Accumulator<T> (&gradient_sums)[2]) {
  using A = Accumulator<T>;
#pragma unroll
  for (int i = 0; i < G::kRows; ++i) {
    A values[G::kColumns][2];
    LoadRow<G>(pixels + i * pitch * kChannels, values);
#pragma unroll
    for (int row = 0; row < G::kToRows; ++row) {
      const int tap_row = G::TapOf(row, i);
      if (G::IsTap(tap_row)) {
#pragma unroll
        for (int to = 0; to < G::kToColumns; ++to) {
          A gradient[2];
          Unpack(gradients.words[row][to], gradient, T());
          if (tap_row == 0) {
            gradient_sums[0] += gradient[0];
            gradient_sums[1] += gradient[1];
          }
#pragma unroll
          for (int from = 0; from < G::kColumns; ++from) {
            const int tap = G::TapOf(to, from);
            if (G::IsTap(tap)) {
              sums[tap_row][tap][0] += values[from][0] * gradient[0];
              sums[tap_row][tap][1] += values[from][1] * gradient[1];
            }
          }
        }
      }
    }
  }
}

/// Partial sums (slice, channel, tap); and, where they are wanted, those of dY (slice, channel).
template <typename G, int kSide, typename T>
__device__ __forceinline__ void
SumFilters(
    const Arguments& p,
    const T* x,
    const T* y,
    Accumulator<T>* partial,
    Accumulator<T>* gradient_partial) {
  GRADSMITH_DYNAMIC_SHARED(shared);
  T* pixels = reinterpret_cast<T*>(shared);
  int group = static_cast<int>(blockIdx.x);
  const auto slice = static_cast<std::uint32_t>(DivideBy(p.groups, &group));
  const int first_channel = group * kChannels;
  const int channels = min(kChannels, p.channels - first_channel);
  const Place place = PlaceOf(p, channels);
  const T* mine = pixels + (FirstSlot<G, T>(p, place) * kChannels + place.channel);
  Accumulator<T> sums[kSide][kSide][2] = {};
  Accumulator<T> gradient_sums[1][2] = {};
#pragma unroll 1
  for (std::uint32_t i = slice; i < p.blocks_of_group; i += p.slices) {
    const Block block = BlockOf(p, i);
    BeginToLoadBlock<G>(p, x, block, first_channel, channels, pixels);
    InTiles<G, T> gradients;
    gradients.Load(
        p.to, y + (block.image * p.to.batch_stride + first_channel + place.channel),
        (block.first_down + place.down) * G::kToRows,
        (block.first_across + place.across) * G::kToColumns, place.is_active);
    cuda::WaitForCopies<0>();
    __syncthreads();
    if (place.is_active) {
      AddTile<G, kSide>(gradients, mine, p.pitch, sums, gradient_sums[0]);
    }
    __syncthreads();
  }
  const std::int64_t first = std::int64_t{slice} * p.channels + first_channel;
#pragma unroll
  for (int row = 0; row < kSide; ++row) {
    SumOverTiles(sums[row], channels, kSide * kSide, partial + first * (kSide * kSide) + row * kSide);
  }
  if (gradient_partial != nullptr) {
    SumOverTiles(gradient_sums, channels, 1, gradient_partial + first);
  }
}

}  // namespace
}  // namespace gradsmith::conv::depthwise_tiles

#define GRADSMITH_DEPTHWISE_TILES_KERNEL(name, side, step, suffix, T)                            \
  extern "C" __global__ void __launch_bounds__(GRADSMITH_DEPTHWISE_TILES_BOUNDS(                 \
      (gradsmith::conv::depthwise_tiles::KernelConfig{side, step, false}), Work::kFilter))                      \
      gradsmith_depthwise_tiles_##name##_##suffix(                                               \
          gradsmith::conv::depthwise_tiles::Arguments arguments, const void* x, const void* y,   \
          void* partial, void* gradient_partial) {                                               \
    using namespace gradsmith::conv::depthwise_tiles;                                            \
    SumFilters<TileGeometry<side, step, false, Work::kFilter, T>, side>(                                  \
        arguments, static_cast<const T*>(x), static_cast<const T*>(y),                           \
        static_cast<Accumulator<T>*>(partial), static_cast<Accumulator<T>*>(gradient_partial));  \
  }

#define GRADSMITH_DEPTHWISE_TILES(suffix, T)                         \
  GRADSMITH_DEPTHWISE_TILES_KERNEL(filter_3x3, 3, 1, suffix, T)      \
  GRADSMITH_DEPTHWISE_TILES_KERNEL(filter_5x5, 5, 1, suffix, T)      \
  GRADSMITH_DEPTHWISE_TILES_KERNEL(filter_7x7, 7, 1, suffix, T)      \
  GRADSMITH_DEPTHWISE_TILES_KERNEL(filter_2x2_by_2, 2, 2, suffix, T) \
  GRADSMITH_DEPTHWISE_TILES_KERNEL(filter_3x3_by_2, 3, 2, suffix, T) \
  GRADSMITH_DEPTHWISE_TILES_KERNEL(filter_4x4_by_2, 4, 2, suffix, T) \
  GRADSMITH_DEPTHWISE_TILES_KERNEL(filter_5x5_by_2, 5, 2, suffix, T)

GRADSMITH_DEPTHWISE_TILES(f32, float)
GRADSMITH_DEPTHWISE_TILES(f16, __half)
GRADSMITH_DEPTHWISE_TILES(bf16, __nv_bfloat16)
