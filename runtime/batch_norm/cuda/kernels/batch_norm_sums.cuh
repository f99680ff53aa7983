#ifndef GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_SUMS_CUH_
#define GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_SUMS_CUH_

#include "batch_norm/cuda/kernels/batch_norm_walk.cuh"

/// The first step: sums over slices of each channel.
namespace gradsmith::batch_norm::own {
namespace {

/// What is summed.
enum class Sums {
  kMoments,       ///< X - pivot and its square
  kGradient,      ///< dY and dY * (X - pivot)
  kReluGradient,  ///< the same of what ReLU passes on of dY
  kBias           ///< dY
};

template <Sums kSums>
constexpr bool kIsOfProducts = kSums == Sums::kGradient || kSums == Sums::kReluGradient;

__device__ double MedianOf(double a, double b, double c) {
  const double low = a < b ? a : b;
  const double high = a < b ? b : a;
  return c < low ? low : (c > high ? high : c);
}

/// What a thread loads of a tensor before it uses the first of it: as much as there are registers
/// for.
template <Sums kSums, int V>
constexpr int kSumBatch = kIsOfProducts<kSums> && V > 1 ? 2 : 4;

/// A sample of a channel's that is not far out: by Chebyshev one in t lies further from the mean
/// than sqrt(t) deviations, and of three from within the channel two would have to.
__device__ double MedianSample(const Walk& walk, const Operand& X, int type, std::int64_t channel) {
  double values[3];
  for (int i = 0; i < 3; ++i) {
    values[i] = LoadElement(X.data, type, channel * X.channel_stride + walk.pivots[i]);
  }
  return MedianOf(values[0], values[1], values[2]);
}

template <typename T>
constexpr int kTypeOf = kFloat;
template <>
constexpr int kTypeOf<double> = kDouble;
template <>
constexpr int kTypeOf<__half> = kHalf;
template <>
constexpr int kTypeOf<__nv_bfloat16> = kBFloat16;

/// The number that X - mean is taken from: what is left of the mean goes into the shift.
__device__ double RoundPivot(double mean, int type) {
  return type == kDouble ? mean : static_cast<double>(static_cast<float>(mean));
}

/// Normalization is (X - pivot) * factor + shift, where `rest` is what the mean is beyond the
/// pivot. An infinite factor leaves an exact pivot's alone.
__device__ double ShiftOf(double bias, double rest, double factor) {
  return rest == 0 ? bias : bias - rest * factor;
}

/// Where ReLU passes gradients on: where what it was given is positive, or NaN. Sums and maps must
/// not differ in it, which is why nothing is left to the compiler.
template <typename A>
struct Gate {
  A factor = 0;
  A shift = 0;

  __device__ __forceinline__ A Pass(A dy, A deviation) const {
    return fma(deviation, factor, shift) <= 0 ? A(0) : dy;
  }
};

template <Sums kSums, typename T>
__device__ Gate<Accumulator<T>> GateOf(const Normalization& normalization, std::int64_t channel) {
  using A = Accumulator<T>;
  if constexpr (kSums != Sums::kReluGradient) {
    return {};
  } else {
    const double mean = LoadParameter(normalization.mean, channel);
    const double factor =
        LoadParameter(normalization.scale, channel) * LoadParameter(normalization.inv_std, channel);
    const double shift = ShiftOf(
        LoadParameter(normalization.bias, channel), mean - RoundPivot(mean, kTypeOf<T>), factor);
    return {static_cast<A>(factor), static_cast<A>(shift)};
  }
}

template <Sums kSums, typename T>
__device__ Accumulator<T> Pivot(
    const Walk& walk,
    const Operands& operands,
    const Normalization& normalization,
    std::int64_t channel) {
  if constexpr (kSums == Sums::kMoments) {
    return static_cast<Accumulator<T>>(MedianSample(walk, operands.X, kTypeOf<T>, channel));
  } else if constexpr (kIsOfProducts<kSums>) {
    return static_cast<Accumulator<T>>(LoadParameter(normalization.mean, channel));
  } else {
    return 0;
  }
}

template <Sums kSums, typename A>
__device__ __forceinline__ void
AddTerm(A dy, A x, A pivot, const Gate<A>& gate, A* first, A* second) {
  if constexpr (kSums == Sums::kMoments) {
    const A deviation = x - pivot;
    *first += deviation;
    *second += deviation * deviation;
  } else if constexpr (kSums == Sums::kReluGradient) {
    const A deviation = x - pivot;
    const A passed = gate.Pass(dy, deviation);
    *first += passed;
    *second += passed * deviation;
  } else {
    *first += dy;
    if constexpr (kSums == Sums::kGradient) {
      *second += dy * (x - pivot);
    }
  }
}

/// The elements that the sums are of.
template <Sums kSums, typename T, int V>
struct Terms {
  using A = Accumulator<T>;
  Pack<T, V> dy;
  Pack<T, V> x;

  template <Access kAccess>
  __device__ __forceinline__ void Load(
      const Operands& operands,
      const Place& place,
      std::int64_t dy_stride,
      std::int64_t x_stride) {
    if constexpr (kSums != Sums::kMoments) {
      own::Load<kAccess>(At<const T>(operands.dY, place.dY), dy_stride, place.count, &dy);
    }
    if constexpr (kSums != Sums::kBias) {
      own::Load<kAccess>(At<const T>(operands.X, place.X), x_stride, place.count, &x);
    }
  }

  __device__ __forceinline__ void Add(int i, A pivot, const Gate<A>& gate, A* first, A* second)
      const {
    A dy_value = 0;
    A x_value = 0;
    if constexpr (kSums != Sums::kMoments) {
      dy_value = Convert<A>(dy.values[i]);
    }
    if constexpr (kSums != Sums::kBias) {
      x_value = Convert<A>(x.values[i]);
    }
    AddTerm<kSums>(dy_value, x_value, pivot, gate, first, second);
  }
};

/// Sums over a block, to its first thread, in an order of their own.
__device__ void SumBlock(double* first, double* second) {
  constexpr int kWarps = kThreads / 32;
  __shared__ double sums[2][kWarps];
  for (int distance = 16; distance > 0; distance /= 2) {
    *first += __shfl_down_sync(0xFFFFFFFFU, *first, distance);
    *second += __shfl_down_sync(0xFFFFFFFFU, *second, distance);
  }
  if (threadIdx.x % 32 == 0) {
    sums[0][threadIdx.x / 32] = *first;
    sums[1][threadIdx.x / 32] = *second;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int warp = 1; warp < kWarps; ++warp) {
      *first += sums[0][warp];
      *second += sums[1][warp];
    }
  }
  // The next channel's sums must not overwrite these.
  __syncthreads();
}

__device__ void
StorePartial(const Walk& walk, std::int64_t place, double first, double second, double* partials) {
  const std::int64_t at = blockIdx.y * walk.places + place;
  partials[at] = first;
  partials[walk.slices * walk.places + at] = second;
}

/// A thread's sums of a channel along rows.
template <Sums kSums, typename T>
struct RowSums {
  using A = Accumulator<T>;
  template <int N>
  using Elements = Terms<kSums, T, N>;

  const Operands& operands;
  A pivot;
  Gate<A> gate;
  A first = 0;
  A second = 0;

  template <Access kAccess, int N>
  __device__ __forceinline__ void Load(const Place& place, Terms<kSums, T, N>* terms) const {
    terms->template Load<kAccess>(
        operands, place, operands.dY.strides[kInner], operands.X.strides[kInner]);
  }

  template <Access kAccess, int N>
  __device__ __forceinline__ void Use(const Terms<kSums, T, N>& terms) {
    A of_place_first = 0;
    A of_place_second = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      terms.Add(i, pivot, gate, &of_place_first, &of_place_second);
    }
    first += of_place_first;
    second += of_place_second;
  }
};

/// A block for each channel and slice; its threads along rows.
template <Sums kSums, typename T>
__device__ void SumRows(
    const Walk& walk,
    const Operands& operands,
    const Normalization& normalization,
    double* partials) {
  constexpr int V = kVector<T>;
  const Operand& leader = kSums == Sums::kBias ? operands.dY : operands.X;
  for (std::int64_t channel = blockIdx.x; channel < walk.channels; channel += gridDim.x) {
    RowSums<kSums, T> sums = {
        operands, Pivot<kSums, T>(walk, operands, normalization, channel),
        GateOf<kSums, T>(normalization, channel)};
    Rows<V> rows(walk, operands, leader, channel, blockIdx.y);
    VisitRows<kSumBatch<kSums, V>>(walk, rows, sums);
    double first = sums.first;
    double second = sums.second;
    SumBlock(&first, &second);
    if (threadIdx.x == 0) {
      StorePartial(walk, channel, first, second, partials);
    }
  }
}

/// The pivots and gates of a tile's columns, in shared memory, at PlaceInTile: registers are for
/// sums.
template <Sums kSums, typename T, int V>
struct Tile {
  static constexpr int kColumns = kSums == Sums::kReluGradient ? kMaxWidth * V : 1;
  Accumulator<T> pivots[kMaxWidth * V];
  Accumulator<T> factors[kColumns];
  Accumulator<T> shifts[kColumns];

  __device__ void SetGate(int place, const Gate<Accumulator<T>>& gate) {
    if constexpr (kSums == Sums::kReluGradient) {
      factors[place] = gate.factor;
      shifts[place] = gate.shift;
    }
  }
  __device__ __forceinline__ Gate<Accumulator<T>> GateAt(int place) const {
    if constexpr (kSums == Sums::kReluGradient) {
      return {factors[place], shifts[place]};
    } else {
      return {};
    }
  }
};

template <Sums kSums, typename T, int V>
__device__ __forceinline__ void FillTile(
    const Walk& walk,
    const Operands& operands,
    const Normalization& normalization,
    Tile<kSums, T, V>* tile) {
  FillPlaces<Accumulator<T>, V>(walk, [&](int place, std::int64_t channel) {
    tile->pivots[place] = Pivot<kSums, T>(walk, operands, normalization, channel);
    tile->SetGate(place, GateOf<kSums, T>(normalization, channel));
  });
}

/// V columns' sums over a thread's steps.
template <Sums kSums, typename T, int V>
struct ColumnSums {
  using A = Accumulator<T>;
  Columns<V> columns;
  const Tile<kSums, T, V>& tile;
  A pivot[V];
  A first[V];
  A second[V];

  __device__ __forceinline__
  ColumnSums(const Walk& walk, const Operands& operands, const Tile<kSums, T, V>& the_tile)
      : columns(walk, operands), tile(the_tile), pivot{}, first{}, second{} {
    if (columns.present()) {
#pragma unroll
      for (int i = 0; i < V; ++i) {
        pivot[i] = tile.pivots[PlaceInTile<A, V>(LaneX(walk), i)];
      }
    }
  }

  template <int kBatch>
  __device__ __forceinline__ void Visit(StepPlaces<V, false>* places, int count) {
    const Operands& operands = columns.operands;
    Terms<kSums, T, V> batch[kBatch];
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      batch[j].template Load<Access::kMostlyVectors>(
          operands, places->Next(count), ColumnStride<V>(operands.dY), ColumnStride<V>(operands.X));
    }
    Add(batch, count);
  }

  /// Adds what was loaded; the first `count` of the columns.
  template <int kBatch>
  __device__ __forceinline__ void Add(const Terms<kSums, T, V> (&batch)[kBatch], int count) {
#pragma unroll
    for (int i = 0; i < V; ++i) {
      if (kSums == Sums::kReluGradient && i % 4 == 0) {
        // Keeps the compiler from holding the gates of all columns at once.
        asm volatile("" ::: "memory");
      }
      const int place = PlaceInTile<A, V>(LaneX(columns.walk), i);
      const Gate<A> gate = tile.GateAt(place);
      // There are registers for it where there are no gates.
      const A the_pivot = kSums == Sums::kReluGradient ? tile.pivots[place] : pivot[i];
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        if (i < count) {
          batch[j].Add(i, the_pivot, gate, &first[i], &second[i]);
        }
      }
    }
  }
};

/// Both sums of a block's threads, V columns each.
template <typename A, int V>
using ThreadSums = A[2][kThreads * V];

/// Sums over what the block's threads have of each place of its tile, and calls
/// done(place, first, second). `sums` may be where the tile is: nobody reads that any more.
template <typename A, int V, typename Done>
__device__ __forceinline__ void SumTile(
    const Walk& walk,
    const A (&first)[V],
    const A (&second)[V],
    ThreadSums<A, V>& sums,
    const Done& done) {
  __syncthreads();
#pragma unroll
  for (int i = 0; i < V; ++i) {
    sums[0][threadIdx.x * V + i] = first[i];
    sums[1][threadIdx.x * V + i] = second[i];
  }
  __syncthreads();
  const int tile = walk.width * V;
  const int run = static_cast<int>(walk.run);
  // A channel's columns of a place lie side by side, or where all are in one tile as far apart as
  // there are channels.
  const int repeats = static_cast<int>(Divide(walk.columns, walk.places)) / run;
  const int places = tile / (run * repeats);
  const int apart = repeats > 1 ? places : 1;
  const int columns = run * repeats;
  const int terms = LanesY(walk) * columns;
  // So many threads share a place that few places still use the whole block.
  int share = 1;
  while (share < 32 && 2 * share * places <= kThreads) {
    share *= 2;
  }
  for (int begin = 0; begin < places * share; begin += kThreads) {
    const int local = (begin + static_cast<int>(threadIdx.x)) / share;
    const int part = static_cast<int>(threadIdx.x) % share;
    double place_first = 0;
    double place_second = 0;
    for (int term = part; local < places && term < terms; term += share) {
      const int lane = term / columns;
      const int at = lane * tile + local * run + (term - lane * columns) * apart;
      place_first += sums[0][at];
      place_second += sums[1][at];
    }
    for (int distance = share / 2; distance > 0; distance /= 2) {
      place_first += __shfl_down_sync(0xFFFFFFFFU, place_first, distance, share);
      place_second += __shfl_down_sync(0xFFFFFFFFU, place_second, distance, share);
    }
    const std::int64_t place = static_cast<std::int64_t>(blockIdx.x) * places + local;
    if (part == 0 && local < places && place < walk.places) {
      done(place, place_first, place_second);
    }
  }
}

/// A block for each tile of columns and slice.
template <Sums kSums, typename T, int V, typename Done>
__device__ __forceinline__ void SumColumns(
    const Walk& walk,
    const Operands& operands,
    const Normalization& normalization,
    const Done& done) {
  __shared__ Tile<kSums, T, V> tile;
  __shared__ ThreadSums<Accumulator<T>, V> thread_sums;
  FillTile(walk, operands, normalization, &tile);
  ColumnSums<kSums, T, V> sums(walk, operands, tile);
  ForEachPlace<kSumBatch<kSums, V>, false>(sums.columns, sums);
  SumTile<Accumulator<T>, V>(walk, sums.first, sums.second, thread_sums, done);
}

template <Sums kSums, typename T, int V>
__device__ void SumColumnSlices(
    const Walk& walk,
    const Operands& operands,
    const Normalization& normalization,
    double* partials) {
  SumColumns<kSums, T, V>(
      walk, operands, normalization, [&](std::int64_t place, double first, double second) {
        StorePartial(walk, place, first, second, partials);
      });
}

}  // namespace
}  // namespace gradsmith::batch_norm::own

#endif  // GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_SUMS_CUH_
