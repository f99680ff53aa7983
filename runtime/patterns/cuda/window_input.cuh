#ifndef GRADSMITH_PATTERNS_CUDA_WINDOW_INPUT_CUH_
#define GRADSMITH_PATTERNS_CUDA_WINDOW_INPUT_CUH_

#include <cstdint>

#include "patterns/cuda/window_tiles.cuh"

namespace gradsmith::cuda {

/// WindowInput is a tile with what its windows hold of the input in shared memory, where it finds
/// the elements that equal what the windows have: of kGroup windows at once, which are neighbours
/// along the channels, or one. With kVolume there are several planes of it, in a ring. The input is
/// the tensor of the number kInput.
template <typename T, bool kChannels, bool kVolume, int kGroup, int kInput = 1>
class WindowInput : public WindowTile<T, kChannels, kVolume> {
  using Base = WindowTile<T, kChannels, kVolume>;

 public:
  using A = typename Base::A;
  static constexpr int kNone = -1;
  using Base::Base;

  /// Finds which of the input's rows and columns the tile's windows hold.
  __device__ __forceinline__ void HoldInput() {
    held_rows = HeldBy(this->launch.rows, this->rows);
    held_columns = HeldBy(this->launch.columns, this->columns);
    input_ = this->template Shared<T>(this->launch.input_at);
    const std::int64_t base = Base::InputOffset(kInput, 0, held_rows.begin, held_columns.begin);
    if constexpr (kVolume) {
      input_base_ = static_cast<int>(base & (Base::kVector - 1));
    } else {
      input_ += Base::ShiftOf(base, Base::kVector);
    }
  }

  /// Begins to copy what the tile's windows hold of a plane to shared memory.
  __device__ __forceinline__ void BeginInput(int plane) const {
    const TilesLaunch& launch = this->launch;
    const std::int64_t base = Base::InputOffset(kInput, plane, held_rows.begin, held_columns.begin);
    const T* const from = static_cast<const T*>(launch.task.tensors[kInput]) + base;
    T* const to = this->template Shared<T>(launch.input_at) + SlotOfAny(plane) * launch.plane_input;
    const int pitch = launch.columns.held;
    constexpr int kVector = Base::kVector;
    const int thread = static_cast<int>(threadIdx.x) * kVector;
    if constexpr (kChannels) {
      const internal::PerDim<std::int64_t>& strides = launch.task.strides[kInput];
      const int count = held_rows.count * pitch * launch.tile_channels;
#pragma unroll 1
      for (int at = thread; at < count; at += kTileThreads * kVector) {
        const int position = Quotient(at, launch.by_channels);
        const int channel = at - position * launch.tile_channels;
        const int row = Quotient(position, launch.columns.by_held);
        const int column = position - row * pitch;
        if (column < held_columns.count && channel < this->channels) {
          BeginCopy(
              SharedAddress(to + at),
              from + row * strides.axes[1] + column * strides.axes[2] + channel, true);
        }
      }
    } else {
      const int shift = Base::ShiftOf(base, kVector);
      const int count =
          Base::RunOf(launch.rows.held, held_rows.count, pitch, held_columns.count) + shift;
#pragma unroll 1
      for (int at = thread; at < count; at += kTileThreads * kVector) {
        if (at >= shift && at + kVector <= count) {
          BeginCopy(SharedAddress(to + at), from + (at - shift), true);
        } else {
          for (int i = max(at, shift); i < min(at + kVector, count); ++i) {
            to[i] = from[i - shift];
          }
        }
      }
    }
  }

  /// Begins to copy those planes of the input that windows hold which begin at one, but for those
  /// before `entered`.
  __device__ __forceinline__ void EnterPlanes(int begin, int* entered) const {
    const int end = min(begin + this->launch.planes.span, this->launch.planes.input);
#pragma unroll 1
    for (*entered = max(*entered, begin); *entered < end; ++*entered) {
      BeginInput(*entered);
    }
    EndOfCopies();
  }

  /// Which of the ring's planes a plane is.
  [[nodiscard]] __device__ __forceinline__ int SlotOfAny(int plane) const {
    return kVolume ? plane % this->launch.ring : 0;
  }
  /// The same, of planes that the windows of the plane that Meet was told of hold.
  [[nodiscard]] __device__ __forceinline__ int SlotOf(int plane) const {
    const int slot = met_slot_ + (plane - met_plane_);
    return slot < this->launch.ring ? slot : slot - this->launch.ring;
  }
  __device__ __forceinline__ void Meet(int first_plane) {
    met_plane_ = first_plane;
    met_slot_ = SlotOfAny(first_plane);
  }
  /// How many elements before a plane's first a vector begins, where it is so many for plane 0.
  [[nodiscard]] __device__ __forceinline__ int ShiftOfPlane(int plane, int shift_of_first) const {
    const int size = this->launch.rows.input * this->launch.columns.input;
    return kChannels ? 0 : (shift_of_first + plane * size) & (Base::kVector - 1);
  }

  /// Where the sums are of the elements that equal the maxima of a group's windows: the first that
  /// does, or the last NaN where that is not a number.
  /// `window_plane` is the plane of the windows, counted from the tile's first, and sums_at(plane)
  /// tells where a plane's sums begin.
  template <typename SumsAt>
  __device__ __forceinline__ void NameEqual(
      int window_plane,
      const TileWindow& window,
      const T (&keys)[kGroup],
      const SumsAt& sums_at,
      short (&named)[kGroup]) const {
    const TilesLaunch& launch = this->launch;
    A maxima[kGroup];
    bool has_nan = false;
#pragma unroll
    for (int lane = 0; lane < kGroup; ++lane) {
      named[lane] = kNone;
      maxima[lane] = Convert<A>(keys[lane]);
      has_nan = has_nan || internal::IsNan(maxima[lane]);
    }
    const Tap row = TapOf(launch.rows, this->rows, held_rows, window.row);
    const Tap column = TapOf(launch.columns, this->columns, held_columns, window.column);
    const int pitch = launch.columns.held;
    const int in_plane = kChannels ? window.channel : window.channel * launch.rows.held * pitch;
    int found[kGroup];
    int found_plane[kGroup];
#pragma unroll
    for (int lane = 0; lane < kGroup; ++lane) {
      found[lane] = kNone;
      found_plane[lane] = 0;
    }
    if constexpr (kVolume) {
      FindInVolume(window_plane, in_plane, row, column, maxima, has_nan, found, found_plane);
    } else {
      const T* const from = InputOf(0) + in_plane;
      FindInPlane(from, row, column, maxima, found);
      if (has_nan) {
        FindLastNans(from, row, column, maxima, found);
      }
    }
#pragma unroll
    for (int lane = 0; lane < kGroup; ++lane) {
      const int at = kVolume ? found[lane] & kInPlane : found[lane];
      const int i = Quotient(max(at, 0), launch.columns.by_held);
      const int own_row = i + held_rows.begin - this->rows.begin;
      const int own_column = at - i * pitch + held_columns.begin - this->columns.begin;
      const int own_plane = found_plane[lane] - this->planes.begin;
      if (found[lane] != kNone &&
          (!kVolume ||
           static_cast<unsigned>(own_plane) < static_cast<unsigned>(this->planes.count)) &&
          static_cast<unsigned>(own_row) < static_cast<unsigned>(this->rows.count) &&
          static_cast<unsigned>(own_column) < static_cast<unsigned>(this->columns.count)) {
        named[lane] = static_cast<short>(
            Base::SumOf(window.channel + lane, own_row, own_column, sums_at(found_plane[lane])));
      }
    }
  }

  /// The first and last position of a window along an axis, from the first that is held on; the
  /// last is before the first where it has none.
  struct Tap {
    int first;
    int last;
  };

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

  /// Where the elements that NameEqual names are within their planes, and these planes.
  __device__ __forceinline__ void FindInVolume(
      int window_plane,
      int in_plane,
      const Tap& row,
      const Tap& column,
      const A (&maxima)[kGroup],
      bool has_nan,
      int (&found)[kGroup],
      int (&found_plane)[kGroup]) const {
    const TilesLaunch& launch = this->launch;
    const Tap depth = TapOf(launch.planes, this->planes, {0, launch.planes.input}, window_plane);
    // From the last to the first, so that the first is what stays.
#pragma unroll 1
    for (int plane = depth.last; plane >= depth.first; plane -= launch.planes.dilation) {
      FindInPlane(InputOf(plane) + in_plane, row, column, maxima, found);
      NotePlane(plane, found, found_plane);
    }
    for (int plane = depth.first; has_nan && plane <= depth.last;
         plane += launch.planes.dilation) {
      FindLastNans(InputOf(plane) + in_plane, row, column, maxima, found);
      NotePlane(plane, found, found_plane);
    }
  }

  /// InputOf returns where the first element that is held of a plane is in shared memory.
  [[nodiscard]] __device__ __forceinline__ const T* InputOf(int plane) const {
    if constexpr (kVolume) {
      return input_ + SlotOf(plane) * this->launch.plane_input + ShiftOfPlane(plane, input_base_);
    }
    return input_;
  }

  template <typename Number>
  __device__ __forceinline__ static void LoadAll(const Number* from, Number (&to)[kGroup]) {
    constexpr int kOnce = kGroup < kVectorLength<Number> ? kGroup : kVectorLength<Number>;
#pragma unroll
    for (int lane = 0; lane < kGroup; lane += kOnce) {
      LoadAtOnce<kOnce>(from + lane, to + lane);
    }
  }

  HeldRange held_rows = {};
  HeldRange held_columns = {};

 private:
  /// Notes which plane what is newly found is in.
  __device__ __forceinline__ static void
  NotePlane(int plane, int (&found)[kGroup], int (&found_plane)[kGroup]) {
#pragma unroll
    for (int lane = 0; lane < kGroup; ++lane) {
      const bool is_new = (found[lane] & kNoted) == 0;
      found_plane[lane] = is_new ? plane : found_plane[lane];
      found[lane] |= kNoted;
    }
  }

  __device__ __forceinline__ void FindInPlane(
      const T* from,
      const Tap& row,
      const Tap& column,
      const A (&maxima)[kGroup],
      int (&found)[kGroup]) const {
    const TilesLaunch& launch = this->launch;
    const int height = (row.last - row.first) + 1;
    const int width = (column.last - column.first) + 1;
    const bool is_dense = launch.rows.dilation == 1 && launch.columns.dilation == 1;
    const int first = row.first * launch.columns.held + column.first;
    if (is_dense && height == 3 && width == 3) {
      FindInBlock<3>(from, first, maxima, found);
    } else if (is_dense && height == 2 && width == 2) {
      FindInBlock<2>(from, first, maxima, found);
    } else {
      FindAnywhere(from, row, column, maxima, found);
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

  /// Whether the plane of what is found is known, and where that is in its plane.
  static constexpr int kNoted = 1 << 30;
  static constexpr int kInPlane = kNoted - 1;

  T* input_ = nullptr;
  int input_base_ = 0;
  int met_plane_ = 0;
  int met_slot_ = 0;
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_WINDOW_INPUT_CUH_
