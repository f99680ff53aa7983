#include "conv/cuda/kernels/depthwise_rows.cuh"

/// The filter's gradient of depthwise convolutions; see conv/cuda/depthwise_rows.h.
namespace gradsmith::conv::depthwise_rows {
namespace {

constexpr int kWarp = 32;

/// Adds the products of a row of dY with what a row of taps meets in x.
template <typename G, typename A>
__device__ __forceinline__ void
AddRow(const A (&values)[G::kColumns], const A (&gradient)[G::kToColumns], A* sums) {
#pragma unroll
  for (int to = 0; to < G::kToColumns; ++to) {
#pragma unroll
    for (int from = 0; from < G::kColumns; ++from) {
      const int tap = G::TapOf(to, from);
      if (G::IsTap(tap)) {
        sums[tap] += values[from] * gradient[to];
      }
    }
  }
}

/// Adds a tile's products. `x` and `y` are at its planes.
template <typename G, int kSide, typename T>
__device__ __forceinline__ void AddTile(
    const Arguments& p,
    const Place& place,
    const T* x,
    const T* y,
    Accumulator<T> (&sums)[kSide * kSide]) {
  using A = Accumulator<T>;
  Row<T, G::kMain, G::kBefore, G::kAfter> rows[G::kRows];
  LoadRows(
      p.from, x, place.strip * G::kMainRows + p.from_row - G::kBefore,
      place.run * G::kMain + p.from_column, rows);
  Row<T, G::kToColumns, 0, 0> gradients[G::kToRows];
  LoadRows(p.to, y, place.strip * G::kToRows, place.run * G::kToColumns, gradients);
#pragma unroll
  for (int i = 0; i < G::kRows; ++i) {
    A values[G::kColumns];
    Unpack(rows[i], values);
#pragma unroll
    for (int row = 0; row < G::kToRows; ++row) {
      const int tap = G::TapOf(row, i);
      if (G::IsTap(tap)) {
        A gradient[G::kToColumns];
        Unpack(gradients[row], gradient);
        AddRow<G>(values, gradient, sums + tap * kSide);
      }
    }
  }
}

/// Adds up the block's sums, always in the same order: to partial, by thread.
template <int kTaps, typename A>
__device__ __forceinline__ void SumOverBlock(A (&sums)[kTaps], A* partial) {
  __shared__ A of_warps[kThreads / kWarp][kTaps];
#pragma unroll
  for (int tap = 0; tap < kTaps; ++tap) {
#pragma unroll
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
      sums[tap] += __shfl_down_sync(0xFFFFFFFFU, sums[tap], distance);
    }
  }
  if (threadIdx.x % kWarp == 0) {
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap) {
      of_warps[threadIdx.x / kWarp][tap] = sums[tap];
    }
  }
  __syncthreads();
  // A block may have fewer threads than a filter has taps.
  for (unsigned int tap = threadIdx.x; tap < kTaps; tap += blockDim.x) {
    A sum = 0;
    for (unsigned int warp = 0; warp < blockDim.x / kWarp; ++warp) {
      sum += of_warps[warp][tap];
    }
    partial[tap] = sum;
  }
}

/// Partial sums (slice, channel, tap). A block sums tiles of one channel; neighbouring blocks have
/// neighbouring channels, as their planes are neighbours in memory.
template <typename G, int kSide, typename T>
__device__ __forceinline__ void
SumFilters(const Arguments& p, const T* x, const T* y, Accumulator<T>* partial) {
  const std::uint32_t slice = Divide(blockIdx.x, p.channels);
  const std::uint32_t channel = blockIdx.x - slice * p.channels.divisor;
  x += channel * p.from.channel_stride;
  y += channel * p.to.channel_stride;
  Accumulator<T> sums[kSide * kSide] = {};
  const std::uint32_t first = slice * (blockDim.x * kTilesOfThread) + threadIdx.x;
#pragma unroll 1
  for (std::uint32_t i = 0; i < kTilesOfThread; ++i) {
    const std::uint32_t tile = first + i * blockDim.x;
    if (tile < p.tiles) {
      const Place place = PlaceOf(p, tile);
      AddTile<G, kSide>(
          p, place, x + place.plane * p.from.batch_stride, y + place.plane * p.to.batch_stride,
          sums);
    }
  }
  SumOverBlock(sums, partial + std::int64_t{blockIdx.x} * (kSide * kSide));
}

}  // namespace
}  // namespace gradsmith::conv::depthwise_rows

#define GRADSMITH_DEPTHWISE_ROWS_KERNEL(name, side, step, suffix, T)                          \
  extern "C" __global__ void __launch_bounds__(gradsmith::conv::depthwise_rows::kThreads)     \
      gradsmith_depthwise_rows_##name##_##suffix(                                             \
          gradsmith::conv::depthwise_rows::Arguments arguments, const void* x, const void* y, \
          void* partial) {                                                                    \
    using namespace gradsmith::conv::depthwise_rows;                                          \
    SumFilters<RowGeometry<side, step, false, sizeof(T)>, side>(                              \
        arguments, static_cast<const T*>(x), static_cast<const T*>(y),                        \
        static_cast<Accumulator<T>*>(partial));                                               \
  }

#define GRADSMITH_DEPTHWISE_ROWS(suffix, T)                         \
  GRADSMITH_DEPTHWISE_ROWS_KERNEL(filter_3x3, 3, 1, suffix, T)      \
  GRADSMITH_DEPTHWISE_ROWS_KERNEL(filter_5x5, 5, 1, suffix, T)      \
  GRADSMITH_DEPTHWISE_ROWS_KERNEL(filter_7x7, 7, 1, suffix, T)      \
  GRADSMITH_DEPTHWISE_ROWS_KERNEL(filter_2x2_by_2, 2, 2, suffix, T) \
  GRADSMITH_DEPTHWISE_ROWS_KERNEL(filter_3x3_by_2, 3, 2, suffix, T) \
  GRADSMITH_DEPTHWISE_ROWS_KERNEL(filter_4x4_by_2, 4, 2, suffix, T) \
  GRADSMITH_DEPTHWISE_ROWS_KERNEL(filter_5x5_by_2, 5, 2, suffix, T)

GRADSMITH_FOR_ELEMENT_TYPES(GRADSMITH_DEPTHWISE_ROWS)
