#include "conv/cuda/depthwise_arguments.h"
#include "cuda/kernels/element_vector.cuh"
#include "cuda/kernels/ptx.cuh"

/// Depthwise convolutions; see conv/cuda/depthwise.h.
namespace gradsmith::conv::depthwise {
namespace {

using cuda::Accumulator;
using cuda::Convert;
using cuda::Divide;
using cuda::PrefetchToL2;

/// kLength neighbouring elements: one, or a vector of them.
template <typename T, int kLength>
struct alignas(sizeof(T) * kLength) Unit {
  T values[kLength];
};

template <int kLength, typename T>
__device__ __forceinline__ Unit<T, kLength> LoadUnit(const T* from) {
  return *reinterpret_cast<const Unit<T, kLength>*>(from);
}

template <typename T, int kLength>
__device__ __forceinline__ Unit<T, kLength> ZeroUnit() {
  Unit<T, kLength> unit;
#pragma unroll
  for (int i = 0; i < kLength; ++i) {
    unit.values[i] = Convert<T>(0.0F);
  }
  return unit;
}

/// Threads keep sums, and filters as such, in registers: units are as large as these allow.
template <typename T>
inline constexpr int kUnitLength = static_cast<int>(kUnitSumBytes / sizeof(Accumulator<T>));

/// The block's and the thread's share of the channels.
struct Place {
  int first_channel;      // of the block
  int channels_of_block;  // those that there are
  int unit;
  int column_of_block;
  std::int64_t part;  // which run of columns the block has
  bool active;
};

template <int kLength>
__device__ __forceinline__ Place PlaceOf(const Arguments& p) {
  const cuda::Division tile = Divide(blockIdx.x, p.unit_tiles);
  const int span = p.units_of_block * kLength;
  Place place;
  place.part = tile.quotient;
  place.first_channel = static_cast<int>(tile.remainder) * span;
  place.channels_of_block = min(span, p.channels - place.first_channel);
  place.unit = static_cast<int>(threadIdx.x) % p.units_of_block;
  place.column_of_block = static_cast<int>(threadIdx.x) / p.units_of_block;
  place.active =
      place.column_of_block < p.columns_of_block && place.unit * kLength < place.channels_of_block;
  return place;
}

/// Column says where a column begins.
struct Column {
  std::int64_t n;
  int depth;
  int row;
  int at;
};

__device__ __forceinline__ Column ColumnOf(const Arguments& p, std::int64_t index) {
  const cuda::Division last = Divide(index, p.sizes[2]);
  const cuda::Division rows = Divide(last.quotient, p.row_tiles);
  const cuda::Division depth = Divide(rows.quotient, p.sizes[0]);
  return {
      depth.quotient, static_cast<int>(depth.remainder), static_cast<int>(rows.remainder) * p.rows,
      static_cast<int>(last.remainder)};
}

/// The position of x that a tap of a position of y meets; negative where it is padding.
__device__ __forceinline__ int XAt(const AxisArguments& axis, int y, int tap) {
  const int at = y * axis.stride - axis.pad + tap * axis.dilation;
  return at < axis.x ? at : -1;
}

/// The position of y that meets a position of x with a tap; negative where there is none.
__device__ __forceinline__ int YAt(const AxisArguments& axis, int x, int tap) {
  const int reached = x + axis.pad - tap * axis.dilation;
  if (axis.stride == 1) {
    return reached < axis.y ? reached : -1;
  }
  const int at = reached / axis.stride;
  return reached >= 0 && at * axis.stride == reached && at < axis.y ? at : -1;
}

template <bool kBackward>
__device__ __forceinline__ int SourceAt(const AxisArguments& axis, int position, int tap) {
  return kBackward ? YAt(axis, position, tap) : XAt(axis, position, tap);
}

/// The block's filters, as (tap, channel of the block), to shared memory.
template <typename T>
__device__ __forceinline__ void
LoadFilters(const Arguments& p, const Place& place, int span, const T* w, T* filters) {
  const T* from = w + std::int64_t{place.first_channel} * p.taps;
  for (int i = static_cast<int>(threadIdx.x); i < place.channels_of_block * p.taps;
       i += static_cast<int>(blockDim.x)) {
    const int channel = i / p.taps;
    filters[(i - channel * p.taps) * span + channel] = from[i];
  }
  __syncthreads();
}

template <typename T, int kLength>
__device__ __forceinline__ void
AddProducts(const Unit<T, kLength>& a, const Unit<T, kLength>& b, Accumulator<T> (&sums)[kLength]) {
#pragma unroll
  for (int i = 0; i < kLength; ++i) {
    sums[i] += Convert<Accumulator<T>>(a.values[i]) * Convert<Accumulator<T>>(b.values[i]);
  }
}

/// How taps are gone through: of a filter of any size, of 3x3, or of 3x3 by single steps, where
/// neighbouring results share what they read.
enum Taps { kAnyTaps, k3x3, kWindow };

/// Adds one row of taps. `row` is the source's row, or null where it is padding.
template <bool kBackward, int kSide, int kLength, typename T>
__device__ __forceinline__ void AddRow(
    const Arguments& p,
    int at,
    const T* row,
    std::int64_t step,
    const T* filters,
    int span,
    Accumulator<T> (&sums)[kLength]) {
  if constexpr (kSide > 0) {
    // All loads first: they are in flight together.
    Unit<T, kLength> values[kSide];
#pragma unroll
    for (int tap = 0; tap < kSide; ++tap) {
      const int source = SourceAt<kBackward>(p.axes[2], at, tap);
      values[tap] = ZeroUnit<T, kLength>();
      if (row != nullptr && source >= 0) {
        values[tap] = LoadUnit<kLength>(row + source * step);
      }
    }
#pragma unroll
    for (int tap = 0; tap < kSide; ++tap) {
      AddProducts(values[tap], LoadUnit<kLength>(filters + tap * span), sums);
    }
  } else {
    for (int tap = 0; row != nullptr && tap < p.axes[2].w; ++tap) {
      const int source = SourceAt<kBackward>(p.axes[2], at, tap);
      if (source >= 0) {
        AddProducts(
            LoadUnit<kLength>(row + source * step), LoadUnit<kLength>(filters + tap * span), sums);
      }
    }
  }
}

template <typename T, int kLength>
__device__ __forceinline__ void
StoreSums(const Accumulator<T> (&sums)[kLength], bool accumulate, T* to) {
  Unit<T, kLength> unit = accumulate ? LoadUnit<kLength>(to) : ZeroUnit<T, kLength>();
#pragma unroll
  for (int i = 0; i < kLength; ++i) {
    unit.values[i] =
        Convert<T>(accumulate ? Convert<Accumulator<T>>(unit.values[i]) + sums[i] : sums[i]);
  }
  *reinterpret_cast<Unit<T, kLength>*>(to) = unit;
}

/// A thread's part of the tensors.
template <typename T>
struct Line {
  const T* from;  // at the source's first position
  T* to;          // at the column's first row of the whole tensor
  const T* filters;
  int span;  // between taps
};

/// One result after the other. kSide: the filters are (1, kSide, kSide), or of any size: 0.
template <bool kBackward, int kSide, int kLength, typename T>
__device__ __forceinline__ void
CorrelateRows(const Arguments& p, const Column& column, const Line<T>& line, bool accumulate) {
  const std::int64_t(&from_strides)[kRank] = kBackward ? p.y_strides : p.x_strides;
  const std::int64_t(&to_strides)[kRank] = kBackward ? p.x_strides : p.y_strides;
  const int end = min(column.row + p.rows, p.sizes[1]);
  for (int row = column.row; row < end; ++row) {
    Accumulator<T> sums[kLength] = {};
    for (int i = 0; i < (kSide > 0 ? 1 : p.axes[0].w); ++i) {
      const int depth = SourceAt<kBackward>(p.axes[0], column.depth, i);
#pragma unroll(kSide > 0 ? kSide : 1)
      for (int j = 0; j < (kSide > 0 ? kSide : p.axes[1].w); ++j) {
        const int source = SourceAt<kBackward>(p.axes[1], row, j);
        const T* from = depth < 0 || source < 0
                            ? nullptr
                            : line.from + depth * from_strides[2] + source * from_strides[3];
        AddRow<kBackward, kSide, kLength>(
            p, column.at, from, from_strides[4],
            line.filters + (i * p.axes[1].w + j) * p.axes[2].w * line.span, line.span, sums);
      }
    }
    StoreSums(sums, accumulate, line.to + row * to_strides[3]);
  }
}

/// Three neighbouring units of each row, as 3x3 filters by single steps meet them.
template <int kLength, typename T>
class ThreeColumns {
 public:
  /// `from` is at the first row and column of `rows` by `columns`; `first` may be outside.
  __device__ __forceinline__
  ThreeColumns(const T* from, int first, int columns, std::int64_t step, int rows)
      : from_(from + first * step), step_(step), rows_(rows) {
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      inside_[i] = first + i >= 0 && first + i < columns;
    }
  }

  /// The units of a row; zeros where it is padding.
  __device__ __forceinline__ void Load(int row, std::int64_t row_step, Unit<T, kLength> (&units)[3])
      const {
    const bool is_row = row >= 0 && row < rows_;
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      units[i] = ZeroUnit<T, kLength>();
      if (is_row && inside_[i]) {
        units[i] = LoadUnit<kLength>(from_ + row * row_step + i * step_);
      }
    }
  }

  /// Asks the L2 cache for rows of the middle column; neighbours ask for the others.
  template <int kMost>
  __device__ __forceinline__ void Prefetch(int first, int count, std::int64_t row_step) const {
#pragma unroll
    for (int i = 0; i < kMost; ++i) {
      const int row = first + i;
      if (i < count && inside_[1] && row >= 0 && row < rows_) {
        PrefetchToL2(from_ + row * row_step + step_);
      }
    }
  }

 private:
  const T* from_;
  std::int64_t step_;
  int rows_;
  bool inside_[3];
};

/// The 3x3 filters of a unit; turned around, they make backward of forward.
template <bool kTurned, int kLength, typename T>
__device__ __forceinline__ void LoadFilter(
    const Line<T>& line,
    Accumulator<T> (&filter)[9][kLength]) {
#pragma unroll
  for (int tap = 0; tap < 9; ++tap) {
    const auto unit = LoadUnit<kLength>(line.filters + (kTurned ? 8 - tap : tap) * line.span);
#pragma unroll
    for (int i = 0; i < kLength; ++i) {
      filter[tap][i] = Convert<Accumulator<T>>(unit.values[i]);
    }
  }
}

/// Adds a row of the source to the three results that it reaches, the one below it first.
template <int kLength, typename T>
__device__ __forceinline__ void AddToThree(
    const Unit<T, kLength> (&units)[3],
    const Accumulator<T> (&filter)[9][kLength],
    Accumulator<T> (&sums)[3][kLength]) {
#pragma unroll
  for (int tap = 0; tap < 9; ++tap) {
#pragma unroll
    for (int i = 0; i < kLength; ++i) {
      sums[tap / 3][i] += Convert<Accumulator<T>>(units[tap % 3].values[i]) * filter[tap][i];
    }
  }
}

/// 3x3 by single steps: every row of the source is read once.
template <bool kBackward, int kLength, typename T>
__device__ __forceinline__ void
CorrelateWindow(const Arguments& p, const Column& column, const Line<T>& line, bool accumulate) {
  const std::int64_t(&from_strides)[kRank] = kBackward ? p.y_strides : p.x_strides;
  const std::int64_t to_step = kBackward ? p.x_strides[3] : p.y_strides[3];
  const auto pad_of = [](const AxisArguments& axis) { return kBackward ? 2 - axis.pad : axis.pad; };
  const auto size_of = [](const AxisArguments& axis) { return kBackward ? axis.y : axis.x; };
  const int depth = SourceAt<kBackward>(p.axes[0], column.depth, 0);
  const ThreeColumns<kLength, T> source(
      line.from + depth * from_strides[2], column.at - pad_of(p.axes[2]), size_of(p.axes[2]),
      from_strides[4], depth < 0 ? 0 : size_of(p.axes[1]));
  const int first = column.row - pad_of(p.axes[1]);
  const int rows = min(p.rows, p.sizes[1] - column.row);
  source.template Prefetch<kMaxRows + 2>(first, rows + 2, from_strides[3]);
  Accumulator<T> filter[9][kLength];
  LoadFilter<kBackward>(line, filter);
  Accumulator<T> sums[3][kLength] = {};
  Unit<T, kLength> next[3];
  source.Load(first, from_strides[3], next);
#pragma unroll 2
  for (int i = 0; i < rows + 2; ++i) {
    const Unit<T, kLength> units[3] = {next[0], next[1], next[2]};
    // In flight while these are added.
    source.Load(i < rows + 1 ? first + i + 1 : -1, from_strides[3], next);
    AddToThree(units, filter, sums);
    if (i >= 2) {
      StoreSums(sums[2], accumulate, line.to + (column.row + i - 2) * to_step);
    }
#pragma unroll
    for (int e = 0; e < kLength; ++e) {
      sums[2][e] = sums[1][e];
      sums[1][e] = sums[0][e];
      sums[0][e] = 0;
    }
  }
}

/// y from x, or, backward, x from y.
template <bool kBackward, Taps kTaps, int kLength, typename T>
__device__ __forceinline__ void
Correlate(const Arguments& p, const T* from, const T* w, T* to, bool accumulate) {
  GRADSMITH_DYNAMIC_SHARED(shared);
  T* filters = reinterpret_cast<T*>(shared);
  const Place place = PlaceOf<kLength>(p);
  const int span = p.units_of_block * kLength;
  LoadFilters(p, place, span, w, filters);
  const std::int64_t index = place.part * p.columns_of_block + place.column_of_block;
  if (!place.active || index >= p.columns) {
    return;
  }
  const std::int64_t(&from_strides)[kRank] = kBackward ? p.y_strides : p.x_strides;
  const std::int64_t(&to_strides)[kRank] = kBackward ? p.x_strides : p.y_strides;
  const Column column = ColumnOf(p, index);
  const std::int64_t channel = place.first_channel + place.unit * kLength;
  const Line<T> line = {
      from + column.n * from_strides[0] + channel * from_strides[1],
      to + column.n * to_strides[0] + channel * to_strides[1] + column.depth * to_strides[2] +
          column.at * to_strides[4],
      filters + place.unit * kLength, span};
  if constexpr (kTaps == kWindow) {
    CorrelateWindow<kBackward, kLength>(p, column, line, accumulate);
  } else {
    CorrelateRows<kBackward, kTaps == k3x3 ? 3 : 0, kLength>(p, column, line, accumulate);
  }
}

/// The taps that a thread sums: those from `first` on, of a filter of any size.
template <int kSide>
struct TapsOf {
  int at[kTapsAtOnce][kSpatialRank];
  int count;

  __device__ __forceinline__ TapsOf(const Arguments& p, int first) {
    count = kSide > 0 ? kSide * kSide : min(kTapsAtOnce, p.taps - first);
#pragma unroll
    for (int i = 0; i < kTapsAtOnce; ++i) {
      const int width = kSide > 0 ? kSide : p.axes[2].w;
      const int height = kSide > 0 ? kSide : p.axes[1].w;
      const int tap = first + i;
      at[i][2] = tap % width;
      at[i][1] = tap / width % height;
      at[i][0] = tap / width / height;
    }
  }
};

/// Adds the products of one element of y (kLength channels of it) with all that its taps meet.
template <int kSide, int kLength, typename T>
__device__ __forceinline__ void AddTaps(
    const Arguments& p,
    const TapsOf<kSide>& taps,
    const T* x,
    const Unit<T, kLength>& y,
    const Column& column,
    int row,
    Accumulator<T> (&sums)[kTapsAtOnce][kLength]) {
#pragma unroll
  for (int i = 0; i < kTapsAtOnce; ++i) {
    if (i < taps.count) {
      const int depth = XAt(p.axes[0], column.depth, taps.at[i][0]);
      const int line = XAt(p.axes[1], row, taps.at[i][1]);
      const int at = XAt(p.axes[2], column.at, taps.at[i][2]);
      if (depth >= 0 && line >= 0 && at >= 0) {
        AddProducts(
            LoadUnit<kLength>(
                x + depth * p.x_strides[2] + line * p.x_strides[3] + at * p.x_strides[4]),
            y, sums[i]);
      }
    }
  }
}

/// Adds a column of y, one element after the other.
template <int kSide, int kLength, typename T>
__device__ __forceinline__ void AddColumn(
    const Arguments& p,
    const TapsOf<kSide>& taps,
    const T* x,
    const T* y,
    const Column& column,
    Accumulator<T> (&sums)[kTapsAtOnce][kLength]) {
  const int end = min(column.row + p.rows, p.sizes[1]);
  for (int row = column.row; row < end; ++row) {
    AddTaps(p, taps, x, LoadUnit<kLength>(y + row * p.y_strides[3]), column, row, sums);
  }
}

/// Adds a column of y; every row of x is read once and serves three rows of y.
template <int kLength, typename T>
__device__ __forceinline__ void AddColumnByWindow(
    const Arguments& p,
    const T* x,
    const T* y,
    const Column& column,
    Accumulator<T> (&sums)[kTapsAtOnce][kLength]) {
  const int depth = XAt(p.axes[0], column.depth, 0);
  const ThreeColumns<kLength, T> source(
      x + depth * p.x_strides[2], column.at - p.axes[2].pad, p.axes[2].x, p.x_strides[4],
      depth < 0 ? 0 : p.axes[1].x);
  const int first = column.row - p.axes[1].pad;
  const int rows = min(p.rows, p.sizes[1] - column.row);
  Unit<T, kLength> window[3][3];
  source.Load(first, p.x_strides[3], window[1]);
  source.Load(first + 1, p.x_strides[3], window[2]);
  for (int i = 0; i < rows; ++i) {
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      window[0][k] = window[1][k];
      window[1][k] = window[2][k];
    }
    source.Load(first + i + 2, p.x_strides[3], window[2]);
    const auto unit = LoadUnit<kLength>(y + (column.row + i) * p.y_strides[3]);
#pragma unroll
    for (int tap = 0; tap < kTapsAtOnce; ++tap) {
      AddProducts(window[tap / 3][tap % 3], unit, sums[tap]);
    }
  }
}

/// Adds up what the threads of each unit have, to those of the first column.
template <int kLength, typename A>
__device__ __forceinline__ void
SumOverColumns(const Arguments& p, const Place& place, A (&sums)[kLength], A* shared) {
  A* mine = shared + static_cast<int>(threadIdx.x) * kLength;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kLength; ++i) {
    mine[i] = sums[i];
  }
  for (int count = p.columns_of_block; count > 1;) {
    const int half = (count + 1) / 2;
    __syncthreads();
    if (place.column_of_block + half < count) {
#pragma unroll
      for (int i = 0; i < kLength; ++i) {
        mine[i] += mine[half * p.units_of_block * kLength + i];
      }
    }
    count = half;
  }
#pragma unroll
  for (int i = 0; i < kLength; ++i) {
    sums[i] = mine[i];
  }
}

/// Partial sums (slice, channel, tap) of the filters' gradients.
template <Taps kTaps, int kLength, typename T>
__device__ __forceinline__ void
SumFilters(const Arguments& p, const T* x, const T* y, Accumulator<T>* partial) {
  __shared__ Accumulator<T> shared[kThreads * kLength];
  const Place place = PlaceOf<kLength>(p);
  const int first_tap = static_cast<int>(blockIdx.y) * kTapsAtOnce;
  const TapsOf<kTaps == kAnyTaps ? 0 : 3> taps(p, first_tap);
  const std::int64_t channel = place.first_channel + place.unit * kLength;
  Accumulator<T> sums[kTapsAtOnce][kLength] = {};
  const std::int64_t begin = place.part * p.columns_of_slice;
  const std::int64_t end = place.active ? min(begin + p.columns_of_slice, p.columns) : begin;
  for (std::int64_t index = begin + place.column_of_block; index < end;
       index += p.columns_of_block) {
    const Column column = ColumnOf(p, index);
    const T* from_x = x + column.n * p.x_strides[0] + channel * p.x_strides[1];
    const T* from_y = y + column.n * p.y_strides[0] + channel * p.y_strides[1] +
                      column.depth * p.y_strides[2] + column.at * p.y_strides[4];
    if constexpr (kTaps == kWindow) {
      AddColumnByWindow(p, from_x, from_y, column, sums);
    } else {
      AddColumn(p, taps, from_x, from_y, column, sums);
    }
  }
  partial += (place.part * p.channels + channel) * p.taps + first_tap;
#pragma unroll
  for (int tap = 0; tap < kTapsAtOnce; ++tap) {
    if (tap < taps.count) {
      SumOverColumns(p, place, sums[tap], shared);
      if (place.active && place.column_of_block == 0) {
#pragma unroll
        for (int i = 0; i < kLength; ++i) {
          partial[i * p.taps + tap] = sums[tap][i];
        }
      }
    }
  }
}

}  // namespace
}  // namespace gradsmith::conv::depthwise

#define GRADSMITH_DEPTHWISE_DATA(name, is_backward, taps, length, suffix, T)                   \
  extern "C" __global__ void __launch_bounds__(gradsmith::conv::depthwise::kThreads)           \
      gradsmith_depthwise_##name##_##suffix(                                                   \
          gradsmith::conv::depthwise::Arguments arguments, const void* from, const void* w,    \
          void* to, bool accumulate) {                                                         \
    using namespace gradsmith::conv::depthwise;                                                \
    Correlate<is_backward, taps, length>(                                                      \
        arguments, static_cast<const T*>(from), static_cast<const T*>(w), static_cast<T*>(to), \
        accumulate);                                                                           \
  }

#define GRADSMITH_DEPTHWISE_FILTER(name, taps, length, suffix, T)                        \
  extern "C" __global__ void __launch_bounds__(gradsmith::conv::depthwise::kThreads, 2)  \
      gradsmith_depthwise_filter_##name##_##suffix(                                      \
          gradsmith::conv::depthwise::Arguments arguments, const void* x, const void* y, \
          void* partial) {                                                               \
    using namespace gradsmith::conv::depthwise;                                          \
    SumFilters<taps, length>(                                                            \
        arguments, static_cast<const T*>(x), static_cast<const T*>(y),                   \
        static_cast<Accumulator<T>*>(partial));                                          \
  }

#define GRADSMITH_DEPTHWISE_OF(variant, taps, length, suffix, T)              \
  GRADSMITH_DEPTHWISE_DATA(forward_##variant, false, taps, length, suffix, T) \
  GRADSMITH_DEPTHWISE_DATA(data_##variant, true, taps, length, suffix, T)     \
  GRADSMITH_DEPTHWISE_FILTER(variant, taps, length, suffix, T)

#define GRADSMITH_DEPTHWISE(suffix, T)                                    \
  GRADSMITH_DEPTHWISE_OF(any, kAnyTaps, 1, suffix, T)                     \
  GRADSMITH_DEPTHWISE_OF(any_vector, kAnyTaps, kUnitLength<T>, suffix, T) \
  GRADSMITH_DEPTHWISE_OF(3x3, k3x3, 1, suffix, T)                         \
  GRADSMITH_DEPTHWISE_OF(3x3_vector, k3x3, kUnitLength<T>, suffix, T)     \
  GRADSMITH_DEPTHWISE_OF(window, kWindow, 1, suffix, T)                   \
  GRADSMITH_DEPTHWISE_OF(window_vector, kWindow, kUnitLength<T>, suffix, T)

GRADSMITH_FOR_ELEMENT_TYPES(GRADSMITH_DEPTHWISE)
