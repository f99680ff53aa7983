#include <cstring>

#include "batch_norm/cuda/arguments.h"
#include "cuda/kernels/element.cuh"

/// Batch normalization in three steps: sums over slices of each channel, what they come to, and a
/// map over all elements; or all in one launch, where blocks have channels to themselves. See
/// batch_norm/cuda/own.h.
///
/// X is read less a number near its channel's mean, its pivot: squares then do not cancel, and the
/// difference of two floats that are close is exact. Threads sum in the accumulator's type, all
/// beyond them is in double.
namespace gradsmith::batch_norm::own {
namespace {

using cuda::Accumulator;
using cuda::Convert;
using cuda::LoadElement;

template <typename T>
constexpr int kVector = kVectorBytes / static_cast<int>(sizeof(T));

__device__ std::int64_t Max(std::int64_t a, std::int64_t b) {
  return a > b ? a : b;
}
__device__ std::int64_t Min(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}

// ---------------------------------------------------------------------------------------------
// Elements
// ---------------------------------------------------------------------------------------------

/// V elements as they lie in memory: converted where they are used, so that no load waits for the
/// one before.
template <typename T, int V>
struct alignas(V * sizeof(T)) Pack {
  T values[V];
};

template <typename T>
__device__ __forceinline__ bool IsVector(const T* data, std::int64_t stride, int count) {
  return count * sizeof(T) == kVectorBytes && stride == 1 &&
         reinterpret_cast<std::uintptr_t>(data) % kVectorBytes == 0;
}

template <typename T, int V>
__device__ __forceinline__ void
LoadEach(const T* from, std::int64_t stride, int count, Pack<T, V>* to) {
#pragma unroll
  for (int i = 0; i < V; ++i) {
    to->values[i] = i < count ? from[i * stride] : Convert<T>(0.F);
  }
}

/// Out of line: what happens seldom must cost the rest neither registers nor code.
template <typename T, int V>
__device__ __noinline__ Pack<T, V> LoadApart(const T* from, int count) {
  Pack<T, V> to;
  LoadEach(from, 1, count, &to);
  return to;
}

/// The first `count` of V elements; the others are zero. kRarely: they are seldom no vector.
template <bool kRarely, typename T, int V>
__device__ __forceinline__ void
Load(const T* from, std::int64_t stride, int count, Pack<T, V>* to) {
  if (V == kVector<T> && IsVector(from, stride, count)) {
    const uint4 packed = *reinterpret_cast<const uint4*>(from);
    memcpy(to, &packed, sizeof(packed));
  } else if (V > 1 && kRarely) {
    *to = LoadApart<T, V>(from, count);
  } else {
    LoadEach(from, stride, count, to);
  }
}

template <typename T, int V>
__device__ __forceinline__ void
StoreEach(const Pack<T, V>& from, std::int64_t stride, int count, T* to) {
#pragma unroll
  for (int i = 0; i < V; ++i) {
    if (i < count) {
      to[i * stride] = from.values[i];
    }
  }
}

template <typename T, int V>
__device__ __noinline__ void StoreApart(Pack<T, V> from, int count, T* to) {
  StoreEach(from, 1, count, to);
}

/// What is stored must not take the place of what the map has yet to read.
template <bool kRarely, typename T, int V>
__device__ __forceinline__ void
Store(const Pack<T, V>& from, std::int64_t stride, int count, T* to) {
  if (V == kVector<T> && IsVector(to, stride, count)) {
    uint4 packed;
    memcpy(&packed, &from, sizeof(packed));
    __stcs(reinterpret_cast<uint4*>(to), packed);
  } else if (V > 1 && kRarely) {
    StoreApart(from, count, to);
  } else {
    StoreEach(from, stride, count, to);
  }
}

__device__ double LoadParameter(const Parameter& parameter, std::int64_t channel) {
  return LoadElement(parameter.data, parameter.type, channel * parameter.stride);
}

__device__ void StoreParameter(const Parameter& parameter, std::int64_t channel, double value) {
  if (!parameter.present) {
    return;
  }
  const double sum = parameter.accumulate ? LoadParameter(parameter, channel) + value : value;
  const std::int64_t offset = channel * parameter.stride;
  switch (parameter.type) {
    case kFloat:
      static_cast<float*>(parameter.data)[offset] = Convert<float>(sum);
      break;
    case kDouble:
      static_cast<double*>(parameter.data)[offset] = sum;
      break;
    case kHalf:
      static_cast<__half*>(parameter.data)[offset] = Convert<__half>(sum);
      break;
    default:
      static_cast<__nv_bfloat16*>(parameter.data)[offset] = Convert<__nv_bfloat16>(sum);
      break;
  }
}

// ---------------------------------------------------------------------------------------------
// Walks
// ---------------------------------------------------------------------------------------------

struct Range {
  std::int64_t begin;
  std::int64_t end;
};

__device__ Range SliceOf(std::int64_t count, std::int64_t slices, std::int64_t slice) {
  const std::int64_t length = (count + slices - 1) / slices;
  const std::int64_t begin = Min(slice * length, count);
  return {begin, Min(begin + length, count)};
}

/// 32 bits divide many times faster than 64.
__device__ std::int64_t Divide(std::int64_t a, std::int64_t b) {
  if (((a | b) >> 32) == 0) {
    return static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b);
  }
  return a / b;
}

/// Where a row of channel 0 begins.
__device__ std::int64_t RowOffset(const Walk& walk, const Operand& operand, std::int64_t row) {
  if (walk.counts[0] == 1 && walk.counts[1] == 1) {
    return row * operand.strides[2];
  }
  const std::int64_t middle = Divide(row, walk.counts[2]);
  const std::int64_t outer = Divide(middle, walk.counts[1]);
  return (row - middle * walk.counts[2]) * operand.strides[2] +
         (middle - outer * walk.counts[1]) * operand.strides[1] + outer * operand.strides[0];
}

__device__ std::int64_t ChannelOf(const Walk& walk, std::int64_t column) {
  if (walk.columns == walk.channels) {
    return column;
  }
  const std::int64_t place = Divide(column, walk.run);
  return place - Divide(place, walk.channels) * walk.channels;
}

/// Where a column lies in each step.
__device__ std::int64_t
ColumnOffset(const Walk& walk, const Operand& operand, std::int64_t column) {
  if (walk.run == 1) {
    return column * operand.channel_stride;
  }
  const std::int64_t place = Divide(column, walk.run);
  return place * operand.channel_stride + column - place * walk.run;
}

template <typename T>
__device__ T* At(const Operand& operand, std::int64_t offset) {
  return static_cast<T*>(operand.data) + offset;
}

__device__ int LaneX(const Walk& walk) {
  return static_cast<int>(threadIdx.x) % walk.width;
}
/// Not below LanesY of threads that are left over.
__device__ int LaneY(const Walk& walk) {
  return static_cast<int>(threadIdx.x) / walk.width;
}
__device__ int LanesY(const Walk& walk) {
  return kThreads / walk.width;
}

/// Some of V neighbours of each tensor; `count` may be below one. Absent tensors have zeros.
struct Place {
  std::int64_t dY;
  std::int64_t X;
  std::int64_t output;
  int count;
};

/// The places of up to V elements that a thread has in the rows of the block's slice of a channel.
/// They begin where `leader` has offsets that are multiples of V, whatever its address: the order
/// of sums depends on strides only, and with the address aligned so are they.
template <int V>
class RowPlaces {
 public:
  __device__
  RowPlaces(const Walk& walk, const Operands& operands, const Operand& leader, std::int64_t channel)
      : walk_(walk), operands_(operands), leader_(leader), channel_(channel) {
    const std::int64_t rows = walk.counts[0] * walk.counts[1] * walk.counts[2];
    items_ = SliceOf(rows * walk.pieces, walk.slices, blockIdx.y);
    items_.begin += LaneY(walk);
  }

  /// An empty place once there are no more.
  __device__ __forceinline__ Place Next() {
    if (round_ >= end_) {
      if (!more()) {
        return {0, 0, 0, 0};
      }
      OpenItem();
    }
    const std::int64_t chunk = round_ + LaneX(walk_) * V;
    const std::int64_t first = Max(chunk, begin_);
    round_ += walk_.width * V;
    return {
        OffsetOf(operands_.dY, first), OffsetOf(operands_.X, first),
        OffsetOf(operands_.output, first), static_cast<int>(Min(chunk + V, end_) - first)};
  }

  __device__ bool more() const { return round_ < end_ || items_.begin < items_.end; }

 private:
  __device__ std::int64_t OffsetOf(const Operand& operand, std::int64_t inner) const {
    return channel_ * operand.channel_stride + RowOffset(walk_, operand, row_) +
           inner * operand.strides[kInner];
  }

  /// An item is a row or a piece of one.
  __device__ void OpenItem() {
    row_ = walk_.pieces == 1 ? items_.begin : Divide(items_.begin, walk_.pieces);
    begin_ = (items_.begin - row_ * walk_.pieces) * kPieceElements;
    end_ = Min(begin_ + kPieceElements, walk_.counts[kInner]);
    const bool neighbours = leader_.strides[kInner] == 1;
    round_ = begin_ - (neighbours ? OffsetOf(leader_, begin_) & (V - 1) : 0);
    items_.begin += LanesY(walk_);
  }

  const Walk& walk_;
  const Operands& operands_;
  const Operand& leader_;
  std::int64_t channel_;
  Range items_;
  std::int64_t row_ = 0;
  std::int64_t begin_ = 0;
  std::int64_t end_ = 0;
  std::int64_t round_ = 0;
};

/// From one of a thread's columns to the next.
template <int V>
__device__ std::int64_t ColumnStride(const Operand& operand) {
  return V == 1 ? operand.channel_stride : 1;
}

/// V columns of the tensors.
template <int V>
struct Columns {
  const Walk& walk;
  const Operands& operands;
  std::int64_t first;

  __device__ Columns(const Walk& the_walk, const Operands& the_operands)
      : walk(the_walk),
        operands(the_operands),
        first((static_cast<std::int64_t>(blockIdx.x) * the_walk.width + LaneX(the_walk)) * V) {}

  /// Whether this thread has any. V divides their number.
  __device__ bool present() const { return first < walk.columns && LaneY(walk) < LanesY(walk); }
  /// Those of the step after the last, as one thread has it.
  __device__ int tail() const {
    const bool mine = present() && LaneY(walk) == 0 && blockIdx.y == 0;
    return mine ? static_cast<int>(Min(walk.tail - first, V)) : 0;
  }
};

/// A thread's steps, LanesY apart. A map goes backwards: what was read last is still in the cache.
/// To go on takes no division: it would cost more than the rest.
template <int V, bool kBackwards>
class StepPlaces {
 public:
  __device__ StepPlaces(const Columns<V>& columns, std::int64_t step)
      : walk_(columns.walk), operands_(columns.operands) {
    const std::int64_t row =
        walk_.counts[kInner] == walk_.steps ? 0 : Divide(step, walk_.counts[kInner]);
    const std::int64_t middle = Divide(row, walk_.counts[2]);
    inner_ = step - row * walk_.counts[kInner];
    middle_ = static_cast<int>(row - middle * walk_.counts[2]);
    outer_ = static_cast<int>(middle - Divide(middle, walk_.counts[1]) * walk_.counts[1]);
    const auto offset = [&](const Operand& operand) {
      return ColumnOffset(walk_, operand, columns.first) + RowOffset(walk_, operand, row) +
             inner_ * operand.strides[kInner];
    };
    place_ = {offset(operands_.dY), offset(operands_.X), offset(operands_.output), 0};
  }

  __device__ __forceinline__ Place Next(int count) {
    Place result = place_;
    result.count = count;
    Move(operands_.dY.ahead, operands_.X.ahead, operands_.output.ahead);
    inner_ += kBackwards ? -LanesY(walk_) : LanesY(walk_);
    while (kBackwards ? inner_ < 0 : inner_ >= walk_.counts[kInner]) {
      NextRow();
    }
    return result;
  }

 private:
  __device__ __forceinline__ void Move(std::int64_t dY, std::int64_t X, std::int64_t output) {
    place_.dY += kBackwards ? -dY : dY;
    place_.X += kBackwards ? -X : X;
    place_.output += kBackwards ? -output : output;
  }

  __device__ __forceinline__ void NextRow() {
    inner_ += kBackwards ? walk_.counts[kInner] : -walk_.counts[kInner];
    const int carry = !Carry(&middle_, walk_.counts[2]) ? 0
                      : Carry(&outer_, walk_.counts[1]) ? 2
                                                        : 1;
    Move(
        operands_.dY.to_next_row[carry], operands_.X.to_next_row[carry],
        operands_.output.to_next_row[carry]);
  }

  /// Whether it was the last.
  __device__ __forceinline__ bool Carry(int* index, std::int64_t count) {
    const bool last = *index == (kBackwards ? 0 : count - 1);
    *index = last ? static_cast<int>(kBackwards ? count - 1 : 0) : *index + (kBackwards ? -1 : 1);
    return last;
  }

  const Walk& walk_;
  const Operands& operands_;
  std::int64_t inner_ = 0;
  int middle_ = 0;
  int outer_ = 0;
  Place place_{};
};

/// Calls visitor.template Visit<n>(&places, count) for n places of a thread's columns, until all of
/// the block's slice have been visited: n at once so that their loads do not wait for each other.
template <int kBatch, bool kBackwards, int V, typename Visitor>
__device__ __forceinline__ void ForEachPlace(const Columns<V>& columns, Visitor& visitor) {
  if (!columns.present()) {
    return;
  }
  const Walk& walk = columns.walk;
  const std::int64_t slice = kBackwards ? walk.slices - 1 - blockIdx.y : blockIdx.y;
  const Range steps = SliceOf(walk.steps, walk.slices, slice);
  const std::int64_t lane = LaneY(walk);
  std::int64_t left = Divide(steps.end - steps.begin - lane + LanesY(walk) - 1, LanesY(walk));
  StepPlaces<V, kBackwards> places(columns, kBackwards ? steps.end - 1 - lane : steps.begin + lane);
  for (; left >= kBatch; left -= kBatch) {
    visitor.template Visit<kBatch>(&places, V);
  }
  for (; left > 0; --left) {
    visitor.template Visit<1>(&places, V);
  }
  if (const int tail = columns.tail(); tail > 0) {
    StepPlaces<V, kBackwards> after(columns, walk.steps);
    visitor.template Visit<1>(&after, tail);
  }
}

// ---------------------------------------------------------------------------------------------
// Sums
// ---------------------------------------------------------------------------------------------

/// What is summed.
enum class Sums {
  kMoments,   ///< X - pivot and its square
  kGradient,  ///< dY and dY * (X - pivot)
  kBias       ///< dY
};

__device__ double MedianOf(double a, double b, double c) {
  const double low = a < b ? a : b;
  const double high = a < b ? b : a;
  return c < low ? low : (c > high ? high : c);
}

/// What a thread loads of a tensor before it uses the first of it: as much as there are registers
/// for.
template <Sums kSums, int V>
constexpr int kSumBatch = kSums == Sums::kGradient && V > 1 ? 2 : 4;

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

template <Sums kSums, typename T>
__device__ Accumulator<T>
Pivot(const Walk& walk, const Operands& operands, const Parameter& mean, std::int64_t channel) {
  if constexpr (kSums == Sums::kMoments) {
    return static_cast<Accumulator<T>>(MedianSample(walk, operands.X, kTypeOf<T>, channel));
  } else if constexpr (kSums == Sums::kGradient) {
    return static_cast<Accumulator<T>>(LoadParameter(mean, channel));
  } else {
    return 0;
  }
}

template <Sums kSums, typename A>
__device__ __forceinline__ void AddTerm(A dy, A x, A pivot, A* first, A* second) {
  if constexpr (kSums == Sums::kMoments) {
    const A deviation = x - pivot;
    *first += deviation;
    *second += deviation * deviation;
  } else {
    *first += dy;
    if constexpr (kSums == Sums::kGradient) {
      *second += dy * (x - pivot);
    }
  }
}

/// The elements that the sums are of.
template <Sums kSums, typename T, int V, bool kColumns>
struct Terms {
  using A = Accumulator<T>;
  Pack<T, V> dy;
  Pack<T, V> x;

  __device__ __forceinline__ void Load(
      const Operands& operands,
      const Place& place,
      std::int64_t dy_stride,
      std::int64_t x_stride) {
    if constexpr (kSums != Sums::kMoments) {
      own::Load<kColumns>(At<const T>(operands.dY, place.dY), dy_stride, place.count, &dy);
    }
    if constexpr (kSums != Sums::kBias) {
      own::Load<kColumns>(At<const T>(operands.X, place.X), x_stride, place.count, &x);
    }
  }

  __device__ __forceinline__ void Add(int i, A pivot, A* first, A* second) const {
    if constexpr (kSums == Sums::kMoments) {
      AddTerm<kSums>(A(0), Convert<A>(x.values[i]), pivot, first, second);
    } else if constexpr (kSums == Sums::kGradient) {
      AddTerm<kSums>(Convert<A>(dy.values[i]), Convert<A>(x.values[i]), pivot, first, second);
    } else {
      AddTerm<kSums>(Convert<A>(dy.values[i]), A(0), pivot, first, second);
    }
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

/// `place` counts the channels, as often as they are in the columns.
__device__ void
StorePartial(const Walk& walk, std::int64_t place, double first, double second, double* partials) {
  const std::int64_t places = walk.columns / walk.run;
  const std::int64_t at = blockIdx.y * places + place;
  partials[at] = first;
  partials[walk.slices * places + at] = second;
}

/// A block for each channel and slice; its threads along rows.
template <Sums kSums, typename T>
__device__ void
SumRows(const Walk& walk, const Operands& operands, const Parameter& mean, double* partials) {
  using A = Accumulator<T>;
  constexpr int V = kVector<T>;
  constexpr int kBatch = kSumBatch<kSums, V>;
  const Operand& leader = kSums == Sums::kBias ? operands.dY : operands.X;
  for (std::int64_t channel = blockIdx.x; channel < walk.channels; channel += gridDim.x) {
    const A pivot = Pivot<kSums, T>(walk, operands, mean, channel);
    A first = 0;
    A second = 0;
    for (RowPlaces<V> places(walk, operands, leader, channel); places.more();) {
      Terms<kSums, T, V, false> batch[kBatch];
      int counts[kBatch];
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        const Place place = places.Next();
        counts[j] = place.count;
        batch[j].Load(operands, place, operands.dY.strides[kInner], operands.X.strides[kInner]);
      }
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        A chunk_first = 0;
        A chunk_second = 0;
#pragma unroll
        for (int i = 0; i < V; ++i) {
          if (i < counts[j]) {
            batch[j].Add(i, pivot, &chunk_first, &chunk_second);
          }
        }
        first += chunk_first;
        second += chunk_second;
      }
    }
    double block_first = first;
    double block_second = second;
    SumBlock(&block_first, &block_second);
    if (threadIdx.x == 0) {
      StorePartial(walk, channel, block_first, block_second, partials);
    }
  }
}

/// V columns' sums over a thread's steps.
template <Sums kSums, typename T, int V>
struct ColumnSums {
  using A = Accumulator<T>;
  Columns<V> columns;
  A pivot[V];
  A first[V];
  A second[V];

  template <int kBatch>
  __device__ __forceinline__ void Visit(StepPlaces<V, false>* places, int count) {
    const Operands& operands = columns.operands;
    Terms<kSums, T, V, true> batch[kBatch];
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      batch[j].Load(
          operands, places->Next(count), ColumnStride<V>(operands.dY), ColumnStride<V>(operands.X));
    }
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
#pragma unroll
      for (int i = 0; i < V; ++i) {
        if (i < count) {
          batch[j].Add(i, pivot[i], &first[i], &second[i]);
        }
      }
    }
  }
};

/// Sums over what the block's threads have of each place of its tile, and calls
/// done(place, first, second).
template <typename A, int V, typename Done>
__device__ __forceinline__ void
SumTile(const Walk& walk, const A (&first)[V], const A (&second)[V], const Done& done) {
  __shared__ A sums[2][kThreads * V];
#pragma unroll
  for (int i = 0; i < V; ++i) {
    sums[0][threadIdx.x * V + i] = first[i];
    sums[1][threadIdx.x * V + i] = second[i];
  }
  __syncthreads();
  const int tile = walk.width * V;
  const int run = static_cast<int>(walk.run);
  const int places = tile / run;
  const int terms = LanesY(walk) * run;
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
      const int lane = term / run;
      const int at = lane * tile + local * run + term - lane * run;
      place_first += sums[0][at];
      place_second += sums[1][at];
    }
    for (int distance = share / 2; distance > 0; distance /= 2) {
      place_first += __shfl_down_sync(0xFFFFFFFFU, place_first, distance, share);
      place_second += __shfl_down_sync(0xFFFFFFFFU, place_second, distance, share);
    }
    const std::int64_t place = static_cast<std::int64_t>(blockIdx.x) * places + local;
    if (part == 0 && local < places && place * run < walk.columns) {
      done(place, place_first, place_second);
    }
  }
}

/// A block for each tile of columns and slice.
template <Sums kSums, typename T, int V, typename Done>
__device__ __forceinline__ void
SumColumns(const Walk& walk, const Operands& operands, const Parameter& mean, const Done& done) {
  // Side by side: one after the other, each thread's own would be most of a small problem's time.
  __shared__ Accumulator<T> pivots[kMaxWidth * V];
  const int tile = walk.width * V;
  for (int i = static_cast<int>(threadIdx.x); i < tile; i += kThreads) {
    const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * tile + i;
    if (column < walk.columns) {
      pivots[i] = Pivot<kSums, T>(walk, operands, mean, ChannelOf(walk, column));
    }
  }
  __syncthreads();
  ColumnSums<kSums, T, V> sums = {Columns<V>(walk, operands), {}, {}, {}};
  if (sums.columns.present()) {
#pragma unroll
    for (int i = 0; i < V; ++i) {
      sums.pivot[i] = pivots[LaneX(walk) * V + i];
    }
    ForEachPlace<kSumBatch<kSums, V>, false>(sums.columns, sums);
  }
  SumTile(walk, sums.first, sums.second, done);
}

template <Sums kSums, typename T, int V>
__device__ void SumColumnSlices(
    const Walk& walk,
    const Operands& operands,
    const Parameter& mean,
    double* partials) {
  SumColumns<kSums, T, V>(
      walk, operands, mean, [&](std::int64_t place, double first, double second) {
        StorePartial(walk, place, first, second, partials);
      });
}

// ---------------------------------------------------------------------------------------------
// What the sums come to
// ---------------------------------------------------------------------------------------------

/// What a map needs of a channel: rows of the coefficients, one for each channel.
///   Y  = (X - pivot) * factor + shift
///   dX = dY * factor + (X - pivot) * slope + shift
enum Coefficient { kPivot, kFactor, kShift, kSlope };

__device__ void StoreCoefficients(
    const Walk& walk,
    std::int64_t channel,
    double pivot,
    double factor,
    double shift,
    double slope,
    double* coefficients) {
  coefficients[kPivot * walk.channels + channel] = pivot;
  coefficients[kFactor * walk.channels + channel] = factor;
  coefficients[kShift * walk.channels + channel] = shift;
  coefficients[kSlope * walk.channels + channel] = slope;
}

/// The number that X - mean is taken from: what is left of the mean goes into the shift.
__device__ double RoundPivot(double mean, int type) {
  return type == kDouble ? mean : static_cast<double>(static_cast<float>(mean));
}

/// Calls finish(channel, first, second) with the sums over all of a channel's partial sums.
template <typename Finish>
__device__ void ForEachSum(const Walk& walk, const double* partials, const Finish& finish) {
  __shared__ double sums[2][kFinishLanes][kFinishChannels];
  const int x = static_cast<int>(threadIdx.x) % kFinishChannels;
  const int y = static_cast<int>(threadIdx.x) / kFinishChannels;
  const std::int64_t rows = walk.slices * (walk.columns / walk.run) / walk.channels;
  const std::int64_t step = std::int64_t{gridDim.x} * kFinishChannels;
  for (std::int64_t begin = std::int64_t{blockIdx.x} * kFinishChannels; begin < walk.channels;
       begin += step) {
    const std::int64_t channel = begin + x;
    double first = 0;
    double second = 0;
    if (channel < walk.channels) {
#pragma unroll 4
      for (std::int64_t row = y; row < rows; row += kFinishLanes) {
        first += partials[row * walk.channels + channel];
        second += partials[(rows + row) * walk.channels + channel];
      }
    }
    sums[0][y][x] = first;
    sums[1][y][x] = second;
    for (int half = kFinishLanes / 2; half > 0; half /= 2) {
      __syncthreads();
      if (y < half) {
        sums[0][y][x] += sums[0][y + half][x];
        sums[1][y][x] += sums[1][y + half][x];
      }
    }
    if (y == 0 && channel < walk.channels) {
      finish(channel, sums[0][0][x], sums[1][0][x]);
    }
    __syncthreads();
  }
}

struct Moments {
  double mean;
  double deviation;  ///< sum of the squared deviations from the mean
};

/// From the sums of X - pivot and its square.
__device__ Moments
MomentsOf(const ForwardFinish& p, std::int64_t channel, double first, double second) {
  if (p.walk.samples == 0) {
    return {0, 0};
  }
  const auto m = static_cast<double>(p.walk.samples);
  const double deviation = second - first * first / m;
  // Rounding must not make it negative; a NaN stays one.
  return {MedianSample(p.walk, p.X, p.type, channel) + first / m, deviation < 0 ? 0 : deviation};
}

__device__ void
UpdateRunning(const ForwardFinish& p, std::int64_t channel, const Moments& moments) {
  const auto m = static_cast<double>(p.walk.samples);
  const double weight = p.walk.samples == 0 ? 1 : p.momentum;
  // These may stand in their inputs' memory: both are read before either is written.
  double mean = 0;
  double var = 0;
  if (p.new_running_mean.present) {
    mean = LoadParameter(p.running_mean, channel);
  }
  if (p.new_running_var.present) {
    var = LoadParameter(p.running_var, channel);
  }
  if (p.walk.samples > 0) {
    // One value has no variance.
    mean = weight * mean + (1 - weight) * moments.mean;
    var = weight * var + (1 - weight) * (moments.deviation / (m > 1 ? m - 1 : 1));
  }
  StoreParameter(p.new_running_mean, channel, mean);
  StoreParameter(p.new_running_var, channel, var);
}

__device__ void FinishForward(
    const ForwardFinish& p,
    std::int64_t channel,
    double first,
    double second,
    double* coefficients) {
  const Moments moments = MomentsOf(p, channel, first, second);
  const double m = p.walk.samples > 0 ? static_cast<double>(p.walk.samples) : 1;
  const double inv_std = 1 / sqrt(moments.deviation / m + p.epsilon);
  const double factor = LoadParameter(p.scale, channel) * inv_std;
  const double pivot = RoundPivot(moments.mean, p.type);
  const double shift = LoadParameter(p.bias, channel) - (moments.mean - pivot) * factor;
  StoreCoefficients(p.walk, channel, pivot, factor, shift, 0, coefficients);
  UpdateRunning(p, channel, moments);
  StoreParameter(p.saved_mean, channel, moments.mean);
  StoreParameter(p.saved_inv_std, channel, inv_std);
}

__device__ void FinishBackward(
    const BackwardFinish& p,
    std::int64_t channel,
    double dbias,
    double products,
    double* coefficients) {
  StoreParameter(p.dBias, channel, dbias);
  if (!p.products) {
    return;
  }
  if (p.walk.samples == 0) {
    // The sum of nothing is zero, also where saved_inv_std is the infinite 1 / sqrt(0 + 0).
    StoreParameter(p.dScale, channel, 0);
    return;
  }
  const double mean = LoadParameter(p.saved_mean, channel);
  const double inv_std = LoadParameter(p.saved_inv_std, channel);
  const double pivot = RoundPivot(mean, p.type);
  const double dscale = (products - (mean - pivot) * dbias) * inv_std;
  StoreParameter(p.dScale, channel, dscale);
  const auto m = static_cast<double>(p.walk.samples);
  const double factor = LoadParameter(p.scale, channel) * inv_std;
  const double slope = -factor * inv_std * dscale / m;
  const double shift = -factor * dbias / m - (mean - pivot) * slope;
  StoreCoefficients(p.walk, channel, pivot, factor, shift, slope, coefficients);
}

// ---------------------------------------------------------------------------------------------
// Maps
// ---------------------------------------------------------------------------------------------

enum class Map { kNormalize, kInputGradient };

template <Map kMap, int V>
constexpr int kMapBatch = V == 1 ? 4 : (kMap == Map::kNormalize ? 4 : 2) / (V == 8 ? 2 : 1);

template <Map kMap>
constexpr int kCoefficients = kMap == Map::kNormalize ? 3 : 4;

template <Map kMap, typename A>
__device__ __forceinline__ A Apply(const A (&c)[4], A dy, A x) {
  if constexpr (kMap == Map::kNormalize) {
    return (x - c[kPivot]) * c[kFactor] + c[kShift];
  } else {
    return dy * c[kFactor] + ((x - c[kPivot]) * c[kSlope] + c[kShift]);
  }
}

/// The elements that a map reads, and what it makes of them.
template <Map kMap, typename T, int V, bool kColumns>
struct MapElements {
  using A = Accumulator<T>;
  Place place;
  Pack<T, V> dy;
  Pack<T, V> x;
  Pack<T, V> result;

  __device__ __forceinline__ void Load(
      const Operands& operands,
      const Place& at,
      std::int64_t dy_stride,
      std::int64_t x_stride,
      std::int64_t stride) {
    place = at;
    if constexpr (kMap == Map::kInputGradient) {
      own::Load<kColumns>(At<const T>(operands.dY, at.dY), dy_stride, at.count, &dy);
    }
    own::Load<kColumns>(At<const T>(operands.X, at.X), x_stride, at.count, &x);
    if (Accumulates(operands)) {
      own::Load<kColumns>(At<const T>(operands.output, at.output), stride, at.count, &result);
    }
  }

  __device__ __forceinline__ void
  Apply(const Operands& operands, int i, const A (&coefficients)[4]) {
    A dy_value = 0;
    if constexpr (kMap == Map::kInputGradient) {
      dy_value = Convert<A>(dy.values[i]);
    }
    A value = own::Apply<kMap>(coefficients, dy_value, Convert<A>(x.values[i]));
    if (Accumulates(operands)) {
      value += Convert<A>(result.values[i]);
    }
    result.values[i] = Convert<T>(value);
  }

  __device__ __forceinline__ void Store(const Operands& operands, std::int64_t stride) const {
    own::Store<kColumns>(result, stride, place.count, At<T>(operands.output, place.output));
  }

 private:
  static __device__ bool Accumulates(const Operands& operands) {
    return kMap == Map::kInputGradient && operands.accumulate;
  }
};

template <Map kMap, typename T>
__device__ void MapRows(const Walk& walk, const Operands& operands, const double* coefficients) {
  using A = Accumulator<T>;
  constexpr int V = kVector<T>;
  constexpr int kBatch = kMapBatch<kMap, V>;
  const std::int64_t stride = operands.output.strides[kInner];
  for (std::int64_t channel = blockIdx.x; channel < walk.channels; channel += gridDim.x) {
    A of_channel[4];
#pragma unroll
    for (int k = 0; k < kCoefficients<kMap>; ++k) {
      of_channel[k] = static_cast<A>(coefficients[k * walk.channels + channel]);
    }
    for (RowPlaces<V> places(walk, operands, operands.output, channel); places.more();) {
      MapElements<kMap, T, V, false> batch[kBatch];
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        batch[j].Load(
            operands, places.Next(), operands.dY.strides[kInner], operands.X.strides[kInner],
            stride);
      }
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
#pragma unroll
        for (int i = 0; i < V; ++i) {
          batch[j].Apply(operands, i, of_channel);
        }
        batch[j].Store(operands, stride);
      }
    }
  }
}

/// The coefficients of a tile's columns, in shared memory: registers are for what is loaded.
template <typename T, int V>
using TileCoefficients = Accumulator<T>[4][kMaxWidth * V];

/// V columns of a thread's steps.
template <Map kMap, typename T, int V>
struct ColumnMap {
  using A = Accumulator<T>;
  Columns<V> columns;
  const TileCoefficients<T, V>& coefficients;

  template <int kBatch>
  __device__ __forceinline__ void Visit(StepPlaces<V, true>* places, int count) {
    const Operands& operands = columns.operands;
    const std::int64_t stride = ColumnStride<V>(operands.output);
    const int column = LaneX(columns.walk) * V;
    MapElements<kMap, T, V, true> batch[kBatch];
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      batch[j].Load(
          operands, places->Next(count), ColumnStride<V>(operands.dY), ColumnStride<V>(operands.X),
          stride);
    }
#pragma unroll
    for (int i = 0; i < V; ++i) {
      if (i % 4 == 0) {
        // Keeps the compiler from holding the coefficients of all columns at once.
        asm volatile("" ::: "memory");
      }
      A of_column[4];
#pragma unroll
      for (int k = 0; k < kCoefficients<kMap>; ++k) {
        of_column[k] = coefficients[k][column + i];
      }
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        batch[j].Apply(operands, i, of_column);
      }
    }
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      batch[j].Store(operands, stride);
    }
  }
};

template <Map kMap, typename T, int V>
__device__ __forceinline__ void
MapColumns(const Walk& walk, const Operands& operands, const double* coefficients) {
  using A = Accumulator<T>;
  __shared__ TileCoefficients<T, V> of_tile;
  const int tile = walk.width * V;
  for (int i = static_cast<int>(threadIdx.x); i < tile; i += kThreads) {
    const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * tile + i;
    if (column < walk.columns) {
      const std::int64_t channel = ChannelOf(walk, column);
#pragma unroll
      for (int k = 0; k < kCoefficients<kMap>; ++k) {
        of_tile[k][i] = static_cast<A>(coefficients[k * walk.channels + channel]);
      }
    }
  }
  __syncthreads();
  ColumnMap<kMap, T, V> map = {Columns<V>(walk, operands), of_tile};
  ForEachPlace<kMapBatch<kMap, V>, true>(map.columns, map);
}

// ---------------------------------------------------------------------------------------------
// All in one
// ---------------------------------------------------------------------------------------------

/// A block has all of its channels: their sums are theirs as soon as it has been through them, and
/// what it maps it finds in the cache.
template <typename T, int V>
__device__ void
WholeForward(const ForwardFinish& finish, const Operands& operands, double* coefficients) {
  SumColumns<Sums::kMoments, T, V>(
      finish.walk, operands, {}, [&](std::int64_t channel, double first, double second) {
        FinishForward(finish, channel, first, second, coefficients);
      });
  __syncthreads();
  MapColumns<Map::kNormalize, T, V>(finish.walk, operands, coefficients);
}

template <typename T, int V>
__device__ void
WholeBackward(const BackwardFinish& finish, const Operands& operands, double* coefficients) {
  SumColumns<Sums::kGradient, T, V>(
      finish.walk, operands, finish.saved_mean,
      [&](std::int64_t channel, double first, double second) {
        FinishBackward(finish, channel, first, second, coefficients);
      });
  __syncthreads();
  MapColumns<Map::kInputGradient, T, V>(finish.walk, operands, coefficients);
}

}  // namespace
}  // namespace gradsmith::batch_norm::own

// ---------------------------------------------------------------------------------------------
// Kernels
// ---------------------------------------------------------------------------------------------

// Calls in their arguments' list: one kernel for each path and element type.
#define GRADSMITH_SUM_KERNEL(name, function)                                                \
  extern "C" __global__ void __launch_bounds__(own::kThreads, own::kResidentBlocks)         \
      name(own::Walk walk, own::Operands operands, own::Parameter mean, double* partials) { \
    function(walk, operands, mean, partials);                                               \
  }
#define GRADSMITH_MAP_KERNEL(name, function)                                        \
  extern "C" __global__ void __launch_bounds__(own::kThreads, own::kResidentBlocks) \
      name(own::Walk walk, own::Operands operands, const double* coefficients) {    \
    function(walk, operands, coefficients);                                         \
  }
#define GRADSMITH_WHOLE_KERNEL(name, Finish, function)                              \
  extern "C" __global__ void __launch_bounds__(own::kThreads, own::kResidentBlocks) \
      name(own::Finish finish, own::Operands operands, double* coefficients) {      \
    function(finish, operands, coefficients);                                       \
  }
#define GRADSMITH_SUM_KERNELS(sums, suffix, T, kSums)                                 \
  GRADSMITH_SUM_KERNEL(gradsmith_bn_##sums##_rows_##suffix, (own::SumRows<kSums, T>)) \
  GRADSMITH_SUM_KERNEL(                                                               \
      gradsmith_bn_##sums##_columns_##suffix, (own::SumColumnSlices<kSums, T, 1>))    \
  GRADSMITH_SUM_KERNEL(                                                               \
      gradsmith_bn_##sums##_vectors_##suffix, (own::SumColumnSlices<kSums, T, own::kVector<T>>))
#define GRADSMITH_MAP_KERNELS(map, suffix, T, kMap)                                          \
  GRADSMITH_MAP_KERNEL(gradsmith_bn_##map##_rows_##suffix, (own::MapRows<kMap, T>))          \
  GRADSMITH_MAP_KERNEL(gradsmith_bn_##map##_columns_##suffix, (own::MapColumns<kMap, T, 1>)) \
  GRADSMITH_MAP_KERNEL(                                                                      \
      gradsmith_bn_##map##_vectors_##suffix, (own::MapColumns<kMap, T, own::kVector<T>>))
#define GRADSMITH_KERNELS(suffix, T)                                                         \
  GRADSMITH_SUM_KERNELS(moments, suffix, T, own::Sums::kMoments)                             \
  GRADSMITH_SUM_KERNELS(gradient_sums, suffix, T, own::Sums::kGradient)                      \
  GRADSMITH_SUM_KERNELS(bias_sums, suffix, T, own::Sums::kBias)                              \
  GRADSMITH_MAP_KERNELS(normalize, suffix, T, own::Map::kNormalize)                          \
  GRADSMITH_MAP_KERNELS(input_gradient, suffix, T, own::Map::kInputGradient)                 \
  GRADSMITH_WHOLE_KERNEL(                                                                    \
      gradsmith_bn_forward_##suffix, ForwardFinish, (own::WholeForward<T, own::kVector<T>>)) \
  GRADSMITH_WHOLE_KERNEL(                                                                    \
      gradsmith_bn_backward_##suffix, BackwardFinish, (own::WholeBackward<T, own::kVector<T>>))

namespace own = gradsmith::batch_norm::own;

GRADSMITH_KERNELS(f32, float)
GRADSMITH_KERNELS(f64, double)
GRADSMITH_KERNELS(f16, __half)
GRADSMITH_KERNELS(bf16, __nv_bfloat16)

#define GRADSMITH_FINISH_KERNEL(name, Finish, function)                                 \
  extern "C" __global__ void __launch_bounds__(own::kFinishChannels* own::kFinishLanes) \
      name(own::Finish finish, const double* partials, double* coefficients) {          \
    own::ForEachSum(                                                                    \
        finish.walk, partials, [&](std::int64_t channel, double first, double second) { \
          own::function(finish, channel, first, second, coefficients);                  \
        });                                                                             \
  }

GRADSMITH_FINISH_KERNEL(gradsmith_bn_finish_forward, ForwardFinish, FinishForward)
GRADSMITH_FINISH_KERNEL(gradsmith_bn_finish_backward, BackwardFinish, FinishBackward)
