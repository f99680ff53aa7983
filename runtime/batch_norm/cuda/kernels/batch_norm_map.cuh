#ifndef GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_MAP_CUH_
#define GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_MAP_CUH_

#include "batch_norm/cuda/kernels/batch_norm_finish.cuh"

/// The third step: a map over all elements.
namespace gradsmith::batch_norm::own {
namespace {

enum class Map {
  kNormalize,
  kNormalizeRelu,
  kInputGradient,
  kReluInputGradient  ///< of what ReLU passes on
};

template <Map kMap>
constexpr bool kReadsGradient = kMap == Map::kInputGradient || kMap == Map::kReluInputGradient;

template <Map kMap, int V>
constexpr int kMapBatch = V == 1 ? 4 : (kReadsGradient<kMap> ? 2 : 4) / (V == 8 ? 2 : 1);

/// How many elements or vectors a thread of a map along rows loads at once: coefficients are few
/// there, and leave registers for two at least.
template <Map kMap, int V>
constexpr int kRowMapBatch = kMapBatch<kMap, V> < 2 ? 2 : kMapBatch<kMap, V>;

template <Map kMap>
constexpr int kCoefficients = kMap == Map::kReluInputGradient ? 5
                              : kReadsGradient<kMap>          ? 4
                                                              : 3;

template <Map kMap, typename A>
__device__ __forceinline__ A Apply(const A (&c)[kAllCoefficients], A dy, A x) {
  const A deviation = x - c[kPivot];
  if constexpr (kMap == Map::kNormalize) {
    return deviation * c[kFactor] + c[kShift];
  } else if constexpr (kMap == Map::kNormalizeRelu) {
    const A value = deviation * c[kFactor] + c[kShift];
    return value <= 0 ? A(0) : value;  // NaN stays NaN
  } else if constexpr (kMap == Map::kInputGradient) {
    return dy * c[kFactor] + (deviation * c[kSlope] + c[kShift]);
  } else {
    const A passed = Gate<A>{c[kFactor], c[kGate]}.Pass(dy, deviation);
    return passed * c[kFactor] + (deviation * c[kSlope] + c[kShift]);
  }
}

/// The same of a channel that is wide, all in double.
template <Map kMap>
__device__ __forceinline__ double
ApplyWide(const double (&c)[kAllCoefficients], double dy, double x) {
  double of_deviation[kAllCoefficients] = {0, c[kFactor], c[kShift], c[kSlope], c[kGate], 1};
  return Apply<kMap>(of_deviation, dy, fma(x, c[kUnit], -c[kPivot] * c[kUnit]));
}

/// The elements that a map reads, and what it makes of them.
template <Map kMap, typename T, int V>
struct MapElements {
  using A = Accumulator<T>;
  Place place;
  Pack<T, V> dy;
  Pack<T, V> x;
  Pack<T, V> result;

  template <Access kAccess>
  __device__ __forceinline__ void Load(
      const Operands& operands,
      const Place& at,
      std::int64_t dy_stride,
      std::int64_t x_stride,
      std::int64_t stride) {
    place = at;
    if constexpr (kReadsGradient<kMap>) {
      own::Load<kAccess>(At<const T>(operands.dY, at.dY), dy_stride, at.count, &dy);
    }
    own::Load<kAccess>(At<const T>(operands.X, at.X), x_stride, at.count, &x);
    LoadResult<kAccess>(operands, stride);
  }

  /// Loads what is added to.
  template <Access kAccess>
  __device__ __forceinline__ void LoadResult(const Operands& operands, std::int64_t stride) {
    if (Accumulates(operands)) {
      own::Load<kAccess>(At<const T>(operands.output, place.output), stride, place.count, &result);
    }
  }

  __device__ __forceinline__ void
  Apply(const Operands& operands, int i, const A (&coefficients)[kAllCoefficients]) {
    A dy_value = 0;
    if constexpr (kReadsGradient<kMap>) {
      dy_value = Convert<A>(dy.values[i]);
    }
    A value = own::Apply<kMap>(coefficients, dy_value, Convert<A>(x.values[i]));
    if (Accumulates(operands)) {
      value += Convert<A>(result.values[i]);
    }
    result.values[i] = Convert<T>(value);
  }

  __device__ __forceinline__ void
  ApplyWide(const Operands& operands, int i, const double (&coefficients)[kAllCoefficients]) {
    double dy_value = 0;
    if constexpr (kReadsGradient<kMap>) {
      dy_value = Convert<double>(dy.values[i]);
    }
    double value = own::ApplyWide<kMap>(coefficients, dy_value, Convert<double>(x.values[i]));
    if (Accumulates(operands)) {
      value += Convert<double>(result.values[i]);
    }
    result.values[i] = Convert<T>(value);
  }

  template <Access kAccess>
  __device__ __forceinline__ void Store(const Operands& operands, std::int64_t stride) const {
    own::Store<kAccess>(result, stride, place.count, At<T>(operands.output, place.output));
  }

 private:
  static __device__ bool Accumulates(const Operands& operands) {
    return kReadsGradient<kMap> && operands.accumulate;
  }
};

/// All coefficients of a channel; a gate is there for ReLU's gradient alone.
template <Map kMap>
__device__ __forceinline__ void LoadWide(
    const Walk& walk,
    const double* coefficients,
    std::int64_t channel,
    double (&to)[kAllCoefficients]) {
#pragma unroll
  for (int k = 0; k < kAllCoefficients; ++k) {
    if (k != kGate || kMap == Map::kReluInputGradient) {
      to[k] = coefficients[k * walk.channels + channel];
    }
  }
}

/// A map of a channel along rows.
template <Map kMap, typename T>
struct RowMap {
  template <int N>
  using Elements = MapElements<kMap, T, N>;

  const Operands& operands;
  Accumulator<T> coefficients[kAllCoefficients];

  template <Access kAccess, int N>
  __device__ __forceinline__ void Load(const Place& place, Elements<N>* elements) const {
    elements->template Load<kAccess>(
        operands, place, operands.dY.strides[kInner], operands.X.strides[kInner],
        operands.output.strides[kInner]);
  }

  template <Access kAccess, int N>
  __device__ __forceinline__ void Use(Elements<N>& elements) const {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      elements.Apply(operands, i, coefficients);
    }
    elements.template Store<kAccess>(operands, operands.output.strides[kInner]);
  }
};

/// The same of a wide channel.
template <Map kMap, typename T>
struct WideRowMap {
  template <int N>
  using Elements = MapElements<kMap, T, N>;

  const Operands& operands;
  double coefficients[kAllCoefficients];

  template <Access kAccess, int N>
  __device__ __forceinline__ void Load(const Place& place, Elements<N>* elements) const {
    elements->template Load<kAccess>(
        operands, place, operands.dY.strides[kInner], operands.X.strides[kInner],
        operands.output.strides[kInner]);
  }

  template <Access kAccess, int N>
  __device__ __forceinline__ void Use(Elements<N>& elements) const {
#pragma unroll 1
    for (int i = 0; i < N; ++i) {
      elements.ApplyWide(operands, i, coefficients);
    }
    elements.template Store<kAccess>(operands, operands.output.strides[kInner]);
  }
};

/// The block that sums last maps first: what it has read is still in the cache.
template <Map kMap, typename T>
__device__ void MapRows(const Walk& walk, const Operands& operands, const double* coefficients) {
  constexpr int V = kVector<T>;
  const std::int64_t slice = walk.slices - 1 - blockIdx.y;
  for (std::int64_t i = blockIdx.x; i < walk.channels; i += gridDim.x) {
    const std::int64_t channel = walk.channels - 1 - i;
    if (coefficients[kUnit * walk.channels + channel] != 1) {
      WideRowMap<kMap, T> wide = {operands, {}};
      LoadWide<kMap>(walk, coefficients, channel, wide.coefficients);
      Rows<V> rows(walk, operands, operands.output, channel, slice);
      VisitRows<1>(walk, rows, wide);
      continue;
    }
    RowMap<kMap, T> map = {operands, {}};
#pragma unroll
    for (int k = 0; k < kCoefficients<kMap>; ++k) {
      map.coefficients[k] = static_cast<Accumulator<T>>(coefficients[k * walk.channels + channel]);
    }
    Rows<V> rows(walk, operands, operands.output, channel, slice);
    VisitRows<kRowMapBatch<kMap, V>>(walk, rows, map);
  }
}

/// The coefficients of a tile's columns, in shared memory, at PlaceInTile: registers are for what
/// is loaded.
template <Map kMap, typename T, int V>
using TileCoefficients = Accumulator<T>[kCoefficients<kMap>][kMaxWidth * V];

/// Returns whether a channel of the tile is wide.
template <Map kMap, typename T, int V>
__device__ __forceinline__ bool FillCoefficients(
    const Walk& walk,
    const double* coefficients,
    TileCoefficients<kMap, T, V>* of_tile) {
  using A = Accumulator<T>;
  bool has_wide = false;
  FillPlaces<A, V>(walk, [&](int place, std::int64_t channel) {
#pragma unroll
    for (int k = 0; k < kCoefficients<kMap>; ++k) {
      (*of_tile)[k][place] = static_cast<A>(coefficients[k * walk.channels + channel]);
    }
    if (coefficients[kUnit * walk.channels + channel] != 1) {
      has_wide = true;
    }
  });
  return __syncthreads_or(has_wide ? 1 : 0) != 0;
}

/// V columns of a thread's steps.
template <Map kMap, typename T, int V>
struct ColumnMap {
  using A = Accumulator<T>;
  Columns<V> columns;
  const TileCoefficients<kMap, T, V>& coefficients;

  template <int kBatch>
  __device__ __forceinline__ void Visit(StepPlaces<V, true>* places, int count) {
    const Operands& operands = columns.operands;
    const std::int64_t stride = ColumnStride<V>(operands.output);
    MapElements<kMap, T, V> batch[kBatch];
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      batch[j].template Load<Access::kMostlyVectors>(
          operands, places->Next(count), ColumnStride<V>(operands.dY), ColumnStride<V>(operands.X),
          stride);
    }
    Apply(&batch);
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      batch[j].template Store<Access::kMostlyVectors>(operands, stride);
    }
  }

  template <int kBatch>
  __device__ __forceinline__ void Apply(MapElements<kMap, T, V> (*batch)[kBatch]) {
#pragma unroll
    for (int i = 0; i < V; ++i) {
      if (i % 4 == 0) {
        // Keeps the compiler from holding the coefficients of all columns at once.
        asm volatile("" ::: "memory");
      }
      A of_column[kAllCoefficients];
#pragma unroll
      for (int k = 0; k < kCoefficients<kMap>; ++k) {
        of_column[k] = coefficients[k][PlaceInTile<A, V>(LaneX(columns.walk), i)];
      }
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        (*batch)[j].Apply(columns.operands, i, of_column);
      }
    }
  }
};

/// The same where one of the tile's channels is wide: all coefficients as they are in memory.
template <Map kMap, typename T, int V>
struct WideColumnMap {
  Columns<V> columns;
  const double* coefficients;

  template <int kBatch>
  __device__ __forceinline__ void Visit(StepPlaces<V, true>* places, int count) {
    static_assert(kBatch == 1);
    const Operands& operands = columns.operands;
    const std::int64_t stride = ColumnStride<V>(operands.output);
    MapElements<kMap, T, V> elements;
    elements.template Load<Access::kMostlyVectors>(
        operands, places->Next(count), ColumnStride<V>(operands.dY), ColumnStride<V>(operands.X),
        stride);
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      double of_column[kAllCoefficients] = {};
      LoadWide<kMap>(
          columns.walk, coefficients, ChannelOf(columns.walk, columns.first + i), of_column);
      elements.ApplyWide(operands, i, of_column);
    }
    elements.template Store<Access::kMostlyVectors>(operands, stride);
  }
};

template <Map kMap, typename T, int V>
__device__ __forceinline__ void MapWideColumns(
    const Columns<V>& columns,
    const double* coefficients) {
  WideColumnMap<kMap, T, V> map = {columns, coefficients};
  ForEachPlace<1, true>(map.columns, map);
}

template <Map kMap, typename T, int V>
__device__ __forceinline__ void
MapColumns(const Walk& walk, const Operands& operands, const double* coefficients) {
  __shared__ TileCoefficients<kMap, T, V> of_tile;
  const bool has_wide = FillCoefficients<kMap, T, V>(walk, coefficients, &of_tile);
  ColumnMap<kMap, T, V> map = {Columns<V>(walk, operands), of_tile};
  if (has_wide) {
    MapWideColumns<kMap, T, V>(map.columns, coefficients);
  } else {
    ForEachPlace<kMapBatch<kMap, V>, true>(map.columns, map);
  }
}

}  // namespace
}  // namespace gradsmith::batch_norm::own

#endif  // GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_MAP_CUH_
