#ifndef GRADSMITH_PATTERNS_CUDA_WINDOW_SHARES_CUH_
#define GRADSMITH_PATTERNS_CUDA_WINDOW_SHARES_CUH_

#include <cstdint>

#include "patterns/cuda/window_tiles.cuh"
#include "patterns/windows_walk.h"

/// Gathers whose windows each give the same share of their gradient to all of their elements, by
/// tiles: sums along columns, where windows overlap there, and then along rows.
namespace gradsmith::cuda {

/// The windows that hold a position, counted from the tile's first.
class HoldingRange {
 public:
  HoldingRange() = default;
  __device__ __forceinline__ HoldingRange(int begin, int end)
      : bits_(static_cast<unsigned>(begin) | static_cast<unsigned>(end) << 16U) {}
  [[nodiscard]] __device__ __forceinline__ int begin() const {
    return static_cast<int>(bits_ & 0xffffU);
  }
  [[nodiscard]] __device__ __forceinline__ int count() const {
    return static_cast<int>(bits_ >> 16U) - begin();
  }

 private:
  unsigned bits_ = 0;
};

template <typename Functor, typename T, bool kChannels>
class WindowShares : public WindowTile<T, kChannels, true> {
  using Base = WindowTile<T, kChannels, true>;
  using A = typename Base::A;
  static constexpr int kOutput = Functor::kOutput;
  static constexpr int kAtOnce = kVectorLength<A>;
  static constexpr int kGroup =
      kChannels ? (Base::kVector < kMostTileGroup ? Base::kVector : kMostTileGroup) : 1;
  static constexpr int kBatch = 4;

 public:
  using Base::Base;

  __device__ __forceinline__ void Run() {
    const TilesLaunch& launch = this->launch;
    A* const row_counts = this->template Shared<A>(launch.axes_at);
    A* const column_counts = row_counts + launch.rows.windows;
    auto* const row_holding =
        reinterpret_cast<HoldingRange*>(column_counts + launch.columns.windows);
    HoldingRange* const column_holding = row_holding + launch.rows.tile;
    FillAxis(launch.rows, launch.task.axes[1], this->rows, row_counts, row_holding);
    FillAxis(launch.columns, launch.task.axes[2], this->columns, column_counts, column_holding);
    __syncthreads();
    LoadShares(row_counts, column_counts);
    __syncthreads();
    const bool overlaps = launch.rows.apart > 1;
    if (overlaps) {
      SumColumns(row_holding);
      __syncthreads();
    }
    if constexpr (kChannels) {
      StoreRows(overlaps, row_holding, column_holding);
    } else if (!overlaps && launch.columns.apart == 1) {
      StoreShares(row_holding, column_holding);
    } else {
      SumRows(overlaps, row_holding, column_holding);
      __syncthreads();
      Base::StoreSums(kOutput);
    }
  }

 private:
  /// What windows count along an axis, and which windows hold the tile's positions.
  __device__ __forceinline__ void FillAxis(
      const TileAxis& axis,
      const internal::WindowAxis& windows,
      const TileRange& range,
      A* counts,
      HoldingRange* holding) const {
    const int thread = static_cast<int>(threadIdx.x);
#pragma unroll 1
    for (int i = thread; i < range.windows; i += kTileThreads) {
      const int begin = (range.window + i) * axis.stride - axis.pad_begin;
      counts[i] =
          static_cast<A>(internal::TapCount(windows, begin, this->launch.task.counts_padding));
    }
#pragma unroll 1
    for (int i = thread; i < axis.tile; i += kTileThreads) {
      // Counted from where the first window begins.
      const int position = i - range.window_begin;
      const int windows = i < range.count ? max(range.windows, 0) : 0;
      const int begin =
          position < axis.span ? 0 : Quotient(position - axis.span, axis.by_stride) + 1;
      const int end = position < 0 ? 0 : Quotient(position, axis.by_stride) + 1;
      holding[i] = {min(begin, windows), max(min(begin, windows), min(end, windows))};
    }
  }

  /// Where a window's share is kept, or where channels are last the sum of a row of positions.
  [[nodiscard]] __device__ __forceinline__ int KeptAt(int channel, int row, int column) const {
    if constexpr (kChannels) {
      return (row * this->launch.columns.windows + column) * this->launch.tile_channels + channel;
    }
    return (channel * this->launch.rows.windows + row) * this->launch.pitch + column;
  }

  __device__ __forceinline__ void LoadShares(const A* row_counts, const A* column_counts) const {
    const T* const from = static_cast<const T*>(this->launch.task.tensors[0]) +
                          Base::WindowsOffset(0, kChannels ? this->planes.window : 0);
    if constexpr (kChannels) {
      const int slots = Base::SlotsOf(0);
      for (int slot = static_cast<int>(threadIdx.x) * kGroup; slot < slots;
           slot += kTileThreads * kGroup) {
        const TileGroup group = this->template GroupAt<kGroup>(slot, slots, 0);
        if (group.end > 0) {
          const TileWindow& window = group.first;
          A shares[kGroup];
          SharesOfPlanes(
              this->planes.window, this->planes.windows, from + Base::GroupOffset(0, group, 0),
              this->launch.task.strides[0].axes[0],
              row_counts[window.row] * column_counts[window.column], shares);
          KeepShares(shares, KeptAt(window.channel, window.row, window.column));
        }
      }
    } else if (this->launch.planes.tiles > 1) {
      LoadLinesOfPlanes(row_counts, column_counts);
    } else {
      LoadLines(from, row_counts, column_counts);
    }
  }

  /// Loads the shares of lines of windows, each thread those of a column, some at once.
  __device__ __forceinline__ void
  LoadLines(const T* from, const A* row_counts, const A* column_counts) const {
    const TilesLaunch& launch = this->launch;
    const int width = launch.columns.windows;
    const int lines = (this->channels - 1) * launch.rows.windows + this->rows.windows;
    Base::ForEachInLines(width, launch.columns.by_windows, [&](int column, int first, int step) {
      if (column >= this->columns.windows) {
        return;
      }
      const A column_count = column_counts[column];
#pragma unroll 1
      for (int line = first; line < lines; line += kBatch * step) {
        T given[kBatch][1];
#pragma unroll
        for (int i = 0; i < kBatch; ++i) {
          if (line + i * step < lines) {
            given[i][0] = from[(line + i * step) * width + column];
          }
        }
#pragma unroll
        for (int i = 0; i < kBatch; ++i) {
          const int at = line + i * step;
          if (at < lines) {
            const int channel =
                launch.tile_channels == 1 ? 0 : Quotient(at, launch.rows.by_windows);
            const A row_count = row_counts[at - channel * launch.rows.windows];
            const A shares[kGroup] = {Convert<A>(given[i][0]) / (row_count * column_count)};
            KeepShares(shares, at * launch.pitch + column);
          }
        }
      }
    });
  }

  /// The same of windows in several planes, where the tile's channels are planes of the input: what
  /// lines in all planes of windows that hold one give to it.
  __device__ __forceinline__ void LoadLinesOfPlanes(const A* row_counts, const A* column_counts)
      const {
    const TilesLaunch& launch = this->launch;
    const T* const from = static_cast<const T*>(launch.task.tensors[0]);
    const int lines = (this->channels - 1) * launch.rows.windows + this->rows.windows;
    const std::int64_t plane_size = std::int64_t{launch.rows.output} * launch.columns.output;
    const Division first_plane = Divide(this->channel, launch.planes.input);
    Base::ForEachInLines(
        launch.columns.windows, launch.columns.by_windows, [&](int column, int first, int step) {
#pragma unroll 1
          for (int line = first; column < this->columns.windows && line < lines; line += step) {
            const int channel =
                launch.tile_channels == 1 ? 0 : Quotient(line, launch.rows.by_windows);
            const int row = line - channel * launch.rows.windows;
            const int number = static_cast<int>(first_plane.remainder) + channel;
            const int volume = Quotient(number, launch.planes.by_tiles);
            const TileRange planes = RangeOf(launch.planes, number - volume * launch.planes.tiles);
            const std::int64_t first_window =
                (first_plane.quotient + volume) * launch.planes.output + planes.window;
            const int in_plane =
                (this->rows.window + row) * launch.columns.output + this->columns.window + column;
            A shares[kGroup];
            SharesOfPlanes(
                planes.window, planes.windows, from + first_window * plane_size + in_plane,
                plane_size, row_counts[row] * column_counts[column], shares);
            KeepShares(shares, line * launch.pitch + column);
          }
        });
  }

  /// What the windows at one place of some planes give to each of their elements in another: those
  /// that are divided by one number are summed up before.
  __device__ __forceinline__ void SharesOfPlanes(
      int plane,
      int planes,
      const T* from,
      std::int64_t step,
      A count,
      A (&shares)[kGroup]) const {
    const TilesLaunch& launch = this->launch;
    A sums[kGroup] = {};
    int divides = 0;
#pragma unroll
    for (int lane = 0; lane < kGroup; ++lane) {
      shares[lane] = 0;
    }
    const auto divide = [&] {
#pragma unroll
      for (int lane = 0; lane < kGroup; ++lane) {
        shares[lane] += sums[lane] / (static_cast<A>(divides) * count);
        sums[lane] = 0;
      }
    };
#pragma unroll 1
    for (int i = 0; i < planes; ++i) {
      T given[kGroup];
      LoadAtOnce<kGroup>(from, given);
      from += step;
      const int taps = internal::TapCount(
          launch.task.axes[0], (plane + i) * launch.planes.stride - launch.planes.pad_begin,
          launch.task.counts_padding);
      if (divides != 0 && divides != taps) {
        divide();
      }
      divides = taps;
#pragma unroll
      for (int lane = 0; lane < kGroup; ++lane) {
        sums[lane] += Convert<A>(given[lane]);
      }
    }
    if (divides != 0) {
      divide();
    }
  }

  __device__ __forceinline__ void KeepShares(const A (&shares)[kGroup], int at) const {
    constexpr int kOnce = kGroup < kAtOnce ? kGroup : kAtOnce;
    A* const to = this->template Shared<A>(this->launch.values_at) + at;
#pragma unroll
    for (int lane = 0; lane < kGroup; lane += kOnce) {
      KeepAtOnce<kOnce>(shares + lane, to + lane);
    }
  }

  /// Sums shares along columns: of each row of positions, in each column of windows.
  __device__ __forceinline__ void SumColumns(const HoldingRange* row_holding) const {
    const TilesLaunch& launch = this->launch;
    // A line is a row of one channel, or where channels are last of all of them.
    const int line_size = kChannels ? launch.columns.windows * launch.tile_channels : launch.pitch;
    const int lines =
        kChannels ? this->rows.count : (this->channels - 1) * launch.rows.tile + this->rows.count;
    const A* const kept = this->template Shared<A>(launch.values_at);
    A* const sums = this->template Shared<A>(launch.input_at);
    Base::ForEachInLines(line_size / kAtOnce, launch.by_line, [&](int vector, int first, int step) {
#pragma unroll 1
      for (int line = first; line < lines; line += step) {
        const int channel =
            kChannels || launch.tile_channels == 1 ? 0 : Quotient(line, launch.rows.by_tile);
        const HoldingRange rows = row_holding[line - channel * launch.rows.tile];
        const A* from =
            kept + (channel * launch.rows.windows + rows.begin()) * line_size + vector * kAtOnce;
        A total[kAtOnce] = {};
#pragma unroll 1
        for (int tap = rows.count(); tap > 0; --tap) {
          Add<kAtOnce>(from, &total);
          from += line_size;
        }
        KeepAtOnce<kAtOnce>(total, sums + line * line_size + vector * kAtOnce);
      }
    });
  }

  template <int kLanes>
  __device__ __forceinline__ static void Add(const A* from, A (*total)[kLanes]) {
    constexpr int kOnce = kLanes < kAtOnce ? kLanes : kAtOnce;
    A shares[kLanes];
#pragma unroll
    for (int lane = 0; lane < kLanes; lane += kOnce) {
      LoadAtOnce<kOnce>(from + lane, shares + lane);
    }
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) {
      (*total)[lane] += shares[lane];
    }
  }

  /// Sums along rows what is summed along columns, or the shares where no windows overlap in these:
  /// into shared memory, in the order of the result.
  __device__ __forceinline__ void SumRows(
      bool overlaps,
      const HoldingRange* row_holding,
      const HoldingRange* column_holding) const {
    const int lines = (this->channels - 1) * this->launch.rows.tile + this->rows.count;
    A* const sums = this->sums() + Base::SumsShift(kOutput, 0);
    Base::ForEachInLines(
        this->launch.columns.tile, this->launch.columns.by_tile,
        [&](int column, int first, int step) {
          if (column >= this->columns.count) {
            return;
          }
          const HoldingRange* const rows = overlaps ? nullptr : row_holding;
          const HoldingRange columns = column_holding[column];
          int line = first;
#pragma unroll 1
          for (; line + (kBatch - 1) * step < lines; line += kBatch * step) {
            SumInLines<kBatch>(rows, columns, line, step, sums + column);
          }
#pragma unroll 1
          for (; line < lines; line += step) {
            SumInLines<1>(rows, columns, line, step, sums + column);
          }
        });
  }

  /// Sums the columns that hold a position, in some lines, from one to the next by steps. Those of
  /// windows are as many as those of positions, or row_holding tells which hold these.
  template <int kLines>
  __device__ __forceinline__ void SumInLines(
      const HoldingRange* row_holding,
      HoldingRange columns,
      int line,
      int step,
      A* sums) const {
    const TilesLaunch& launch = this->launch;
    const A* const kept =
        this->template Shared<A>(row_holding == nullptr ? launch.input_at : launch.values_at) +
        columns.begin();
    A totals[kLines] = {};
    int from[kLines];
    bool is_held[kLines];
#pragma unroll
    for (int i = 0; i < kLines; ++i) {
      const int at = line + i * step;
      const int source = row_holding == nullptr ? at : LineOf(at, row_holding);
      is_held[i] = source >= 0;
      from[i] = max(source, 0) * launch.pitch;
    }
    const int count = columns.count();
#pragma unroll 1
    for (int tap = 0; tap < count; ++tap) {
#pragma unroll
      for (int i = 0; i < kLines; ++i) {
        totals[i] += kept[from[i] + tap];
      }
    }
#pragma unroll
    for (int i = 0; i < kLines; ++i) {
      sums[(line + i * step) * launch.columns.tile] = is_held[i] ? totals[i] : A{0};
    }
  }

  /// The line of windows that holds a line of positions, or -1.
  [[nodiscard]] __device__ __forceinline__ int LineOf(int line, const HoldingRange* row_holding)
      const {
    const TilesLaunch& launch = this->launch;
    const int channel = launch.tile_channels == 1 ? 0 : Quotient(line, launch.rows.by_tile);
    const HoldingRange rows = row_holding[line - channel * launch.rows.tile];
    return rows.count() > 0 ? channel * launch.rows.windows + rows.begin() : -1;
  }

  /// Stores the share of the one window that holds each element, where no windows overlap.
  __device__ __forceinline__ void StoreShares(
      const HoldingRange* row_holding,
      const HoldingRange* column_holding) const {
    const TilesLaunch& launch = this->launch;
    const A* const kept = this->template Shared<A>(launch.values_at);
    const int last = (this->channels - 1) * launch.rows.tile + this->rows.count - 1;
    const int shift = Base::SumsShift(kOutput, 0);
    Base::StoreResult(kOutput, 0, [&](int sum, A(&values)[Base::kVector]) {
      const int at = max(sum - shift, 0);
      int line = Quotient(at, launch.columns.by_tile);
      int column = at - line * launch.columns.tile;
      int source = LineOf(line, row_holding);
#pragma unroll
      for (int lane = 0; lane < Base::kVector; ++lane) {
        const HoldingRange columns = column_holding[column];
        const bool is_held = source >= 0 && columns.count() > 0;
        // An address that exists in any case takes no branch.
        const A share = kept[is_held ? source * launch.pitch + columns.begin() : 0];
        values[lane] = is_held ? A{0} + share : A{0};
        if (sum + lane >= shift && ++column == launch.columns.tile) {
          column = 0;
          line = min(line + 1, last);
          source = LineOf(line, row_holding);
        }
      }
    });
  }

  /// The same where channels are last, into the result.
  __device__ __forceinline__ void StoreRows(
      bool overlaps,
      const HoldingRange* row_holding,
      const HoldingRange* column_holding) const {
    const TilesLaunch& launch = this->launch;
    const internal::PerDim<std::int64_t>& strides = launch.task.strides[kOutput];
    constexpr int kLanes = Base::kVector;
    const A* const kept = this->template Shared<A>(overlaps ? launch.input_at : launch.values_at);
    T* const to =
        static_cast<T*>(launch.task.tensors[kOutput]) +
        Base::InputOffset(kOutput, this->planes.begin, this->rows.begin, this->columns.begin);
    const int count = Base::SumsOf();
#pragma unroll 1
    for (int sum = static_cast<int>(threadIdx.x) * kLanes; sum < count;
         sum += kTileThreads * kLanes) {
      const int position = Quotient(sum, launch.by_channels);
      const int channel = sum - position * launch.tile_channels;
      const int row = Quotient(position, launch.columns.by_tile);
      const int column = position - row * launch.columns.tile;
      if (column >= this->columns.count || channel >= this->channels) {
        continue;
      }
      const HoldingRange columns = column_holding[column];
      const HoldingRange rows = overlaps ? HoldingRange{} : row_holding[row];
      const bool is_held = overlaps || rows.count() > 0;
      const A* from = kept + KeptAt(channel, overlaps ? row : rows.begin(), columns.begin());
      A total[kLanes] = {};
#pragma unroll 1
      for (int tap = is_held ? columns.count() : 0; tap > 0; --tap) {
        Add<kLanes>(from, &total);
        from += launch.tile_channels;
      }
      Base::StoreVectorOf(total, to + row * strides.axes[1] + column * strides.axes[2] + channel);
    }
  }
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_WINDOW_SHARES_CUH_
