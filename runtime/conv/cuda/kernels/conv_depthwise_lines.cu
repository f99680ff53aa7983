#include <climits>

#include "conv/cuda/kernels/depthwise_lines.cuh"

/// Forward and backward data of depthwise convolutions with filters of any size; see
/// conv/cuda/depthwise_lines.h.
namespace gradsmith::conv::depthwise_lines {
namespace {

/// What a block computes: planes of a depth, and the first row, position and phase of each.
struct Place {
  Block block;
  int depth;
  int row;
  int position;
  int phase;
};

__device__ __forceinline__ Place PlaceOf(const Arguments& p, int run_length) {
  int image = static_cast<int>(blockIdx.x);
  int phase = image;
  image = DivideBy(p.phase_tiles, &phase);
  int run = image;
  image = DivideBy(p.run_tiles, &run);
  int row = image;
  image = DivideBy(p.row_tiles, &row);
  int depth = image;
  image = DivideBy(p.depth_tiles, &depth);
  int channel = image;
  image = DivideBy(p.channel_tiles, &channel);
  Place place;
  place.depth = depth;
  place.block.image = image * p.images_of_block;
  place.block.channel = channel * p.channels_of_block;
  place.block.images = min(p.images_of_block, p.batch - place.block.image);
  place.block.channels = min(p.channels_of_block, p.channels - place.block.channel);
  place.row = row * static_cast<int>(p.to.rows.divisor);
  place.position = run * static_cast<int>(p.runs.divisor) * run_length;
  place.phase = phase * static_cast<int>(p.to.phases.divisor);
  return place;
}

/// Copies the taps of a block's channels, which are next to each other in memory.
template <typename R, typename T, typename A>
__device__ __forceinline__ void
CopyTaps(const Arguments& p, const Block& block, const T* w, A* shared) {
  const Taps& taps = p.taps;
  const auto count = static_cast<int>(p.filter_rows.divisor * taps.columns.divisor);
  w += std::int64_t{block.channel} * count;
  for (int i = static_cast<int>(threadIdx.x); i < block.channels * count;
       i += static_cast<int>(blockDim.x)) {
    int column = i;
    int row = DivideBy(taps.columns, &column);
    const int filter = DivideBy(p.filter_rows, &row);
    int phase = column;
    const int tap = DivideBy(taps.phases, &phase);
    const int at = taps.shift + (taps.reversed ? taps.most - 1 - tap : tap);
    shared
        [filter * p.filter_pitch + row * p.tap_row_pitch + phase * p.tap_phase_pitch + R::At(at)] =
            Convert<A>(w[i]);
  }
}

/// The rows of taps that a row of the result is summed over, and the rows that they meet.
struct MetRows {
  int count;
  int tap;
  int tap_step;
  int row;
  int row_step;
};

__device__ __forceinline__ MetRows MetBy(const Arguments& p, int row) {
  const int rows = static_cast<int>(p.taps.rows.divisor);
  const int step = static_cast<int>(p.rows.step.divisor);
  if (!p.rows.is_data) {
    return {rows, 0, 1, row * step + p.rows.first, p.rows.dilation};
  }
  int tap = row;
  const int met = DivideBy(p.rows.step, &tap);
  int count = rows - tap + step - 1;
  count = DivideBy(p.rows.step, &count);
  return {count, tap, step, met + p.rows.first, -p.rows.dilation};
}

/// The first row that any of a block's rows meets.
__device__ __forceinline__ int FirstMet(const Arguments& p, int row) {
  const MetRows met = MetBy(p, row);
  return p.rows.is_data ? met.row + (met.count - 1) * met.row_step : met.row;
}

/// What a thread computes: a run of a line.
struct Item {
  int plane;
  int row;
  int phase;
  int run;
};

__device__ __forceinline__ Item ItemOf(const Arguments& p) {
  Item item;
  item.plane = cuda::ThreadReadAnew();
  item.run = item.plane;
  item.plane = DivideBy(p.runs, &item.run);
  item.phase = item.plane;
  item.plane = DivideBy(p.to.phases, &item.phase);
  item.row = item.plane;
  item.plane = DivideBy(p.to.rows, &item.row);
  return item;
}

/// Whether any element of a thread's run is in the result.
template <typename R>
__device__ __forceinline__ bool IsActive(const Arguments& p, const Place& place, const Item& item) {
  const int first = (place.position + item.run * R::kLength) * p.to.phase_step + p.to_column +
                    place.phase + item.phase;
  const int last = first + (R::kLength - 1) * p.to.phase_step;
  return item.plane < place.block.images * place.block.channels &&
         IsWithin(p.to_row + place.row + item.row, p.to.planes.height) &&
         first < p.to.planes.width && last >= 0;
}

/// The places of taps that meet any column of the source in a run; of phases, all.
template <int kLength>
__device__ __forceinline__ Range MetTaps(const Arguments& p, const Place& place, int run) {
  if (p.from.phase_step > 1) {
    return {0, INT_MAX};
  }
  const int first = p.from_column + place.position + run * kLength;
  return {1 - kLength - first, p.from.planes.width - first};
}

/// Adds the products of a tap plane to a thread's run. `first_row` is the first row of `from` in
/// shared memory.
template <int kVectors, typename A>
__device__ __forceinline__ void SumRun(
    const Arguments& p,
    const Place& place,
    const Item& item,
    int tap_depth,
    int first_row,
    const A* shared,
    A (&sums)[Run<A, kVectors>::kLength]) {
  const int image = place.block.channels == 1 ? item.plane : item.plane / place.block.channels;
  const int channel = item.plane - image * place.block.channels;
  const A* taps = shared + (channel * p.filter_pitch + tap_depth * p.tap_plane_pitch);
  const A* from =
      shared + p.from_begin + item.plane * p.from.plane_pitch + item.run * Run<A, kVectors>::kPitch;
  const MetRows met = MetBy(p, place.row + item.row);
  const Range met_taps = MetTaps<Run<A, kVectors>::kLength>(p, place, item.run);
  // By steps, forward takes all phases of the source; otherwise a phase has its own line, if any.
  const int tap_phases = static_cast<int>(p.taps.phases.divisor);
  const bool gathers = tap_phases > 1 && p.to.phase_step == 1;
  const int terms = gathers ? tap_phases : 1;
#pragma unroll 1
  for (int i = 0; i < met.count; ++i) {
    const int row = met.row + i * met.row_step;
    if (!IsWithin(row, p.from.planes.height)) {
      continue;
    }
    const A* line = from + (row - first_row) * p.from.row_pitch;
    const A* tap_row = taps + (met.tap + i * met.tap_step) * p.tap_row_pitch;
#pragma unroll 1
    for (int term = 0; term < terms; ++term) {
      const int phase = gathers ? term : item.phase;
      const int tap_phase = tap_phases > 1 ? phase : 0;
      const int from_phase = p.from.phase_step > 1 ? phase : 0;
      Slide<kVectors, true>(
          line + from_phase * p.from.phase_pitch, tap_row + tap_phase * p.tap_phase_pitch,
          RangeOf(p.taps, tap_phase), met_taps, sums);
    }
  }
}

/// Writes, or adds, a row of lines from shared memory, by pieces.
template <typename R, int kPiece, typename T, typename A>
__device__ __forceinline__ void
StorePieces(const Lines& lines, T* line, int column, int lane, const A* from, bool accumulate) {
  const int lanes = static_cast<int>(lines.lanes.divisor);
#pragma unroll 2
  for (int at = lane * kPiece; at < lines.positions && column + at < lines.planes.width;
       at += lanes * kPiece) {
    T values[kPiece];
    constexpr int kStored = kPiece < R::kOfVector ? kPiece : R::kOfVector;
    A sums[kPiece];
#pragma unroll
    for (int i = 0; i < kPiece; i += kStored) {
      cuda::LoadAtOnce<kStored>(from + (R::At(at) + i), sums + i);
    }
    if (accumulate) {
      cuda::LoadAtOnce<kPiece>(line + (column + at), values);
    }
#pragma unroll
    for (int i = 0; i < kPiece; ++i) {
      values[i] = Convert<T>(sums[i] + (accumulate ? Convert<A>(values[i]) : A(0)));
    }
    cuda::StoreAtOnce<kPiece>(values, line + (column + at));
  }
}

template <typename R, typename T, typename A>
__device__ __forceinline__ void
StorePhases(const Lines& lines, T* line, int column, int lane, const A* from, bool accumulate) {
  const int lanes = static_cast<int>(lines.lanes.divisor);
  const int phases = static_cast<int>(lines.phases.divisor);
#pragma unroll 2
  for (int i = lane; i < lines.positions * phases; i += lanes) {
    int phase = i;
    const int position = DivideBy(lines.phases, &phase);
    const int at = column + position * lines.phase_step + phase;
    if (IsWithin(at, lines.planes.width)) {
      const A sum = from[phase * lines.phase_pitch + R::At(position)];
      line[at] = Convert<T>(sum + (accumulate ? Convert<A>(line[at]) : A(0)));
    }
  }
}

template <typename R, typename T, typename A>
__device__ __forceinline__ void
StoreLines(const Arguments& p, const Place& place, const A* shared, T* to, bool accumulate) {
  const Lines& lines = p.to;
  to += place.depth * lines.planes.depth_stride;
  const int row = p.to_row + place.row;
  const int column = p.to_column + place.position * lines.phase_step + place.phase;
  if (lines.phase_step > 1) {
    ForEachRow(lines, place.block, to, row, shared, [&](const A* from, T* line, int lane) {
      StorePhases<R>(lines, line, column, lane, from, accumulate);
    });
    return;
  }
  WithPiece<cuda::kVectorLength<T>>(lines.planes.piece, [&](auto piece) {
    ForEachRow(lines, place.block, to, row, shared, [&](const A* from, T* line, int lane) {
      StorePieces<R, decltype(piece)::kValue>(lines, line, column, lane, from, accumulate);
    });
  });
}

template <int kVectors, typename T>
__device__ __forceinline__ void
Correlate(const Arguments& p, const T* from, const T* w, T* to, bool accumulate) {
  using A = Accumulator<T>;
  using R = Run<A, kVectors>;
  GRADSMITH_DYNAMIC_SHARED(storage);
  A* shared = reinterpret_cast<A*>(storage);
  const Place place = PlaceOf(p, R::kLength);
  const int first_row = FirstRow(p.from, FirstMet(p, place.row));
  // By steps along the last axis, the source's phases are not those of the result.
  const int from_phase = p.taps.phases.divisor > 1 ? 0 : place.phase;
  CopyTaps<R>(p, place.block, w, shared);
  A sums[R::kLength] = {};
  const bool is_active = IsActive<R>(p, place, ItemOf(p));
#pragma unroll 1
  for (int tap_depth = 0; tap_depth < p.depths.taps; ++tap_depth) {
    const int depth = MetDepth(p.depths, p.from.planes, place.depth, tap_depth);
    if (depth >= 0) {
      BeginToCopyLines<R>(
          p.from, place.block, from + depth * p.from.planes.depth_stride, first_row,
          p.from_column + place.position * p.from.phase_step + from_phase, shared + p.from_begin);
      WaitForLines();
      if (is_active) {
        SumRun<kVectors>(p, place, ItemOf(p), tap_depth, first_row, shared, sums);
      }
    }
    __syncthreads();
  }
  if (is_active) {
    const Item item = ItemOf(p);
    A* line = shared + (item.plane * p.to.plane_pitch + item.row * p.to.row_pitch +
                        item.phase * p.to.phase_pitch + item.run * R::kPitch);
    PutRun<kVectors>(sums, line);
  }
  __syncthreads();
  StoreLines<R>(p, place, shared, to, accumulate);
}

}  // namespace
}  // namespace gradsmith::conv::depthwise_lines

#define GRADSMITH_DEPTHWISE_LINES_KERNEL(name, vectors, suffix, T)                                \
  extern "C" __global__ void __launch_bounds__(gradsmith::conv::depthwise_lines::kThreads, 3)     \
      gradsmith_depthwise_lines_##name##_##suffix(                                                \
          gradsmith::conv::depthwise_lines::Arguments arguments, const void* from, const void* w, \
          void* to, bool accumulate) {                                                            \
    using namespace gradsmith::conv::depthwise_lines;                                             \
    Correlate<vectors>(                                                                           \
        arguments, static_cast<const T*>(from), static_cast<const T*>(w), static_cast<T*>(to),    \
        accumulate);                                                                              \
  }

#define GRADSMITH_DEPTHWISE_LINES(suffix, T)                                                    \
  GRADSMITH_DEPTHWISE_LINES_KERNEL(long, gradsmith::conv::depthwise_lines::kLongRun, suffix, T) \
  GRADSMITH_DEPTHWISE_LINES_KERNEL(short, gradsmith::conv::depthwise_lines::kShortRun, suffix, T)

GRADSMITH_FOR_ELEMENT_TYPES(GRADSMITH_DEPTHWISE_LINES)
