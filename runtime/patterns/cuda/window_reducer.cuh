#ifndef GRADSMITH_PATTERNS_CUDA_WINDOW_REDUCER_CUH_
#define GRADSMITH_PATTERNS_CUDA_WINDOW_REDUCER_CUH_

#include <cstdint>

#include "patterns/cuda/window_input.cuh"
#include "patterns/windows_walk.h"

/// Reductions of windows by tiles of contiguous tensors: a block copies what its windows hold to
/// shared memory, plane by plane, and each thread reduces windows of one column.
namespace gradsmith::cuda {

template <typename Functor, typename T>
class WindowReducer : public WindowInput<T, false, true, 1, 0> {
  using Base = WindowInput<T, false, true, 1, 0>;
  using A = typename Base::A;
  using Tap = typename Base::Tap;
  using State = typename Functor::template State<A, int>;

 public:
  __device__ __forceinline__ WindowReducer(const TilesLaunch& given, void* shared)
      : Base(given, shared, &RangeOfWindows) {}

  __device__ __forceinline__ void Run() {
    Base::HoldInput();
    int begin = this->planes.window_begin;
    int entered = 0;
    Base::EnterPlanes(begin, &entered);
#pragma unroll 1
    for (int window = 0; window < this->planes.windows; ++window) {
      Base::Meet(max(begin, 0));
      WaitForCopies<0>();
      __syncthreads();
      ReducePlane(window);
      begin += this->launch.planes.stride;
      if (window + 1 < this->planes.windows) {
        __syncthreads();
        Base::EnterPlanes(begin, &entered);
      }
    }
  }

 private:
  /// What a window counts along an axis; `window` is counted from the tile's first.
  [[nodiscard]] __device__ __forceinline__ A
  CountOf(int axis, const TileAxis& windows, const TileRange& range, int window) const {
    if constexpr (Functor::kCounts) {
      return static_cast<A>(internal::TapCount(
          this->launch.task.axes[axis], range.window_begin + window * windows.stride,
          this->launch.task.counts_padding));
    }
    return 1;
  }

  __device__ __forceinline__ void ReducePlane(int window_plane) const {
    const TilesLaunch& launch = this->launch;
    const Tap depth =
        Base::TapOf(launch.planes, this->planes, {0, launch.planes.input}, window_plane);
    const A plane_count = CountOf(0, launch.planes, this->planes, window_plane);
    const std::int64_t base = Base::WindowsOffset(1, this->planes.window + window_plane);
    const int width = launch.columns.windows;
    const int lines = (this->channels - 1) * launch.rows.windows + this->rows.windows;
    Base::ForEachInLines(width, launch.columns.by_windows, [&](int number, int first, int step) {
      if (number >= this->columns.windows) {
        return;
      }
      const Tap column = Base::TapOf(launch.columns, this->columns, this->held_columns, number);
      const A column_count = plane_count * CountOf(2, launch.columns, this->columns, number);
#pragma unroll 1
      for (int line = first; line < lines; line += step) {
        const int channel = launch.tile_channels == 1 ? 0 : Quotient(line, launch.rows.by_windows);
        const int in_channel = line - channel * launch.rows.windows;
        const Tap row = Base::TapOf(launch.rows, this->rows, this->held_rows, in_channel);
        const State state = Reduce(channel, depth, row, column);
        const std::int64_t to = base + line * width + number;
        const A count = column_count * CountOf(1, launch.rows, this->rows, in_channel);
        static_cast<T*>(launch.task.tensors[1])[to] = Convert<T>(Functor::Value(state, count));
        if constexpr (Functor::kPlaces) {
          if (launch.task.tensors[2] != nullptr) {
            static_cast<std::int64_t*>(launch.task.tensors[2])[to] =
                PlaceOf(state.place, channel, depth.first);
          }
        }
      }
    });
  }

  /// Reduces a window. Its elements are numbered as they lie in shared memory, from its first plane
  /// on.
  [[nodiscard]] __device__ __forceinline__ State
  Reduce(int channel, const Tap& depth, const Tap& row, const Tap& column) const {
    const TilesLaunch& launch = this->launch;
    const int pitch = launch.columns.held;
    const int in_plane = channel * launch.rows.held * pitch;
    const int first = row.first * pitch + column.first;
    State state;
    if (depth.first <= depth.last && row.first <= row.last && column.first <= column.last) {
      Functor::Begin(first, &state);
    }
    const int height = (row.last - row.first) + 1;
    const int width = (column.last - column.first) + 1;
    const bool is_dense = launch.rows.dilation == 1 && launch.columns.dilation == 1;
    const int in_all = launch.rows.held * pitch * launch.planes.dilation;
    int place = 0;
#pragma unroll 1
    for (int plane = depth.first; plane <= depth.last; plane += launch.planes.dilation) {
      const T* const from = Base::InputOf(plane) + in_plane;
      if (is_dense && height == 3 && width == 3) {
        TakeBlock<3>(from, first, place, &state);
      } else if (is_dense && height == 2 && width == 2) {
        TakeBlock<2>(from, first, place, &state);
      } else {
        TakeAny(from, row, column, place, &state);
      }
      place += in_all;
    }
    return state;
  }

  /// Takes the elements of a window of kSize neighbours along both axes.
  template <int kSize>
  __device__ __forceinline__ void TakeBlock(const T* from, int first, int place, State* state)
      const {
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      const int line = first + i * this->launch.columns.held;
#pragma unroll
      for (int j = 0; j < kSize; ++j) {
        Functor::TakeNext(Convert<A>(from[line + j]), place + line + j, state);
      }
    }
  }

  __device__ __forceinline__ void
  TakeAny(const T* from, const Tap& row, const Tap& column, int place, State* state) const {
#pragma unroll 1
    for (int i = row.first; i <= row.last; i += this->launch.rows.dilation) {
      const int line = i * this->launch.columns.held;
#pragma unroll 4
      for (int j = column.first; j <= column.last; j += this->launch.columns.dilation) {
        Functor::TakeNext(Convert<A>(from[line + j]), place + line + j, state);
      }
    }
  }

  /// The index among all elements of the input of what has a number in a window, or -1.
  [[nodiscard]] __device__ __forceinline__ std::int64_t
  PlaceOf(int number, int channel, int first_plane) const {
    const TilesLaunch& launch = this->launch;
    const internal::PerDim<std::int64_t>& places = launch.task.places;
    const int plane = Quotient(max(number, 0), launch.by_plane);
    const int in_plane = number - plane * static_cast<int>(launch.by_plane.divisor);
    const int row = Quotient(max(in_plane, 0), launch.columns.by_held);
    const int column = in_plane - row * launch.columns.held + this->held_columns.begin;
    const int in_channel = (first_plane + plane) * static_cast<int>(places.axes[0]) +
                           (row + this->held_rows.begin) * static_cast<int>(places.axes[1]) +
                           column * static_cast<int>(places.axes[2]);
    return number < 0 ? -1 : (this->first + channel) * places.channel + in_channel;
  }
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_WINDOW_REDUCER_CUH_
