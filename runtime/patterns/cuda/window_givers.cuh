#ifndef GRADSMITH_PATTERNS_CUDA_WINDOW_GIVERS_CUH_
#define GRADSMITH_PATTERNS_CUDA_WINDOW_GIVERS_CUH_

#include <cstdint>

#include "patterns/cuda/window_input.cuh"

/// Gathers whose windows each give their gradient to one element, by tiles. What a window names is
/// found once; then those windows that have no element in common add to sums in shared memory at
/// the same time, and the others after them: in an order that the launch alone sets.
namespace gradsmith::cuda {

/// How many neighbouring windows a thread meets at once.
template <typename Functor, typename T, bool kChannels>
inline constexpr int kGiversAtOnce =
    kChannels ? (kVectorLength<T> < kMostTileGroup ? kVectorLength<T> : kMostTileGroup)
              : (Functor::kReadsInput ? 1 : kMostTileGroup);

/// WindowGivers has each window give to the element that its functor's key tells: whose index the
/// key is, or which equals it.
/// With kVolume the input has several planes, and a block goes through those of windows in order.
template <typename Functor, typename T, bool kChannels, bool kVolume>
class WindowGivers
    : public WindowInput<T, kChannels, kVolume, kGiversAtOnce<Functor, T, kChannels>> {
  using Base = WindowInput<T, kChannels, kVolume, kGiversAtOnce<Functor, T, kChannels>>;
  using A = typename Base::A;
  using Key = typename Functor::template Key<T>;
  static constexpr bool kReadsInput = Functor::kReadsInput;
  static constexpr int kGroup = kGiversAtOnce<Functor, T, kChannels>;
  static constexpr int kNone = Base::kNone;

 public:
  using Base::Base;

  __device__ __forceinline__ void Run() {
    sums_shift_ = Base::SumsShift(kOutput, 0);
    if constexpr (kReadsInput) {
      Base::HoldInput();
    }
    if constexpr (kVolume) {
      GoThroughPlanes();
    } else {
      if constexpr (kReadsInput) {
        Base::BeginInput(0);
        EndOfCopies();
      }
      FindNames(0, Base::SumsOf() + sums_shift_);
      if (!GivesAtOnce()) {
        AddByTurns();
      }
      __syncthreads();
      Base::StoreSums(kOutput);
    }
  }

 private:
  static constexpr int kOutput = Functor::kOutput;
  static constexpr int kAtOnce = kVectorLength<A>;

  /// Whether no two windows have an element in common.
  [[nodiscard]] __device__ __forceinline__ bool GivesAtOnce() const {
    return this->launch.rows.apart == 1 && this->launch.columns.apart == 1;
  }

  /// Goes through the planes of windows, each of which gives to planes of the input in the ring:
  /// those that no further window holds are stored, and others take their places.
  __device__ __forceinline__ void GoThroughPlanes() {
    const TileAxis& axis = this->launch.planes;
    const int end = this->planes.begin + this->planes.count;
    const int last_window = this->planes.window + this->planes.windows;
    int stored = this->planes.begin;
    int entered = 0;
    int begin = this->planes.begin + this->planes.window_begin;
    ClearSums(this->launch.ring * this->launch.plane_sums);
    __syncthreads();
    if (kReadsInput && this->planes.windows > 0) {
      Base::EnterPlanes(begin, &entered);
    }
#pragma unroll 1
    for (int window = this->planes.window; window < last_window; ++window) {
      StorePlanes(min(begin, end), &stored);
      Base::Meet(max(begin, 0));
      plane_ = window - this->planes.window;
      FindNames(window, 0);
      __syncthreads();
      begin += axis.stride;
      if (window + 1 < last_window) {
        if constexpr (kReadsInput) {
          Base::EnterPlanes(begin, &entered);
        }
        PrefetchPlane(window + 1);
      }
      if (!GivesAtOnce()) {
        AddByTurns();
        __syncthreads();
      }
    }
    StorePlanes(end, &stored);
  }

  /// Stores planes before `end`, and leaves zeros where they were.
  __device__ __forceinline__ void StorePlanes(int end, int* stored) const {
#pragma unroll 1
    for (; *stored < end; ++*stored) {
      A* const sums = this->sums() + Base::SlotOfAny(*stored) * this->launch.plane_sums;
      Base::StoreResult(kOutput, *stored, [&](int sum, A(&values)[Base::kVector]) {
        constexpr A kZeros[kAtOnce] = {};
#pragma unroll
        for (int lane = 0; lane < Base::kVector; lane += kAtOnce) {
          LoadAtOnce<kAtOnce>(sums + sum + lane, values + lane);
          KeepAtOnce<kAtOnce>(kZeros, sums + sum + lane);
        }
      });
    }
  }

  /// SumsAt returns where the sums of a plane begin.
  [[nodiscard]] __device__ __forceinline__ int SumsAt(int plane) const {
    if constexpr (kVolume) {
      return Base::SlotOf(plane) * this->launch.plane_sums + Base::ShiftOfPlane(plane, sums_shift_);
    }
    return sums_shift_;
  }

  __device__ __forceinline__ void ClearSums(int count) const {
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x) * kAtOnce; i < count; i += kTileThreads * kAtOnce) {
      constexpr A kZeros[kAtOnce] = {};
      KeepAtOnce<kAtOnce>(kZeros, this->sums() + i);
    }
  }

  /// What comes of a group of windows.
  struct Givers {
    TileGroup group;
    T given[kGroup];
    Key keys[kGroup];
  };

  __device__ __forceinline__ void Load(int plane, int slot, int slots, Givers* givers) const {
    const internal::WindowsTask& task = this->launch.task;
    const TileGroup group = this->template GroupAt<kGroup>(slot, slots, windows_shift_);
    givers->group = group;
    LoadGroup(
        static_cast<const T*>(task.tensors[0]) + Base::WindowsOffset(0, plane) +
            Base::GroupOffset(0, group, windows_shift_),
        group.begin, group.end, givers->given);
    LoadGroup(
        static_cast<const Key*>(task.tensors[Functor::kKey]) +
            Base::WindowsOffset(Functor::kKey, plane) +
            Base::GroupOffset(Functor::kKey, group, windows_shift_),
        group.begin, group.end, givers->keys);
  }

  /// Has the L2 cache ask for the windows of a plane, but for those with channels last.
  __device__ __forceinline__ void PrefetchPlane(int plane) const {
    if constexpr (!kChannels) {
      const internal::WindowsTask& task = this->launch.task;
      const std::int64_t base = Base::WindowsOffset(0, plane);
      constexpr int kLine = 32 / static_cast<int>(sizeof(Key));
      const int slots = Base::SlotsOf(0);
#pragma unroll 1
      for (int slot = static_cast<int>(threadIdx.x) * kLine; slot < slots;
           slot += kTileThreads * kLine) {
        PrefetchToL2(static_cast<const T*>(task.tensors[0]) + base + slot);
        PrefetchToL2(static_cast<const Key*>(task.tensors[Functor::kKey]) + base + slot);
      }
    }
  }

  /// Has the L2 cache ask for what groups after the first are to load, from a slot on.
  __device__ __forceinline__ void PrefetchGroups(int slot, int slots) const {
    if constexpr (!kChannels && !kReadsInput && !kVolume) {
      const internal::WindowsTask& task = this->launch.task;
      const std::int64_t base = Base::WindowsOffset(0, 0) - windows_shift_;
#pragma unroll 1
      for (; slot < slots; slot += kTileThreads * kGroup) {
        PrefetchToL2(static_cast<const T*>(task.tensors[0]) + base + slot);
        PrefetchToL2(static_cast<const Key*>(task.tensors[Functor::kKey]) + base + slot);
      }
    }
  }

  /// Finds the element of the gradient of each of a plane's windows, and keeps both, or adds it at
  /// once. First it clears sums.
  __device__ __forceinline__ void FindNames(int plane, int sums) {
    windows_shift_ = Base::ShiftOf(Base::WindowsOffset(0, plane), kGroup);
    const int slots = Base::SlotsOf(windows_shift_);
    int slot = static_cast<int>(threadIdx.x) * kGroup;
    Givers givers;
    Load(plane, slot, slots, &givers);
    PrefetchGroups(slot + kTileThreads * kGroup, slots);
    ClearSums(sums);
    if constexpr (kReadsInput) {
      WaitForCopies<0>();
    }
    __syncthreads();
    while (slot < slots) {
      if (givers.group.begin < givers.group.end) {
        Use(givers);
      }
      slot += kTileThreads * kGroup;
      if (slot < slots) {
        Load(plane, slot, slots, &givers);
      }
    }
  }

  __device__ __forceinline__ void Use(const Givers& givers) const {
    short named[kGroup];
    Name(givers.group, givers.keys, named);
    if (GivesAtOnce()) {
#pragma unroll
      for (int lane = 0; lane < kGroup; ++lane) {
        if (named[lane] != kNone) {
          A& sum = this->sums()[named[lane]];
          sum = (kVolume ? sum : A{0}) + Convert<A>(givers.given[lane]);
        }
      }
    } else {
      const int slot = givers.group.slot;
      KeepGroup(givers.given, this->template Shared<T>(this->launch.values_at) + slot);
      KeepGroup(named, this->template Shared<short>(this->launch.names_at) + slot);
    }
  }

  /// Loads those of a group that exist; where all do, they are aligned together.
  template <typename Number>
  __device__ __forceinline__ static void
  LoadGroup(const Number* from, int begin, int end, Number (&to)[kGroup]) {
    if (end - begin == kGroup) {
      Base::LoadAll(from, to);
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
      auto major = static_cast<int>(Divide(number, launch.by_minor));
      const int minor = static_cast<int>(number - major * launch.by_minor.divisor);
      bool is_element =
          static_cast<std::uint64_t>(place) < static_cast<std::uint64_t>(launch.elements);
      int row = launch.column_major ? minor : major;
      int plane = 0;
      if constexpr (kVolume) {
        const int quotient = Quotient(major, launch.by_middle);
        row = major - quotient * static_cast<int>(launch.by_middle.divisor);
        major = quotient;
        plane = launch.column_major ? minor : major;
        is_element =
            is_element && IsHeld(launch.planes, this->planes, plane_, plane - this->planes.begin);
      }
      row -= this->rows.begin;
      const int column = (launch.column_major ? major : minor) - this->columns.begin;
      if (is_element && IsHeld(launch.rows, this->rows, window.row, row) &&
          IsHeld(launch.columns, this->columns, window.column, column)) {
        named[lane] = static_cast<short>(Base::SumOf(window.channel, row, column, SumsAt(plane)));
      }
      window = Base::Next(window);
    }
  }

  /// Name finds where the sums of the elements are that equal keys.
  __device__ __forceinline__ void
  Name(const TileGroup& group, const T (&keys)[kGroup], short (&named)[kGroup]) const {
    Base::NameEqual(plane_, group.first, keys, [&](int plane) { return SumsAt(plane); }, named);
  }

  /// Whether a position, counted from the tile's first, is in the tile and in a window.
  [[nodiscard]] __device__ __forceinline__ static bool
  IsHeld(const TileAxis& axis, const TileRange& range, int window, int position) {
    const int distance = position - (range.window_begin + window * axis.stride);
    return static_cast<unsigned>(position) < static_cast<unsigned>(range.count) &&
           static_cast<unsigned>(distance) < static_cast<unsigned>(axis.span) &&
           (axis.dilation == 1 || distance % axis.dilation == 0);
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

  /// The plane of windows, counted from the tile's first.
  int plane_ = 0;
  int windows_shift_ = 0;
  int sums_shift_ = 0;
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_WINDOW_GIVERS_CUH_
