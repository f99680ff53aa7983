#include "cuda/kernels/depthwise_rows.cuh"

/// Forward and backward data of depthwise convolutions; see conv/cuda/depthwise_rows.h.
namespace gradsmith::conv::depthwise_rows {
namespace {

/// A channel's filter, turned around where backward data is computed as forward is.
template <int kTaps, typename T>
__device__ __forceinline__ void
LoadFilter(const T* from, bool reversed, Accumulator<T> (&filter)[kTaps]) {
  const int step = reversed ? -1 : 1;
  const T* first = reversed ? from + kTaps - 1 : from;
#pragma unroll
  for (int i = 0; i < kTaps; ++i) {
    filter[i] = Convert<Accumulator<T>>(first[i * step]);
  }
}

/// Adds what a row of the source gives to one of the tile's.
template <typename G, typename A>
__device__ __forceinline__ void AddRow(
    const A* filter,  // the row of taps that joins the two
    const A (&values)[G::kColumns],
    A (&sums)[G::kToColumns]) {
#pragma unroll
  for (int to = 0; to < G::kToColumns; ++to) {
#pragma unroll
    for (int from = 0; from < G::kColumns; ++from) {
      const int tap = G::TapOf(to, from);
      if (G::IsTap(tap)) {
        sums[to] += values[from] * filter[tap];
      }
    }
  }
}

/// Each thread computes a tile. All of what it reads is in flight before the first product.
template <typename G, int kSide, typename T>
__device__ __forceinline__ void
Correlate(const Arguments& p, const T* from, const T* w, T* to, bool accumulate) {
  using A = Accumulator<T>;
  const std::uint32_t tile = blockIdx.x * blockDim.x + threadIdx.x;
  if (tile >= p.tiles) {
    return;
  }
  const Place place = PlaceOf(p, tile);
  const std::uint32_t n = Divide(place.plane, p.channels);
  const std::uint32_t channel = place.plane - n * p.channels.divisor;
  Row<T, G::kMain, G::kBefore, G::kAfter> rows[G::kRows];
  LoadRows(
      p.from, from + n * p.from.batch_stride + channel * p.from.channel_stride,
      place.strip * G::kMainRows + p.from_row - G::kBefore,
      place.run * G::kMain + p.from_column, rows);
  A filter[kSide * kSide];
  LoadFilter(w + std::int64_t{channel} * (kSide * kSide), p.reversed, filter);
  A sums[G::kToRows][G::kToColumns] = {};
  const int to_row = place.strip * G::kToRows + p.to_row;
  const int to_column = place.run * G::kToColumns + p.to_column;
  T* line = to + n * p.to.batch_stride + channel * p.to.channel_stride +
            (to_row * p.to.row_stride + to_column);
#pragma unroll
  for (int i = 0; i < G::kRows; ++i) {
    A values[G::kColumns];
    Unpack(rows[i], values);
#pragma unroll
    for (int row = 0; row < G::kToRows; ++row) {
      const int tap = G::TapOf(row, i);
      if (G::IsTap(tap)) {
        AddRow<G>(filter + tap * kSide, values, sums[row]);
      }
    }
#pragma unroll
    for (int row = 0; row < G::kToRows; ++row) {
      const bool is_done = G::IsTap(G::TapOf(row, i)) &&
                           (i + 1 == G::kRows || !G::IsTap(G::TapOf(row, i + 1)));
      if (is_done && IsWithin(to_row + row, p.to.height)) {
        StoreRow(p.to, line + row * p.to.row_stride, to_column, sums[row], accumulate);
      }
    }
  }
}

}  // namespace
}  // namespace gradsmith::conv::depthwise_rows

#define GRADSMITH_DEPTHWISE_ROWS_OF(name, side, step, spreads, suffix, T)                   \
  extern "C" __global__ void __launch_bounds__(gradsmith::conv::depthwise_rows::kThreads)   \
      gradsmith_depthwise_rows_##name##_##suffix(                                           \
          gradsmith::conv::depthwise_rows::Arguments arguments, const void* from,           \
          const void* w, void* to, bool accumulate) {                                       \
    using namespace gradsmith::conv::depthwise_rows;                                        \
    Correlate<Geometry<side, step, spreads, sizeof(T)>, side>(                              \
        arguments, static_cast<const T*>(from), static_cast<const T*>(w),                   \
        static_cast<T*>(to), accumulate);                                                   \
  }

#define GRADSMITH_DEPTHWISE_ROWS(suffix, T)                            \
  GRADSMITH_DEPTHWISE_ROWS_OF(3x3, 3, 1, false, suffix, T)             \
  GRADSMITH_DEPTHWISE_ROWS_OF(5x5, 5, 1, false, suffix, T)             \
  GRADSMITH_DEPTHWISE_ROWS_OF(forward_3x3_by_2, 3, 2, false, suffix, T) \
  GRADSMITH_DEPTHWISE_ROWS_OF(forward_5x5_by_2, 5, 2, false, suffix, T) \
  GRADSMITH_DEPTHWISE_ROWS_OF(data_3x3_by_2, 3, 2, true, suffix, T)    \
  GRADSMITH_DEPTHWISE_ROWS_OF(data_5x5_by_2, 5, 2, true, suffix, T)

GRADSMITH_FOR_ELEMENT_TYPES(GRADSMITH_DEPTHWISE_ROWS)
