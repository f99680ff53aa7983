#ifndef GRADSMITH_PATTERNS_CUDA_WINDOW_TILES_CUH_
#define GRADSMITH_PATTERNS_CUDA_WINDOW_TILES_CUH_

#include <cstdint>
#include <cstring>

#include "cuda/kernels/element.cuh"
#include "cuda/kernels/element_vector.cuh"
#include "cuda/kernels/ptx.cuh"
#include "patterns/cuda/window_tiles_launch.h"

/// Tiles of the input of windows, of which blocks compute gathers in shared memory: what the
/// kernels of window_givers.cuh and window_shares.cuh have in common.
namespace gradsmith::cuda {

/// Stores neighbours in shared memory at once; `to` is aligned to kCount elements.
template <int kCount, typename Number>
__device__ __forceinline__ void KeepAtOnce(const Number* from, Number* to) {
  using Word = typename WordOf<kCount* static_cast<int>(sizeof(Number))>::Type;
  Word word;
  memcpy(&word, from, sizeof(word));
  *reinterpret_cast<Word*>(to) = word;
}

[[nodiscard]] __device__ __forceinline__ int Quotient(int number, const Divisor& by) {
  return static_cast<int>(Divide(static_cast<std::uint32_t>(number), by));
}

/// TileRange is a tile along an axis: its positions, the windows that may hold some of them, and
/// where the first of these begins, counted from the first position.
struct TileRange {
  int begin;
  int count;
  int window;
  int windows;
  int window_begin;
};

__device__ __forceinline__ TileRange RangeOf(const TileAxis& axis, int tile) {
  TileRange range = {tile * axis.tile, axis.tile, 0, axis.output, 0};
  if (axis.tiles > 1) {
    const int first = range.begin + axis.pad_begin;
    range.count = min(axis.tile, axis.input - range.begin);
    range.window = first < axis.span ? 0 : Quotient(first - axis.span, axis.by_stride) + 1;
    const int end = Quotient(first + range.count - 1, axis.by_stride) + 1;
    range.windows = min(end, axis.output) - range.window;
  }
  range.window_begin = range.window * axis.stride - axis.pad_begin - range.begin;
  return range;
}

/// The same of a tile of windows, whose positions are all: `tile` counts windows.
__device__ __forceinline__ TileRange RangeOfWindows(const TileAxis& axis, int tile) {
  const int window = tile * axis.tile;
  return {
      0, axis.input, window, min(axis.tile, axis.output - window),
      window * axis.stride - axis.pad_begin};
}

/// The positions that a tile's windows hold: the first, and how many.
struct HeldRange {
  int begin;
  int count;
};

__device__ __forceinline__ HeldRange HeldBy(const TileAxis& axis, const TileRange& range) {
  if (axis.tiles == 1) {
    return {0, axis.input};
  }
  const int first = range.begin + range.window_begin;
  const int begin = max(first, 0);
  const int end = min(first + (range.windows - 1) * axis.stride + axis.span, axis.input);
  return {begin, max(end - begin, 0)};
}

/// A window of a tile: its channel, row and column, each counted from the tile's first.
struct TileWindow {
  int channel;
  int row;
  int column;
};

/// Some windows of a tile that are neighbours in memory: those from `begin` to `end` of them exist.
/// The slot numbers them in shared memory; `first` is the first that exists.
struct TileGroup {
  int slot;
  int begin;
  int end;
  TileWindow first;
};

/// WindowTile is the tile of a block. With kChannels neighbours in memory are channels, else the
/// tile's elements are a run in memory, and so are its windows and what these hold.
/// With kPlanes it may be in one of several planes.
template <typename T, bool kChannels, bool kPlanes>
class WindowTile {
 public:
  using A = Accumulator<T>;
  static constexpr int kVector = kVectorLength<T>;

  __device__ __forceinline__ WindowTile(const TilesLaunch& given, void* shared)
      : WindowTile(given, shared, &RangeOf) {}

  /// range_of(axis, tile) tells the range of a tile along an axis.
  template <typename Range>
  __device__ __forceinline__
  WindowTile(const TilesLaunch& given, void* shared, const Range& range_of)
      : launch(given), memory(static_cast<unsigned char*>(shared)) {
    int rest = static_cast<int>(blockIdx.x);
    const auto tile_along = [&](int tiles, const Divisor& by_tiles) {
      const int quotient = Quotient(rest, by_tiles);
      const int tile = rest - quotient * tiles;
      rest = quotient;
      return tile;
    };
    if constexpr (kChannels) {
      const int tile = tile_along(launch.channel_tiles, launch.by_channel_tiles);
      channel = std::int64_t{tile} * launch.tile_channels;
    }
    columns = range_of(launch.columns, tile_along(launch.columns.tiles, launch.columns.by_tiles));
    rows = range_of(launch.rows, tile_along(launch.rows.tiles, launch.rows.by_tiles));
    if (kPlanes && !launch.folds_planes) {
      planes = range_of(launch.planes, tile_along(launch.planes.tiles, launch.planes.by_tiles));
    }
    if constexpr (kChannels) {
      batch = rest;
      first = batch * launch.channels + channel;
    } else {
      channel = std::int64_t{rest} * launch.tile_channels;
      first = channel;
    }
    const std::int64_t left = launch.channels - channel;
    channels = left < launch.tile_channels ? static_cast<int>(left) : launch.tile_channels;
  }

  template <typename Number>
  [[nodiscard]] __device__ __forceinline__ Number* Shared(int at) const {
    return reinterpret_cast<Number*>(memory + at);
  }
  [[nodiscard]] __device__ __forceinline__ A* sums() const { return Shared<A>(0); }

  /// WindowsOffset returns where the tile's windows in a plane begin in a tensor over these.
  [[nodiscard]] __device__ __forceinline__ std::int64_t WindowsOffset(int tensor, int plane) const {
    const Extent extent = {launch.window_planes, launch.rows.output, launch.columns.output};
    return OffsetOf(tensor, extent, plane, rows.window, columns.window);
  }
  /// InputOffset returns where a position of the tile's first channel is in a tensor over the
  /// input.
  [[nodiscard]] __device__ __forceinline__ std::int64_t
  InputOffset(int tensor, int plane, int row, int column) const {
    const Extent extent = {launch.input_planes, launch.rows.input, launch.columns.input};
    return OffsetOf(tensor, extent, plane, row, column);
  }

  /// How many elements before an offset a vector of so many begins.
  [[nodiscard]] __device__ __forceinline__ static int ShiftOf(std::int64_t offset, int elements) {
    return kChannels ? 0 : static_cast<int>(offset & (elements - 1));
  }

  /// How many numbers a run has in a tile of channels of `row_pitch` rows of `pitch`, of which
  /// there are so many rows and columns.
  [[nodiscard]] __device__ __forceinline__ int
  RunOf(int row_pitch, int row_count, int pitch, int column_count) const {
    return ((channels - 1) * row_pitch + row_count - 1) * pitch + column_count;
  }

  /// How many slots the tile's windows take in shared memory, of which the first `shift` are
  /// none's.
  [[nodiscard]] __device__ __forceinline__ int SlotsOf(int shift) const {
    if constexpr (kChannels) {
      return rows.windows * launch.columns.windows * launch.tile_channels;
    }
    return RunOf(launch.rows.windows, rows.windows, launch.columns.windows, columns.windows) +
           shift;
  }

  /// The group of kGroup neighbours in memory that begins at a slot; `slots` are SlotsOf(shift).
  template <int kGroup>
  [[nodiscard]] __device__ __forceinline__ TileGroup GroupAt(int slot, int slots, int shift) const {
    TileGroup group = {slot, 0, 0, {0, 0, 0}};
    if (slot >= slots) {
      return group;
    }
    const int pitch = launch.columns.windows;
    TileWindow& window = group.first;
    if constexpr (kChannels) {
      const int position = Quotient(slot, launch.by_channels);
      window.channel = slot - position * launch.tile_channels;
      window.row = Quotient(position, launch.columns.by_windows);
      window.column = position - window.row * pitch;
      group.end = window.column < columns.windows && window.channel < channels ? kGroup : 0;
    } else {
      const int at = max(slot - shift, 0);
      const int line = Quotient(at, launch.columns.by_windows);
      window.channel = launch.tile_channels == 1 ? 0 : Quotient(line, launch.rows.by_windows);
      window.row = line - window.channel * launch.rows.windows;
      window.column = at - line * pitch;
      group.begin = max(shift - slot, 0);
      group.end = min(slots - slot, kGroup);
    }
    return group;
  }

  /// The offset of a group of windows from WindowsOffset.
  [[nodiscard]] __device__ __forceinline__ std::int64_t
  GroupOffset(int tensor, const TileGroup& group, int shift) const {
    if constexpr (kChannels) {
      const internal::PerDim<std::int64_t>& strides = launch.task.strides[tensor];
      return group.first.row * strides.axes[1] + group.first.column * strides.axes[2] +
             group.first.channel;
    }
    return group.slot - shift;
  }

  /// The window beside another.
  [[nodiscard]] __device__ __forceinline__ TileWindow Next(TileWindow window) const {
    if constexpr (kChannels) {
      ++window.channel;
      return window;
    }
    if (++window.column == launch.columns.windows) {
      window.column = 0;
      if (++window.row == launch.rows.windows) {
        window.row = 0;
        ++window.channel;
      }
    }
    return window;
  }

  /// Where an element of the tile has its sum, and its plane the first.
  [[nodiscard]] __device__ __forceinline__ int SumOf(int of_channel, int row, int column, int first)
      const {
    if constexpr (kChannels) {
      return (row * launch.columns.tile + column) * launch.tile_channels + of_channel + first;
    }
    return (of_channel * launch.rows.tile + row) * launch.columns.tile + column + first;
  }

  /// How many numbers the tile's sums take.
  [[nodiscard]] __device__ __forceinline__ int SumsOf() const {
    if constexpr (kChannels) {
      return rows.count * launch.columns.tile * launch.tile_channels;
    }
    return RunOf(launch.rows.tile, rows.count, launch.columns.tile, columns.count);
  }

  /// Writes the tile's part of a plane of the result, or adds it: fill(sum, values) makes the
  /// vector of those elements that have their sums from `sum` on, of which the first or last ones
  /// may not exist.
  template <typename Fill>
  __device__ __forceinline__ void StoreResult(int output, int plane, const Fill& fill) const {
    T* const to = static_cast<T*>(launch.task.tensors[output]) +
                  InputOffset(output, plane, rows.begin, columns.begin);
    const int shift = SumsShift(output, plane);
    const int end = SumsOf() + shift;
#pragma unroll 1
    for (int sum = static_cast<int>(threadIdx.x) * kVector; sum < end;
         sum += kTileThreads * kVector) {
      A values[kVector];
      if constexpr (kChannels) {
        const int position = Quotient(sum, launch.by_channels);
        const int row = Quotient(position, launch.columns.by_tile);
        const int column = position - row * launch.columns.tile;
        const int of_channel = sum - position * launch.tile_channels;
        const internal::PerDim<std::int64_t>& strides = launch.task.strides[output];
        if (column < columns.count && of_channel < channels) {
          fill(sum, values);
          StoreVectorOf(values, to + row * strides.axes[1] + column * strides.axes[2] + of_channel);
        }
      } else {
        fill(sum, values);
        if (sum >= shift && sum + kVector <= end) {
          StoreVectorOf(values, to + (sum - shift));
        } else {
          StoreSome(values, shift - sum, end - sum, to + (sum - shift));
        }
      }
    }
  }

  /// How many elements before the tile's first a vector of the result begins.
  [[nodiscard]] __device__ __forceinline__ int SumsShift(int output, int plane) const {
    return ShiftOf(InputOffset(output, plane, rows.begin, columns.begin), kVector);
  }

  /// Writes sums to the result, or adds them to it.
  __device__ __forceinline__ void StoreSums(int output) const {
    StoreResult(output, 0, [&](int sum, A(&values)[kVector]) {
#pragma unroll
      for (int lane = 0; lane < kVector; lane += kVectorLength<A>) {
        LoadAtOnce<kVectorLength<A>>(sums() + sum + lane, values + lane);
      }
    });
  }

  /// Writes those of a vector of numbers from `begin` to `end`, or adds them.
  __device__ __forceinline__ void StoreSome(const A (&values)[kVector], int begin, int end, T* to)
      const {
#pragma unroll
    for (int lane = 0; lane < kVector; ++lane) {
      if (lane >= begin && lane < end) {
        const A value = values[lane];
        to[lane] = Convert<T>(launch.task.accumulate ? value + Convert<A>(to[lane]) : value);
      }
    }
  }

  /// Writes a vector of numbers to an element and its neighbours, or adds them to these.
  __device__ __forceinline__ void StoreVectorOf(A (&values)[kVector], T* to) const {
    Vector<T> vector;
    if (launch.task.accumulate) {
      vector = LoadVector(to);
#pragma unroll
      for (int lane = 0; lane < kVector; ++lane) {
        values[lane] += Convert<A>(vector.values[lane]);
      }
    }
#pragma unroll
    for (int lane = 0; lane < kVector; ++lane) {
      vector.values[lane] = Convert<T>(values[lane]);
    }
    StoreVector(to, vector);
  }

  /// Calls visit(number, first, step) so that a block's threads together visit all numbers below
  /// `width` in each line: each thread those lines that follow `first` by steps.
  template <typename Visit>
  __device__ __forceinline__ static void
  ForEachInLines(int width, const Divisor& by_width, const Visit& visit) {
    const int thread = static_cast<int>(threadIdx.x);
    const int step = width < kTileThreads ? Quotient(kTileThreads, by_width) : 1;
    const int first = width < kTileThreads ? Quotient(thread, by_width) : 0;
    if (first < step) {
#pragma unroll 1
      for (int number = thread - first * width; number < width; number += kTileThreads) {
        visit(number, first, step);
      }
    }
  }

  const TilesLaunch& launch;
  unsigned char* memory;
  std::int64_t batch = 0;
  /// The first channel, of all samples where channels are not last; and among all samples'.
  std::int64_t channel = 0;
  std::int64_t first = 0;
  /// How many channels the tile has.
  int channels = 1;
  TileRange planes = {};
  TileRange rows;
  TileRange columns;

 private:
  /// How many positions a channel has along each axis.
  struct Extent {
    int planes;
    int rows;
    int columns;
  };

  [[nodiscard]] __device__ __forceinline__ std::int64_t
  OffsetOf(int tensor, const Extent& extent, int plane, int row, int column) const {
    if constexpr (kChannels) {
      const internal::PerDim<std::int64_t>& strides = launch.task.strides[tensor];
      const std::int64_t to_plane = kPlanes ? plane * strides.axes[0] : 0;
      return batch * strides.batch + channel + to_plane + row * strides.axes[1] +
             column * strides.axes[2];
    }
    const std::int64_t number = kPlanes ? channel * extent.planes + plane : channel;
    return (number * extent.rows + row) * extent.columns + column;
  }
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_WINDOW_TILES_CUH_
