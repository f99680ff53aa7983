#ifndef GRADSMITH_PATTERNS_CUDA_WINDOW_GIVERS_CUH_
#define GRADSMITH_PATTERNS_CUDA_WINDOW_GIVERS_CUH_

#include <cstdint>

#include "patterns/cuda/window_tiles.cuh"

/// Gathers whose windows each give their gradient to one element, by tiles. What a window names is
/// found once; then those windows that have no element in common add to sums in shared memory at
/// the same time, and the others after them: in an order that the launch alone sets.
namespace gradsmith::cuda {

/// As a functor's key tells, it is the element whose index the key is, or that which equals it.
template <typename Functor, typename T, bool kChannels>
class WindowGivers : public WindowTile<T, kChannels> {
  using Base = WindowTile<T, kChannels>;
  using A = typename Base::A;
  using Key = typename Functor::template Key<T>;
  static constexpr bool kReadsInput = Functor::kReadsInput;
  /// So many neighbours come at once.
  static constexpr int kGroup =
      kChannels ? (Base::kVector < 4 ? Base::kVector : 4) : (kReadsInput ? 1 : 4);
  static constexpr int kBatch = 1;
  static constexpr int kNone = -1;

 public:
  using Base::Base;

  __device__ __forceinline__ void Run() {
    sums_shift_ = Base::SumsShift(kOutput);
    if constexpr (kReadsInput) {
      BeginInput();
    }
    FindNames();
    if (!GivesAtOnce()) {
      AddByTurns();
    }
    __syncthreads();
    Base::StoreSums(kOutput);
  }

 private:
  static constexpr int kOutput = Functor::kOutput;
  static constexpr int kAtOnce = kVectorLength<A>;

  /// The first and last position of a window along an axis, from the first that is held on; the
  /// last is before the first where it has none.
  struct Tap {
    int first;
    int last;
  };

  /// Whether no two windows have an element in common.
  [[nodiscard]] __device__ __forceinline__ bool GivesAtOnce() const {
    return this->launch.rows.apart == 1 && this->launch.columns.apart == 1;
  }

  __device__ __forceinline__ void ClearSums() const {
    const int count = Base::SumsOf() + sums_shift_;
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x) * kAtOnce; i < count; i += kTileThreads * kAtOnce) {
      constexpr A kZeros[kAtOnce] = {};
      KeepAtOnce<kAtOnce>(kZeros, this->sums() + i);
    }
  }

  /// Begins to copy what the tile's windows hold to shared memory.
  __device__ __forceinline__ void BeginInput() {
    const TilesLaunch& launch = this->launch;
    held_rows_ = HeldBy(launch.rows, this->rows);
    held_columns_ = HeldBy(launch.columns, this->columns);
    const std::int64_t base = Base::InputOffset(1, held_rows_.begin, held_columns_.begin);
    const T* const from = static_cast<const T*>(launch.task.tensors[1]) + base;
    input_ = this->template Shared<T>(launch.input_at);
    const int pitch = launch.columns.held;
    constexpr int kVector = Base::kVector;
    const int thread = static_cast<int>(threadIdx.x) * kVector;
    if constexpr (kChannels) {
      const internal::PerDim<std::int64_t>& strides = launch.task.strides[1];
      const int count = held_rows_.count * pitch * launch.tile_channels;
#pragma unroll 1
      for (int at = thread; at < count; at += kTileThreads * kVector) {
        const int position = Quotient(at, launch.by_channels);
        const int channel = at - position * launch.tile_channels;
        const int row = Quotient(position, launch.columns.by_held);
        const int column = position - row * pitch;
        if (column < held_columns_.count && channel < this->channels) {
          BeginCopy(
              SharedAddress(input_ + at),
              from + row * strides.axes[1] + column * strides.axes[2] + channel, true);
        }
      }
    } else {
      const int shift = Base::ShiftOf(base, kVector);
      const int count =
          Base::RunOf(launch.rows.held, held_rows_.count, pitch, held_columns_.count) + shift;
#pragma unroll 1
      for (int at = thread; at < count; at += kTileThreads * kVector) {
        if (at >= shift && at + kVector <= count) {
          BeginCopy(SharedAddress(input_ + at), from + (at - shift), true);
        } else {
          for (int i = max(at, shift); i < min(at + kVector, count); ++i) {
            input_[i] = from[i - shift];
          }
        }
      }
      input_ += shift;
    }
    EndOfCopies();
  }

  /// What comes of some groups of windows at once.
  struct Batch {
    TileGroup groups[kBatch];
    T given[kBatch][kGroup];
    Key keys[kBatch][kGroup];
  };

  __device__ __forceinline__ void LoadBatch(int slot, int slots, Batch* batch) const {
    const internal::WindowsTask& task = this->launch.task;
    const T* const gradients = static_cast<const T*>(task.tensors[0]) + Base::WindowsOffset(0);
    const Key* const keys =
        static_cast<const Key*>(task.tensors[Functor::kKey]) + Base::WindowsOffset(Functor::kKey);
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const TileGroup group =
          this->template GroupAt<kGroup>(slot + i * kTileThreads * kGroup, slots, windows_shift_);
      batch->groups[i] = group;
      LoadGroup(
          gradients + Base::GroupOffset(0, group, windows_shift_), group.begin, group.end,
          batch->given[i]);
      LoadGroup(
          keys + Base::GroupOffset(Functor::kKey, group, windows_shift_), group.begin, group.end,
          batch->keys[i]);
    }
  }

  /// Has the L2 cache ask for what batches after the first are to load, from a slot on.
  __device__ __forceinline__ void PrefetchBatches(int slot, int slots) const {
    if constexpr (!kChannels && !kReadsInput) {
      const internal::WindowsTask& task = this->launch.task;
      const std::int64_t base = Base::WindowsOffset(0) - windows_shift_;
#pragma unroll 1
      for (; slot < slots; slot += kTileThreads * kGroup) {
        PrefetchToL2(static_cast<const T*>(task.tensors[0]) + base + slot);
        PrefetchToL2(static_cast<const Key*>(task.tensors[Functor::kKey]) + base + slot);
      }
    }
  }

  /// Finds the element of each window's gradient, and keeps both, or adds it at once.
  __device__ __forceinline__ void FindNames() {
    windows_shift_ = Base::ShiftOf(Base::WindowsOffset(0), kGroup);
    const int slots = Base::SlotsOf(windows_shift_);
    int slot = static_cast<int>(threadIdx.x) * kGroup;
    Batch batch;
    LoadBatch(slot, slots, &batch);
    PrefetchBatches(slot + kBatch * kTileThreads * kGroup, slots);
    ClearSums();
    if constexpr (kReadsInput) {
      WaitForCopies<0>();
    }
    __syncthreads();
    while (slot < slots) {
      UseBatch(batch);
      slot += kBatch * kTileThreads * kGroup;
      if (slot < slots) {
        LoadBatch(slot, slots, &batch);
      }
    }
  }

  __device__ __forceinline__ void UseBatch(const Batch& batch) const {
    T* const kept = this->template Shared<T>(this->launch.values_at);
    auto* const names = this->template Shared<short>(this->launch.names_at);
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const TileGroup& group = batch.groups[i];
      if (group.begin >= group.end) {
        continue;
      }
      short named[kGroup];
      Name(group, batch.keys[i], named);
      if (GivesAtOnce()) {
#pragma unroll
        for (int lane = 0; lane < kGroup; ++lane) {
          if (named[lane] != kNone) {
            this->sums()[named[lane]] = A{0} + Convert<A>(batch.given[i][lane]);
          }
        }
      } else {
        KeepGroup(batch.given[i], kept + group.slot);
        KeepGroup(named, names + group.slot);
      }
    }
  }

  /// Loads those of a group that exist; where all do, they are aligned together.
  template <typename Number>
  __device__ __forceinline__ static void
  LoadGroup(const Number* from, int begin, int end, Number (&to)[kGroup]) {
    if (end - begin == kGroup) {
      LoadAll(from, to);
    } else if (!kChannels && kGroup > 1) {
#pragma unroll
      for (int lane = 0; lane < kGroup; ++lane) {
        if (lane >= begin && lane < end) {
          to[lane] = from[lane];
        }
      }
    }
  }

  template <typename Number>
  __device__ __forceinline__ static void LoadAll(const Number* from, Number (&to)[kGroup]) {
    constexpr int kOnce = kGroup < kVectorLength<Number> ? kGroup : kVectorLength<Number>;
#pragma unroll
    for (int lane = 0; lane < kGroup; lane += kOnce) {
      LoadAtOnce<kOnce>(from + lane, to + lane);
    }
  }

  template <typename Number>
  __device__ __forceinline__ static void KeepGroup(const Number (&from)[kGroup], Number* to) {
    constexpr int kOnce = kGroup < kVectorLength<Number> ? kGroup : kVectorLength<Number>;
#pragma unroll
    for (int lane = 0; lane < kGroup; lane += kOnce) {
      KeepAtOnce<kOnce>(from + lane, to + lane);
    }
  }

  /// Where the sums of the elements are that indices name, of a group's windows.
  __device__ __forceinline__ void Name(
      const TileGroup& group,
      const std::int64_t (&indices)[kGroup],
      short (&named)[kGroup]) const {
    const TilesLaunch& launch = this->launch;
    TileWindow window = group.first;
#pragma unroll
    for (int lane = 0; lane < kGroup; ++lane) {
      named[lane] = kNone;
      if (lane < group.begin || lane >= group.end) {
        continue;
      }
      const std::int64_t place = indices[lane] - (this->first + window.channel) * launch.elements;
      const auto number = static_cast<std::uint32_t>(place);
      const auto major = static_cast<int>(Divide(number, launch.by_minor));
      const int minor = static_cast<int>(number - major * launch.by_minor.divisor);
      const int row = (launch.column_major ? minor : major) - this->rows.begin;
      const int column = (launch.column_major ? major : minor) - this->columns.begin;
      const bool is_element =
          static_cast<std::uint64_t>(place) < static_cast<std::uint64_t>(launch.elements);
      if (is_element && IsHeld(launch.rows, this->rows, window.row, row) &&
          IsHeld(launch.columns, this->columns, window.column, column)) {
        named[lane] = static_cast<short>(Base::SumOf(window.channel, row, column, sums_shift_));
      }
      window = Base::Next(window);
    }
  }

  /// Whether a position, counted from the tile's first, is in the tile and in a window.
  [[nodiscard]] __device__ __forceinline__ static bool
  IsHeld(const TileAxis& axis, const TileRange& range, int window, int position) {
    const int distance = position - (range.window_begin + window * axis.stride);
    return static_cast<unsigned>(position) < static_cast<unsigned>(range.count) &&
           static_cast<unsigned>(distance) < static_cast<unsigned>(axis.span) &&
           (axis.dilation == 1 || distance % axis.dilation == 0);
  }

  /// Where the sums are of the elements that equal the maxima of a group's windows: the first that
  /// does, or the last NaN where that is not a number.
  __device__ __forceinline__ void
  Name(const TileGroup& group, const T (&keys)[kGroup], short (&named)[kGroup]) const {
    const TilesLaunch& launch = this->launch;
    const TileWindow& window = group.first;
    A maxima[kGroup];
    bool has_nan = false;
#pragma unroll
    for (int lane = 0; lane < kGroup; ++lane) {
      named[lane] = kNone;
      maxima[lane] = Convert<A>(keys[lane]);
      has_nan = has_nan || internal::IsNan(maxima[lane]);
    }
    const Tap row = TapOf(launch.rows, this->rows, held_rows_, window.row);
    const Tap column = TapOf(launch.columns, this->columns, held_columns_, window.column);
    const int pitch = launch.columns.held;
    const T* const from =
        input_ + (kChannels ? window.channel : window.channel * launch.rows.held * pitch);
    int found[kGroup];
#pragma unroll
    for (int lane = 0; lane < kGroup; ++lane) {
      found[lane] = kNone;
    }
    const int height = (row.last - row.first) + 1;
    const int width = (column.last - column.first) + 1;
    const bool is_dense = launch.rows.dilation == 1 && launch.columns.dilation == 1;
    const int first = row.first * pitch + column.first;
    if (is_dense && height == 3 && width == 3) {
      FindInBlock<3>(from, first, maxima, found);
    } else if (is_dense && height == 2 && width == 2) {
      FindInBlock<2>(from, first, maxima, found);
    } else {
      FindAnywhere(from, row, column, maxima, found);
    }
    if (has_nan) {
      FindLastNans(from, row, column, maxima, found);
    }
#pragma unroll
    for (int lane = 0; lane < kGroup; ++lane) {
      const int i = Quotient(max(found[lane], 0), launch.columns.by_held);
      const int own_row = i + held_rows_.begin - this->rows.begin;
      const int own_column = found[lane] - i * pitch + held_columns_.begin - this->columns.begin;
      if (found[lane] != kNone &&
          static_cast<unsigned>(own_row) < static_cast<unsigned>(this->rows.count) &&
          static_cast<unsigned>(own_column) < static_cast<unsigned>(this->columns.count)) {
        named[lane] = static_cast<short>(
            Base::SumOf(window.channel + lane, own_row, own_column, sums_shift_));
      }
    }
  }

  /// Finds the first elements that equal maxima, in windows of kSize neighbours along both axes.
  template <int kSize>
  __device__ __forceinline__ void
  FindInBlock(const T* from, int first, const A (&maxima)[kGroup], int (&found)[kGroup]) const {
    const int step = kChannels ? this->launch.tile_channels : 1;
    // From the last to the first, so that the first is what stays.
#pragma unroll
    for (int i = kSize - 1; i >= 0; --i) {
      const int line = first + i * this->launch.columns.held;
      T values[kSize][kGroup];
#pragma unroll
      for (int j = 0; j < kSize; ++j) {
        LoadAll(from + (line + j) * step, values[j]);
      }
#pragma unroll
      for (int j = kSize - 1; j >= 0; --j) {
        Take(values[j], line + j, maxima, found);
      }
    }
  }

  /// The same in any windows.
  __device__ __forceinline__ void FindAnywhere(
      const T* from,
      const Tap& row,
      const Tap& column,
      const A (&maxima)[kGroup],
      int (&found)[kGroup]) const {
    const int pitch = this->launch.columns.held;
    const int step = kChannels ? this->launch.tile_channels : 1;
#pragma unroll 1
    for (int i = row.last; i >= row.first; i -= this->launch.rows.dilation) {
#pragma unroll 1
      for (int j = column.last; j >= column.first; j -= this->launch.columns.dilation) {
        T values[kGroup];
        LoadAll(from + (i * pitch + j) * step, values);
        Take(values, i * pitch + j, maxima, found);
      }
    }
  }

  __device__ __forceinline__ static void
  Take(const T (&values)[kGroup], int at, const A (&maxima)[kGroup], int (&found)[kGroup]) {
#pragma unroll
    for (int lane = 0; lane < kGroup; ++lane) {
      found[lane] = Convert<A>(values[lane]) == maxima[lane] ? at : found[lane];
    }
  }

  [[nodiscard]] __device__ __forceinline__ static Tap
  TapOf(const TileAxis& axis, const TileRange& range, const HeldRange& held, int window) {
    const int begin = range.begin + range.window_begin + window * axis.stride - held.begin;
    Tap tap = {begin, begin + axis.span - 1};
    if (axis.dilation == 1) {
      return {max(tap.first, 0), min(tap.last, held.count - 1)};
    }
    while (tap.first < 0) {
      tap.first += axis.dilation;
    }
    while (tap.last >= held.count) {
      tap.last -= axis.dilation;
    }
    return tap;
  }

  __device__ __forceinline__ void FindLastNans(
      const T* from,
      const Tap& row,
      const Tap& column,
      const A (&maxima)[kGroup],
      int (&found)[kGroup]) const {
    const int step = kChannels ? this->launch.tile_channels : 1;
#pragma unroll 1
    for (int i = row.first; i <= row.last; i += this->launch.rows.dilation) {
#pragma unroll 1
      for (int j = column.first; j <= column.last; j += this->launch.columns.dilation) {
        const int at = i * this->launch.columns.held + j;
#pragma unroll
        for (int lane = 0; lane < kGroup; ++lane) {
          if (internal::IsNan(maxima[lane]) &&
              internal::IsNan(Convert<A>(from[at * step + lane]))) {
            found[lane] = at;
          }
        }
      }
    }
  }

  /// The first window of a cell: of as many rows and columns as windows are apart. A turn takes the
  /// same window of each cell.
  struct Cell {
    int slot;
    int rows;
    int columns;
  };

  [[nodiscard]] __device__ __forceinline__ Cell CellAt(int number) const {
    const TilesLaunch& launch = this->launch;
    TileWindow window;
    if constexpr (kChannels) {
      const int position = Quotient(number, launch.by_channels);
      window.channel = number - position * launch.tile_channels;
      window.row = Quotient(position, launch.columns.by_cells);
      window.column = position - window.row * launch.columns.cells;
    } else {
      const int line = Quotient(number, launch.columns.by_cells);
      window.column = number - line * launch.columns.cells;
      window.channel = Quotient(line, launch.rows.by_cells);
      window.row = line - window.channel * launch.rows.cells;
    }
    window.row *= launch.rows.apart;
    window.column *= launch.columns.apart;
    const int pitch = launch.columns.windows;
    const int slot =
        kChannels ? (window.row * pitch + window.column) * launch.tile_channels + window.channel
                  : (window.channel * launch.rows.windows + window.row) * pitch + window.column +
                        windows_shift_;
    const bool exists = number < launch.rows.cells * launch.columns.cells * launch.tile_channels &&
                        window.channel < this->channels;
    return {
        slot, exists ? this->rows.windows - window.row : 0, this->columns.windows - window.column};
  }

  /// Adds what windows give to the sums: by turns, in each of which no two have the same element.
  __device__ __forceinline__ void AddByTurns() const {
    const TilesLaunch& launch = this->launch;
    constexpr int kLanes = kChannels ? kGroup : 1;
    Cell cells[kMostTileCells];
#pragma unroll
    for (int i = 0; i < kMostTileCells; ++i) {
      cells[i] = CellAt((i * kTileThreads + static_cast<int>(threadIdx.x)) * kLanes);
    }
    const int step = kChannels ? launch.tile_channels : 1;
#pragma unroll 1
    for (int row = 0; row < launch.rows.apart; ++row) {
#pragma unroll 1
      for (int column = 0; column < launch.columns.apart; ++column) {
        __syncthreads();
        const int distance = (row * launch.columns.windows + column) * step;
#pragma unroll
        for (int i = 0; i < kMostTileCells; ++i) {
          if (row < cells[i].rows && column < cells[i].columns) {
            AddWindows<kLanes>(cells[i].slot + distance);
          }
        }
      }
    }
  }

  template <int kLanes>
  __device__ __forceinline__ void AddWindows(int slot) const {
    short named[kLanes];
    T given[kLanes];
    LoadAtOnce<kLanes>(this->template Shared<short>(this->launch.names_at) + slot, named);
    LoadAtOnce<kLanes>(this->template Shared<T>(this->launch.values_at) + slot, given);
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) {
      if (named[lane] != kNone) {
        this->sums()[named[lane]] += Convert<A>(given[lane]);
      }
    }
  }

  T* input_ = nullptr;
  HeldRange held_rows_ = {};
  HeldRange held_columns_ = {};
  int windows_shift_ = 0;
  int sums_shift_ = 0;
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_WINDOW_GIVERS_CUH_
