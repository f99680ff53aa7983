#include "conv/cuda/kernels/depthwise_lines.cuh"

/// The filter's gradient of depthwise convolutions with filters of any size; see
/// conv/cuda/depthwise_lines.h.
namespace gradsmith::conv::depthwise_lines {
namespace {

constexpr int kWarp = 32;

/// What a block sums: rows of a channel's taps, of a plane or of all, over a slice.
struct Part {
  std::int64_t slice;
  int channel;
  int tap_depth;
  int tap_row;
  int tap_rows;
};

__device__ __forceinline__ Part PartOf(const FilterArguments& p) {
  int tap_tile = static_cast<int>(blockIdx.x);
  int tap_depth = DivideBy(p.tap_tiles, &tap_tile);
  int channel = DivideBy(p.tap_depth_tiles, &tap_depth);
  const int slice = DivideBy(p.channels, &channel);
  const int tap_row = tap_tile * p.tap_rows_of_block;
  const auto planes = static_cast<int>(p.ring.divisor);
  const int rows = static_cast<int>(p.taps.rows.divisor) * planes;
  return {slice, channel, tap_depth * planes, tap_row, min(p.tap_rows_of_block, rows - tap_row)};
}

/// A tile of dY: planes of a depth, and the first row, position and phase of each.
struct Tile {
  Block block;
  int depth;
  int row;
  int position;
  int phase;
};

__device__ __forceinline__ Tile TileOf(const FilterArguments& p, int channel, std::uint32_t tile) {
  int depth = static_cast<int>(tile);
  int image = DivideBy(p.depth_tiles, &depth);
  int phase = image;
  image = DivideBy(p.phase_tiles, &phase);
  int run = image;
  image = DivideBy(p.run_tiles, &run);
  int row = image;
  image = DivideBy(p.row_tiles, &row);
  image *= p.images_of_tile;
  return {
      {image, channel, min(p.images_of_tile, p.batch - image), 1},
      depth,
      row * static_cast<int>(p.y.rows.divisor),
      run * p.y.positions,
      phase * static_cast<int>(p.y.phases.divisor)};
}

/// What a thread sums: a run of a line of taps, over a share of the positions.
struct Item {
  int tap_row;
  int tap_phase;
  int run;
  int segment;
  int group;
};

__device__ __forceinline__ Item ItemOf(const FilterArguments& p) {
  Item item;
  item.tap_row = cuda::ThreadReadAnew();
  item.group = DivideBy(p.items, &item.tap_row);
  item.segment = item.group;
  item.group = DivideBy(p.segments, &item.segment);
  item.run = item.tap_row;
  item.tap_row = DivideBy(p.runs, &item.run);
  item.tap_phase = item.tap_row;
  item.tap_row = DivideBy(p.taps.phases, &item.tap_phase);
  return item;
}

__device__ __forceinline__ bool
IsActive(const FilterArguments& p, const Item& item, const Part& part) {
  return item.group < p.groups && item.tap_row < part.tap_rows;
}

/// How many positions a line of dY has whose first one is at a column.
__device__ __forceinline__ int PositionsFrom(const Lines& y, int column) {
  const int left = y.planes.width - column;
  return y.phase_step > 1 ? (left + y.phase_step - 1) / y.phase_step : left;
}

/// Begins to copy what a tile meets of x and is not there yet, from plane `*next` on; false where
/// it meets nothing.
template <typename R, typename T, typename A>
__device__ __forceinline__ bool BeginToCopyX(
    const FilterArguments& p,
    const Tile& tile,
    int tap_depth,
    int first_row,
    const T* x,
    A* shared,
    int* next) {
  const int x_phase = p.taps.phases.divisor > 1 ? 0 : tile.phase;
  const int column = p.x_column + tile.position * p.x.phase_step + x_phase;
  bool meets = false;
#pragma unroll 1
  for (int i = 0; i < static_cast<int>(p.ring.divisor); ++i) {
    const int depth = MetDepth(p.depths, p.x.planes, tile.depth, tap_depth + i);
    meets = meets || depth >= 0;
    if (depth >= *next) {
      *next = depth + 1;
      int place = depth;
      DivideBy(p.ring, &place);
      BeginToCopyLines<R>(
          p.x, tile.block, x + depth * p.x.planes.depth_stride, first_row, column,
          shared + place * p.x_pitch);
    }
  }
  return meets;
}

/// Adds the products of a thread's lines. `first_row` is the first row of x in shared memory.
template <int kVectors, typename A>
__device__ __forceinline__ void AddTile(
    const FilterArguments& p,
    const Tile& tile,
    const Item& item,
    const Part& part,
    int first_row,
    const A* x,
    const A* y,
    A (&sums)[Run<A, kVectors>::kLength]) {
  using R = Run<A, kVectors>;
  int tap_row = item.tap_row;
  const int tap_depth = part.tap_depth + DivideBy(p.taps.rows, &tap_row);
  int place = MetDepth(p.depths, p.x.planes, tile.depth, tap_depth);
  if (place < 0) {
    return;
  }
  DivideBy(p.ring, &place);
  const int begin = item.segment * p.segment;
  const int first_run = begin / R::kLength;
  x += place * p.x_pitch + (first_run + item.run) * R::kPitch;
  y += first_run * R::kPitch;
  const int lines = tile.block.images * static_cast<int>(p.y.rows.divisor * p.y.phases.divisor);
  const bool is_by_steps = p.taps.phases.divisor > 1;
#pragma unroll 1
  for (int line = item.group; line < lines; line += p.groups) {
    int phase = line;
    int row = DivideBy(p.y.phases, &phase);
    const int plane = DivideBy(p.y.rows, &row);
    const int x_row = (tile.row + row) * static_cast<int>(p.rows.step.divisor) + p.rows.first +
                      (part.tap_row + tap_row) * p.rows.dilation;
    const int column = tile.position * p.y.phase_step + tile.phase + phase;
    const int end = min(p.segment, PositionsFrom(p.y, column) - begin);
    if (tile.row + row < p.y.planes.height && IsWithin(x_row, p.x.planes.height) && end > 0) {
      const int x_phase = is_by_steps ? item.tap_phase : phase;
      Slide<kVectors, false>(
          x + (plane * p.x.plane_pitch + (x_row - first_row) * p.x.row_pitch +
               x_phase * p.x.phase_pitch),
          y + (plane * p.y.plane_pitch + row * p.y.row_pitch + phase * p.y.phase_pitch), {0, end},
          {0, end}, sums);
    }
  }
}

/// The sum of the part of a tile's dY that a thread has.
template <typename R, typename T, typename A>
__device__ __forceinline__ A
SumOfLines(const Lines& lines, const Block& block, const T* data, int row, A* shared) {
  A sum = 0;
  const int lanes = static_cast<int>(lines.lanes.divisor);
  const int phases = static_cast<int>(lines.phases.divisor);
  ForEachRow(lines, block, data, row, shared, [&](const A* line, const T*, int lane) {
    for (int phase = 0; phase < phases; ++phase) {
      const A* of_phase = line + phase * lines.phase_pitch;
#pragma unroll 4
      for (int i = lane; i < lines.positions; i += lanes) {
        sum += of_phase[R::At(i)];
      }
    }
  });
  return sum;
}

/// Adds up the shares' sums, always in the same order, to the partial sums of the block's taps.
template <int kVectors, typename A>
__device__ __forceinline__ void SumOverShares(
    const FilterArguments& p,
    int tap_rows,
    const A (&sums)[Run<A, kVectors>::kLength],
    A* shared,
    A* partial) {
  using R = Run<A, kVectors>;
  PutRun<kVectors>(sums, shared + static_cast<int>(threadIdx.x) * R::kPitch);
  __syncthreads();
  const int shares = static_cast<int>(p.segments.divisor) * p.groups;
  const int share_pitch = static_cast<int>(p.items.divisor) * R::kPitch;
  const int taps = tap_rows * static_cast<int>(p.taps.columns.divisor);
  for (int i = static_cast<int>(threadIdx.x); i < taps; i += static_cast<int>(blockDim.x)) {
    int column = i;
    const int row = DivideBy(p.taps.columns, &column);
    int phase = column;
    const int place = p.taps.shift + DivideBy(p.taps.phases, &phase);
    const int line = row * static_cast<int>(p.taps.phases.divisor) + phase;
    const A* of_tap = shared + (line * static_cast<int>(p.runs.divisor) * R::kPitch + R::At(place));
    A sum = 0;
#pragma unroll 8
    for (int share = 0; share < shares; ++share) {
      sum += of_tap[share * share_pitch];
    }
    partial[i] = sum;
  }
}

/// Adds up the block's sums of dY, always in the same order.
template <typename A>
__device__ __forceinline__ void SumOverBlock(A sum, A* result) {
  __shared__ A of_warps[kThreads / kWarp];
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    sum += __shfl_down_sync(0xFFFFFFFFU, sum, distance);
  }
  if (threadIdx.x % kWarp == 0) {
    of_warps[threadIdx.x / kWarp] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    A all = 0;
    for (unsigned int warp = 0; warp < blockDim.x / kWarp; ++warp) {
      all += of_warps[warp];
    }
    *result = all;
  }
}

/// Partial sums (slice, channel, tap); and, where they are wanted, those of dY (slice, channel).
template <int kVectors, typename T>
__device__ __forceinline__ void SumFilters(
    const FilterArguments& p,
    const T* x,
    const T* y,
    Accumulator<T>* partial,
    Accumulator<T>* gradient_partial) {
  using A = Accumulator<T>;
  using R = Run<A, kVectors>;
  GRADSMITH_DYNAMIC_SHARED(storage);
  A* shared = reinterpret_cast<A*>(storage);
  const Part part = PartOf(p);
  const bool is_active = IsActive(p, ItemOf(p), part);
  A sums[R::kLength] = {};
  const bool sums_gradient =
      gradient_partial != nullptr && part.tap_row == 0 && part.tap_depth == 0;
  A gradient_sum = 0;
  const auto first = static_cast<std::uint32_t>(part.slice) * p.tiles_of_slice;
  const std::uint32_t end = min(first + p.tiles_of_slice, p.tiles);
  int next = 0;
#pragma unroll 1
  for (std::uint32_t i = first; i < end; ++i) {
    const Tile tile = TileOf(p, part.channel, i);
    const int first_row = FirstRow(
        p.x, tile.row * static_cast<int>(p.rows.step.divisor) + p.rows.first +
                 part.tap_row * p.rows.dilation);
    next = tile.depth == 0 ? 0 : next;
    const bool meets = BeginToCopyX<R>(p, tile, part.tap_depth, first_row, x, shared, &next);
    if (!meets && !sums_gradient) {
      continue;
    }
    const T* y_planes = y + tile.depth * p.y.planes.depth_stride;
    BeginToCopyLines<R>(
        p.y, tile.block, y_planes, tile.row, tile.position * p.y.phase_step + tile.phase,
        shared + p.y_begin);
    WaitForLines();
    if (sums_gradient) {
      gradient_sum += SumOfLines<R>(p.y, tile.block, y_planes, tile.row, shared + p.y_begin);
    }
    if (is_active) {
      AddTile<kVectors>(p, tile, ItemOf(p), part, first_row, shared, shared + p.y_begin, sums);
    }
    __syncthreads();
  }
  const std::int64_t filter = part.slice * p.channels.divisor + part.channel;
  const std::int64_t tap_plane = filter * p.depths.taps + part.tap_depth;
  SumOverShares<kVectors>(
      p, part.tap_rows, sums, shared,
      partial + (tap_plane * p.taps.rows.divisor + part.tap_row) * p.taps.columns.divisor);
  if (sums_gradient) {
    SumOverBlock(gradient_sum, gradient_partial + filter);
  }
}

}  // namespace
}  // namespace gradsmith::conv::depthwise_lines

#define GRADSMITH_DEPTHWISE_LINES_KERNEL(name, vectors, suffix, T)                              \
  extern "C" __global__ void __launch_bounds__(gradsmith::conv::depthwise_lines::kThreads, 3)   \
      gradsmith_depthwise_lines_filter_##name##_##suffix(                                       \
          gradsmith::conv::depthwise_lines::FilterArguments arguments, const void* x,           \
          const void* y, void* partial, void* gradient_partial) {                               \
    using namespace gradsmith::conv::depthwise_lines;                                           \
    SumFilters<vectors>(                                                                        \
        arguments, static_cast<const T*>(x), static_cast<const T*>(y),                          \
        static_cast<Accumulator<T>*>(partial), static_cast<Accumulator<T>*>(gradient_partial)); \
  }

#define GRADSMITH_DEPTHWISE_LINES(suffix, T)                                                    \
  GRADSMITH_DEPTHWISE_LINES_KERNEL(long, gradsmith::conv::depthwise_lines::kLongRun, suffix, T) \
  GRADSMITH_DEPTHWISE_LINES_KERNEL(short, gradsmith::conv::depthwise_lines::kShortRun, suffix, T)

GRADSMITH_FOR_ELEMENT_TYPES(GRADSMITH_DEPTHWISE_LINES)
