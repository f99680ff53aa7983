#include "conv/cuda/kernels/depthwise_rows.cuh"
#include "cuda/kernels/ptx.cuh"

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

/// Computes a tile of what was read. `line` is where its first element is written.
template <Memory kMemory, typename G, int kSide, typename T>
__device__ __forceinline__ void CombineRows(
    const Planes& planes,
    const Row<T, G::kMain, G::kBefore, G::kAfter> (&rows)[G::kRows],
    const Accumulator<T> (&filter)[kSide * kSide],
    int to_row,
    int to_column,
    T* line,
    bool accumulate) {
  using A = Accumulator<T>;
  A sums[G::kToRows][G::kToColumns] = {};
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
      if (is_done && IsWithin(to_row + row, planes.height)) {
        StoreRow<kMemory>(
            planes, line + row * planes.row_stride, to_column, sums[row], accumulate);
      }
    }
  }
}

/// Each thread computes a tile. All of what it reads is in flight before the first product.
template <typename G, int kSide, typename T>
__device__ __forceinline__ void
Correlate(const Arguments& p, const T* from, const T* w, T* to, bool accumulate) {
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
  Accumulator<T> filter[kSide * kSide];
  LoadFilter(w + std::int64_t{channel} * (kSide * kSide), p.reversed, filter);
  const int to_row = place.strip * G::kToRows + p.to_row;
  const int to_column = place.run * G::kToColumns + p.to_column;
  T* line = to + n * p.to.batch_stride + channel * p.to.channel_stride +
            (to_row * p.to.row_stride + to_column);
  CombineRows<Memory::kGlobal, G, kSide>(
      p.to, rows, filter, to_row, to_column, line, accumulate);
}

/// Rows of a dense tensor, counted through all planes, that a block reads or writes.
struct Span {
  std::int64_t begin;  // in elements
  int count;
  int shift;  // elements from a multiple of 16 bytes to the first one

  /// Where a plane is in shared memory, whose elements have the alignment that they have outside.
  __device__ __forceinline__ int PlaneAt(std::int64_t plane, const Planes& planes) const {
    return static_cast<int>(plane * (planes.height * planes.width) - begin) + shift;
  }
};

/// The rows of the planes from (first_plane, first_row) to before (last_plane, last_row); what is
/// outside of a plane is left out.
template <typename T>
__device__ __forceinline__ Span SpanOf(
    const Planes& planes,
    const T* data,
    std::uint32_t first_plane,
    int first_row,
    std::uint32_t last_plane,
    int last_row) {
  const std::int64_t begin =
      (std::int64_t{first_plane} * planes.height + max(0, min(first_row, planes.height))) *
      planes.width;
  const std::int64_t end =
      (std::int64_t{last_plane} * planes.height + max(0, min(last_row, planes.height))) *
      planes.width;
  const auto address = reinterpret_cast<std::uintptr_t>(data + begin);
  return {begin, static_cast<int>(end - begin), static_cast<int>(address % 16 / sizeof(T))};
}

/// Copies a span to shared memory by 16 bytes.
template <typename T>
__device__ __forceinline__ void
LoadSpan(const Span& span, const T* data, std::int64_t elements, T* shared) {
  constexpr int kLength = cuda::kVectorLength<T>;
  const int end = span.shift + span.count;
  const std::int64_t whole_end = span.begin + span.count + (kLength - 1 - (end - 1) % kLength);
  if (span.begin >= span.shift && whole_end <= elements) {
    constexpr int kAtOnce = 4;
    const T* first = data + (span.begin - span.shift);
    for (int i = static_cast<int>(threadIdx.x) * kLength; i < end;
         i += kAtOnce * kThreads * kLength) {
      uint4 values[kAtOnce];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        const int at = i + j * kThreads * kLength;
        if (at < end) {
          values[j] = *reinterpret_cast<const uint4*>(first + at);
        }
      }
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        const int at = i + j * kThreads * kLength;
        if (at < end) {
          *reinterpret_cast<uint4*>(shared + at) = values[j];
        }
      }
    }
    return;
  }
  // At the tensor's ends.
  for (int i = static_cast<int>(threadIdx.x) * kLength; i < end; i += kThreads * kLength) {
    const std::int64_t at = span.begin + (i - span.shift);
    if (at >= 0 && at + kLength <= elements) {
      *reinterpret_cast<uint4*>(shared + i) = *reinterpret_cast<const uint4*>(data + at);
    } else {
      for (int j = 0; j < kLength; ++j) {
        if (at + j >= 0 && at + j < elements) {
          shared[i + j] = data[at + j];
        }
      }
    }
  }
}

template <typename T>
__device__ __forceinline__ void StoreSpan(const Span& span, const T* shared, T* data) {
  constexpr int kLength = cuda::kVectorLength<T>;
  const int end = span.shift + span.count;
  for (int i = static_cast<int>(threadIdx.x) * kLength; i < end; i += kThreads * kLength) {
    T* at = data + (span.begin + (i - span.shift));
    if (i >= span.shift && i + kLength <= end) {
      *reinterpret_cast<uint4*>(at) = *reinterpret_cast<const uint4*>(shared + i);
    } else {
      for (int j = 0; j < kLength; ++j) {
        if (i + j >= span.shift && i + j < end) {
          at[j] = shared[i + j];
        }
      }
    }
  }
}

/// As Correlate, of dense tensors whose rows cannot be read by 16 bytes: a block has whole strips,
/// and what these read and write is in one piece.
template <typename G, int kSide, typename T>
__device__ __forceinline__ void
CorrelateStaged(const Arguments& p, const T* from, const T* w, T* to) {
  GRADSMITH_DYNAMIC_SHARED(storage);
  T* shared = reinterpret_cast<T*>(storage);
  const std::uint32_t first = blockIdx.x * p.strips_of_block;
  const std::uint32_t last = min(first + p.strips_of_block, p.all_strips) - 1;
  const std::uint32_t first_plane = Divide(first, p.strips);
  const std::uint32_t last_plane = Divide(last, p.strips);
  const int first_strip = static_cast<int>(first - first_plane * p.strips.divisor);
  const int last_strip = static_cast<int>(last - last_plane * p.strips.divisor);
  const int from_row = p.from_row - G::kBefore;
  const Span read = SpanOf(
      p.from, from, first_plane, first_strip * G::kMainRows + from_row, last_plane,
      last_strip * G::kMainRows + from_row + G::kRows);
  LoadSpan(read, from, p.from_elements, shared);
  const std::uint32_t line_of_block = Divide(threadIdx.x, p.runs);
  const std::uint32_t line = min(first + line_of_block, last);
  const bool active = first + line_of_block <= last;
  const std::uint32_t plane = Divide(line, p.strips);
  const int strip = static_cast<int>(line - plane * p.strips.divisor);
  const int run = static_cast<int>(threadIdx.x - line_of_block * p.runs.divisor);
  const std::uint32_t channel = plane - Divide(plane, p.channels) * p.channels.divisor;
  Accumulator<T> filter[kSide * kSide];
  LoadFilter(w + std::int64_t{channel} * (kSide * kSide), p.reversed, filter);
  __syncthreads();
  Row<T, G::kMain, G::kBefore, G::kAfter> rows[G::kRows];
  LoadRows(
      p.from, shared + read.PlaneAt(plane, p.from), strip * G::kMainRows + from_row,
      run * G::kMain + p.from_column, rows);
  const Span written = SpanOf(
      p.to, to, first_plane, first_strip * G::kToRows + p.to_row, last_plane,
      last_strip * G::kToRows + p.to_row + G::kToRows);
  __syncthreads();
  if (active) {
    const int to_row = strip * G::kToRows + p.to_row;
    const int to_column = run * G::kToColumns + p.to_column;
    T* at = shared + (written.PlaneAt(plane, p.to) + to_row * p.to.row_stride + to_column);
    CombineRows<Memory::kShared, G, kSide>(
        p.to, rows, filter, to_row, to_column, at, false);
  }
  __syncthreads();
  StoreSpan(written, shared, to);
}

}  // namespace
}  // namespace gradsmith::conv::depthwise_rows

#define GRADSMITH_DEPTHWISE_ROWS_OF(name, side, step, spreads, suffix, T)                      \
  extern "C" __global__ void __launch_bounds__(gradsmith::conv::depthwise_rows::kThreads)      \
      gradsmith_depthwise_rows_##name##_##suffix(                                              \
          gradsmith::conv::depthwise_rows::Arguments arguments, const void* from,              \
          const void* w, void* to, bool accumulate) {                                          \
    using namespace gradsmith::conv::depthwise_rows;                                           \
    Correlate<RowGeometry<side, step, spreads, sizeof(T)>, side>(                              \
        arguments, static_cast<const T*>(from), static_cast<const T*>(w), static_cast<T*>(to), \
        accumulate);                                                                           \
  }

#define GRADSMITH_DEPTHWISE_ROWS_STAGED_OF(name, side, step, spreads, suffix, T)                \
  extern "C" __global__ void __launch_bounds__(gradsmith::conv::depthwise_rows::kThreads)       \
      gradsmith_depthwise_rows_staged_##name##_##suffix(                                        \
          gradsmith::conv::depthwise_rows::Arguments arguments, const void* from,               \
          const void* w, void* to) {                                                            \
    using namespace gradsmith::conv::depthwise_rows;                                            \
    CorrelateStaged<RowGeometry<side, step, spreads, sizeof(T)>, side>(                         \
        arguments, static_cast<const T*>(from), static_cast<const T*>(w), static_cast<T*>(to)); \
  }

#define GRADSMITH_DEPTHWISE_ROWS_BY(KERNEL, suffix, T)  \
  KERNEL(3x3, 3, 1, false, suffix, T)                   \
  KERNEL(5x5, 5, 1, false, suffix, T)                   \
  KERNEL(7x7, 7, 1, false, suffix, T)                   \
  KERNEL(forward_2x2_by_2, 2, 2, false, suffix, T)      \
  KERNEL(forward_3x3_by_2, 3, 2, false, suffix, T)      \
  KERNEL(forward_4x4_by_2, 4, 2, false, suffix, T)      \
  KERNEL(forward_5x5_by_2, 5, 2, false, suffix, T)      \
  KERNEL(data_2x2_by_2, 2, 2, true, suffix, T)          \
  KERNEL(data_3x3_by_2, 3, 2, true, suffix, T)          \
  KERNEL(data_4x4_by_2, 4, 2, true, suffix, T)          \
  KERNEL(data_5x5_by_2, 5, 2, true, suffix, T)

#define GRADSMITH_DEPTHWISE_ROWS(suffix, T) \
  GRADSMITH_DEPTHWISE_ROWS_BY(GRADSMITH_DEPTHWISE_ROWS_OF, suffix, T)
#define GRADSMITH_DEPTHWISE_ROWS_STAGED(suffix, T) \
  GRADSMITH_DEPTHWISE_ROWS_BY(GRADSMITH_DEPTHWISE_ROWS_STAGED_OF, suffix, T)

GRADSMITH_FOR_ELEMENT_TYPES(GRADSMITH_DEPTHWISE_ROWS)
GRADSMITH_DEPTHWISE_ROWS_STAGED(f32, float)
GRADSMITH_DEPTHWISE_ROWS_STAGED(f16, __half)
GRADSMITH_DEPTHWISE_ROWS_STAGED(bf16, __nv_bfloat16)
