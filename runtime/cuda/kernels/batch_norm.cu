#include <cstring>

#include "batch_norm/cuda/arguments.h"
#include "cuda/kernels/element.cuh"

/// Batch normalization in three steps: sums over slices of each channel, what they come to, and a
/// map over all elements. See batch_norm/cuda/own.h.
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

template <typename T>
__device__ bool IsVector(const T* data, std::int64_t stride, int count) {
  return count * sizeof(T) == kVectorBytes && stride == 1 &&
         reinterpret_cast<std::uintptr_t>(data) % kVectorBytes == 0;
}

/// The first `count` of V elements; the others are zero.
template <typename T, int V>
__device__ __forceinline__ void
Load(const T* from, std::int64_t stride, int count, Accumulator<T> (&to)[V]) {
  if (V == kVector<T> && IsVector(from, stride, count)) {
    const uint4 packed = *reinterpret_cast<const uint4*>(from);
    T elements[kVector<T>];
    memcpy(elements, &packed, sizeof(packed));
#pragma unroll
    for (int i = 0; i < V; ++i) {
      to[i] = Convert<Accumulator<T>>(elements[i]);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < V; ++i) {
    to[i] = i < count ? Convert<Accumulator<T>>(from[i * stride]) : Accumulator<T>(0);
  }
}

template <typename T, int V>
__device__ __forceinline__ void
Store(const Accumulator<T> (&from)[V], std::int64_t stride, int count, T* to) {
  if (V == kVector<T> && IsVector(to, stride, count)) {
    T elements[kVector<T>];
#pragma unroll
    for (int i = 0; i < V; ++i) {
      elements[i] = Convert<T>(from[i]);
    }
    uint4 packed;
    memcpy(&packed, elements, sizeof(packed));
    // A plain store: but written as an assignment, the compiler may take it apart.
    __stwb(reinterpret_cast<uint4*>(to), packed);
    return;
  }
#pragma unroll
  for (int i = 0; i < V; ++i) {
    if (i < count) {
      to[i * stride] = Convert<T>(from[i]);
    }
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

/// Where a sample of channel 0 lies.
__device__ std::int64_t
SampleOffset(const Walk& walk, const Operand& operand, std::int64_t sample) {
  if (walk.counts[kInner] == walk.samples) {
    return sample * operand.strides[kInner];
  }
  const std::int64_t row = Divide(sample, walk.counts[kInner]);
  return RowOffset(walk, operand, row) +
         (sample - row * walk.counts[kInner]) * operand.strides[kInner];
}

template <typename T>
__device__ T* At(const Operand& operand, std::int64_t offset) {
  return static_cast<T*>(operand.data) + offset;
}

__device__ int LaneX(const Walk& walk) {
  return static_cast<int>(threadIdx.x) & (walk.width - 1);
}
__device__ int LaneY(const Walk& walk) {
  return static_cast<int>(threadIdx.x) / walk.width;
}
__device__ int LanesY(const Walk& walk) {
  return kThreads / walk.width;
}

/// Calls visit(row, first, count) for this thread's chunks of up to V elements of the block's slice
/// of a channel. Chunks begin where `leader` has offsets that are multiples of V, whatever its
/// address: the order of sums depends on strides only, and with the address aligned so are they.
template <int V, typename Visitor>
__device__ __forceinline__ void
ForEachChunk(const Walk& walk, const Operand& leader, std::int64_t channel, const Visitor& visit) {
  const std::int64_t inner = walk.counts[kInner];
  const std::int64_t rows = walk.counts[0] * walk.counts[1] * walk.counts[2];
  const Range items = SliceOf(rows * walk.pieces, walk.slices, blockIdx.y);
  const int lanes = LanesY(walk);
  for (std::int64_t item = items.begin + LaneY(walk); item < items.end; item += lanes) {
    const std::int64_t row = walk.pieces == 1 ? item : Divide(item, walk.pieces);
    const std::int64_t begin = (item - row * walk.pieces) * kPieceElements;
    const std::int64_t end = walk.pieces == 1 ? inner : Min(begin + kPieceElements, inner);
    const std::int64_t offset =
        channel * leader.channel_stride + RowOffset(walk, leader, row) + begin;
    const std::int64_t lead = leader.strides[kInner] == 1 ? offset & (V - 1) : 0;
    for (std::int64_t chunk = begin - lead + LaneX(walk) * V; chunk < end;
         chunk += walk.width * V) {
      const std::int64_t first = Max(chunk, begin);
      visit(row, first, static_cast<int>(Min(chunk + V, end) - first));
    }
  }
}

/// Calls visit(sample) for this thread's samples of the block's slice, kBatch at once as
/// visit.template operator()<kBatch>(sample, step), so that their loads do not wait for each other.
template <int kBatch, typename Visitor>
__device__ __forceinline__ void ForEachSample(const Walk& walk, Visitor& visitor) {
  const Range samples = SliceOf(walk.samples, walk.slices, blockIdx.y);
  const std::int64_t step = LanesY(walk);
  std::int64_t sample = samples.begin + LaneY(walk);
  for (; sample + (kBatch - 1) * step < samples.end; sample += kBatch * step) {
    visitor.template Visit<kBatch>(sample, step);
  }
  for (; sample < samples.end; sample += step) {
    visitor.template Visit<1>(sample, step);
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

/// A sample of a channel's that is not far out: by Chebyshev one in t lies further from the mean
/// than sqrt(t) deviations, and of three from within the channel two would have to.
__device__ double MedianSample(const Walk& walk, const Operand& X, int type, std::int64_t channel) {
  double values[3];
  const std::int64_t permille[3] = {307, 551, 809};
  for (int i = 0; i < 3; ++i) {
    const std::int64_t sample = walk.samples * permille[i] / 1000;
    values[i] =
        LoadElement(X.data, type, channel * X.channel_stride + SampleOffset(walk, X, sample));
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
template <Sums kSums, typename T, int V>
struct Elements {
  Accumulator<T> dy[V];
  Accumulator<T> x[V];

  __device__ __forceinline__ void Load(
      const Operands& operands,
      std::int64_t dy_offset,
      std::int64_t dy_stride,
      std::int64_t x_offset,
      std::int64_t x_stride,
      int count) {
    if constexpr (kSums != Sums::kMoments) {
      own::Load<T, V>(At<const T>(operands.dY, dy_offset), dy_stride, count, dy);
    }
    if constexpr (kSums != Sums::kBias) {
      own::Load<T, V>(At<const T>(operands.X, x_offset), x_stride, count, x);
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

__device__ void StorePartial(
    const Walk& walk,
    std::int64_t channel,
    double first,
    double second,
    double* partials) {
  const std::int64_t slice = blockIdx.y;
  partials[slice * walk.channels + channel] = first;
  partials[(walk.slices + slice) * walk.channels + channel] = second;
}

/// A block for each channel and slice; its threads along rows.
template <Sums kSums, typename T>
__device__ void
SumRows(const Walk& walk, const Operands& operands, const Parameter& mean, double* partials) {
  using A = Accumulator<T>;
  constexpr int V = kVector<T>;
  const Operand& dY = operands.dY;
  const Operand& X = operands.X;
  for (std::int64_t channel = blockIdx.x; channel < walk.channels; channel += gridDim.x) {
    const A pivot = Pivot<kSums, T>(walk, operands, mean, channel);
    A first = 0;
    A second = 0;
    const auto add = [&](std::int64_t row, std::int64_t begin, int count) {
      Elements<kSums, T, V> elements;
      elements.Load(
          operands,
          RowOffset(walk, dY, row) + channel * dY.channel_stride + begin * dY.strides[kInner],
          dY.strides[kInner],
          RowOffset(walk, X, row) + channel * X.channel_stride + begin * X.strides[kInner],
          X.strides[kInner], count);
      A chunk_first = 0;
      A chunk_second = 0;
#pragma unroll
      for (int i = 0; i < V; ++i) {
        if (i < count) {
          AddTerm<kSums>(elements.dy[i], elements.x[i], pivot, &chunk_first, &chunk_second);
        }
      }
      first += chunk_first;
      second += chunk_second;
    };
    ForEachChunk<V>(walk, kSums == Sums::kBias ? dY : X, channel, add);
    double block_first = first;
    double block_second = second;
    SumBlock(&block_first, &block_second);
    if (threadIdx.x == 0) {
      StorePartial(walk, channel, block_first, block_second, partials);
    }
  }
}

/// V channels' sums over a thread's samples.
template <Sums kSums, typename T, int V>
struct ChannelSums {
  const Walk& walk;
  const Operands& operands;
  std::int64_t channel;
  Accumulator<T> pivot[V];
  Accumulator<T> first[V];
  Accumulator<T> second[V];

  template <int kBatch>
  __device__ __forceinline__ void Visit(std::int64_t sample, std::int64_t step) {
    const Operand& dY = operands.dY;
    const Operand& X = operands.X;
    Elements<kSums, T, V> batch[kBatch];
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      batch[j].Load(
          operands, SampleOffset(walk, dY, sample + j * step) + channel * dY.channel_stride,
          dY.channel_stride, SampleOffset(walk, X, sample + j * step) + channel * X.channel_stride,
          X.channel_stride, V);
    }
#pragma unroll
    for (int i = 0; i < V; ++i) {
      Accumulator<T> batch_first = 0;
      Accumulator<T> batch_second = 0;
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        AddTerm<kSums>(batch[j].dy[i], batch[j].x[i], pivot[i], &batch_first, &batch_second);
      }
      first[i] += batch_first;
      second[i] += batch_second;
    }
  }
};

/// Sums over the threads that share a channel, to the first of them.
__device__ void SumLanes(const Walk& walk, double* first, double* second) {
  __shared__ double sums[2][kThreads];
  sums[0][threadIdx.x] = *first;
  sums[1][threadIdx.x] = *second;
  __syncthreads();
  if (LaneY(walk) == 0) {
    for (int other = LaneX(walk) + walk.width; other < kThreads; other += walk.width) {
      *first += sums[0][other];
      *second += sums[1][other];
    }
  }
  __syncthreads();
}

/// A block for each tile of channels and slice; its threads along channels, V for each.
template <Sums kSums, typename T, int V>
__device__ void
SumChannels(const Walk& walk, const Operands& operands, const Parameter& mean, double* partials) {
  constexpr int kBatch = 4;
  const std::int64_t tile = static_cast<std::int64_t>(walk.width) * V;
  for (std::int64_t begin = blockIdx.x * tile; begin < walk.channels; begin += gridDim.x * tile) {
    ChannelSums<kSums, T, V> sums = {walk, operands, begin + LaneX(walk) * V, {}, {}, {}};
    // V divides the number of channels.
    const bool active = sums.channel < walk.channels;
    if (active) {
#pragma unroll
      for (int i = 0; i < V; ++i) {
        sums.pivot[i] = Pivot<kSums, T>(walk, operands, mean, sums.channel + i);
      }
      ForEachSample<kBatch>(walk, sums);
    }
#pragma unroll
    for (int i = 0; i < V; ++i) {
      double first = sums.first[i];
      double second = sums.second[i];
      SumLanes(walk, &first, &second);
      if (active && LaneY(walk) == 0) {
        StorePartial(walk, sums.channel + i, first, second, partials);
      }
    }
  }
}

// ---------------------------------------------------------------------------------------------
// What the sums come to
// ---------------------------------------------------------------------------------------------

/// What a map needs of a channel: rows of the coefficients, one for each channel.
///   Y  = (X - pivot) * factor + shift
///   dX = factor * (dY - shift - (X - pivot) * slope)
enum Coefficient { kPivot, kFactor, kShift, kSlope };

/// The number that X - mean is taken from: what is left of the mean goes into the shift.
__device__ double RoundPivot(double mean, int type) {
  return type == kDouble ? mean : static_cast<double>(static_cast<float>(mean));
}

/// Calls finish(channel, first, second) with the sums over all slices.
template <typename Finish>
__device__ void ForEachSum(const Walk& walk, const double* partials, const Finish& finish) {
  __shared__ double sums[2][kFinishLanes][kFinishChannels];
  const int x = static_cast<int>(threadIdx.x) % kFinishChannels;
  const int y = static_cast<int>(threadIdx.x) / kFinishChannels;
  const std::int64_t step = std::int64_t{gridDim.x} * kFinishChannels;
  for (std::int64_t begin = std::int64_t{blockIdx.x} * kFinishChannels; begin < walk.channels;
       begin += step) {
    const std::int64_t channel = begin + x;
    double first = 0;
    double second = 0;
    if (channel < walk.channels) {
      for (std::int64_t slice = y; slice < walk.slices; slice += kFinishLanes) {
        first += partials[slice * walk.channels + channel];
        second += partials[(walk.slices + slice) * walk.channels + channel];
      }
    }
    sums[0][y][x] = first;
    sums[1][y][x] = second;
    __syncthreads();
    if (y == 0 && channel < walk.channels) {
      for (int lane = 1; lane < kFinishLanes; ++lane) {
        first += sums[0][lane][x];
        second += sums[1][lane][x];
      }
      finish(channel, first, second);
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

__device__ void
FinishForward(const ForwardFinish& p, const double* partials, double* coefficients) {
  ForEachSum(p.walk, partials, [&](std::int64_t channel, double first, double second) {
    const Moments moments = MomentsOf(p, channel, first, second);
    const double m = p.walk.samples > 0 ? static_cast<double>(p.walk.samples) : 1;
    const double inv_std = 1 / sqrt(moments.deviation / m + p.epsilon);
    const double factor = LoadParameter(p.scale, channel) * inv_std;
    const double pivot = RoundPivot(moments.mean, p.type);
    coefficients[kPivot * p.walk.channels + channel] = pivot;
    coefficients[kFactor * p.walk.channels + channel] = factor;
    coefficients[kShift * p.walk.channels + channel] =
        LoadParameter(p.bias, channel) - (moments.mean - pivot) * factor;
    UpdateRunning(p, channel, moments);
    StoreParameter(p.saved_mean, channel, moments.mean);
    StoreParameter(p.saved_inv_std, channel, inv_std);
  });
}

__device__ void
FinishBackward(const BackwardFinish& p, const double* partials, double* coefficients) {
  ForEachSum(p.walk, partials, [&](std::int64_t channel, double dbias, double products) {
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
    const double slope = inv_std * dscale / m;
    coefficients[kPivot * p.walk.channels + channel] = pivot;
    coefficients[kFactor * p.walk.channels + channel] = LoadParameter(p.scale, channel) * inv_std;
    coefficients[kShift * p.walk.channels + channel] = dbias / m - (mean - pivot) * slope;
    coefficients[kSlope * p.walk.channels + channel] = slope;
  });
}

// ---------------------------------------------------------------------------------------------
// Maps
// ---------------------------------------------------------------------------------------------

enum class Map { kNormalize, kInputGradient };

template <Map kMap, typename A>
struct Coefficients {
  A pivot;
  A factor;
  A shift;
  A slope;

  __device__ __forceinline__ void
  Load(const Walk& walk, const double* coefficients, std::int64_t channel) {
    pivot = static_cast<A>(coefficients[kPivot * walk.channels + channel]);
    factor = static_cast<A>(coefficients[kFactor * walk.channels + channel]);
    shift = static_cast<A>(coefficients[kShift * walk.channels + channel]);
    if constexpr (kMap == Map::kInputGradient) {
      slope = static_cast<A>(coefficients[kSlope * walk.channels + channel]);
    }
  }

  __device__ __forceinline__ A Apply(A dy, A x) const {
    if constexpr (kMap == Map::kNormalize) {
      return (x - pivot) * factor + shift;
    } else {
      return factor * ((dy - shift) - (x - pivot) * slope);
    }
  }
};

/// The elements that a map reads, and what it makes of them.
template <Map kMap, typename T, int V>
struct MapElements {
  using A = Accumulator<T>;
  A dy[V];
  A x[V];
  A old[V];

  __device__ __forceinline__ void Load(
      const Operands& operands,
      const std::int64_t (&offsets)[3],
      const std::int64_t (&strides)[3],
      int count) {
    if constexpr (kMap == Map::kInputGradient) {
      own::Load<T, V>(At<const T>(operands.dY, offsets[0]), strides[0], count, dy);
    }
    own::Load<T, V>(At<const T>(operands.X, offsets[1]), strides[1], count, x);
    if (operands.accumulate) {
      own::Load<T, V>(At<const T>(operands.output, offsets[2]), strides[2], count, old);
    }
  }

  /// coefficients(i) are those of element i.
  template <typename CoefficientsOf>
  __device__ __forceinline__ void Store(
      const Operands& operands,
      const CoefficientsOf& coefficients,
      std::int64_t offset,
      std::int64_t stride,
      int count) const {
    A results[V];
#pragma unroll
    for (int i = 0; i < V; ++i) {
      results[i] = coefficients(i).Apply(kMap == Map::kInputGradient ? dy[i] : A(0), x[i]);
      if (operands.accumulate) {
        results[i] += old[i];
      }
    }
    own::Store<T, V>(results, stride, count, At<T>(operands.output, offset));
  }
};

template <Map kMap, typename T>
__device__ void MapRows(const Walk& walk, const Operands& operands, const double* coefficients) {
  constexpr int V = kVector<T>;
  const Operand* all[3] = {&operands.dY, &operands.X, &operands.output};
  const std::int64_t strides[3] = {
      all[0]->strides[kInner], all[1]->strides[kInner], all[2]->strides[kInner]};
  for (std::int64_t channel = blockIdx.x; channel < walk.channels; channel += gridDim.x) {
    Coefficients<kMap, Accumulator<T>> own_coefficients;
    own_coefficients.Load(walk, coefficients, channel);
    ForEachChunk<V>(
        walk, operands.output, channel, [&](std::int64_t row, std::int64_t begin, int count) {
          std::int64_t offsets[3];
#pragma unroll
          for (int k = 0; k < 3; ++k) {
            offsets[k] = RowOffset(walk, *all[k], row) + channel * all[k]->channel_stride +
                         begin * strides[k];
          }
          MapElements<kMap, T, V> elements;
          elements.Load(operands, offsets, strides, count);
          elements.Store(
              operands, [&](int) { return own_coefficients; }, offsets[2], strides[2], count);
        });
  }
}

/// V channels of a thread's samples.
template <Map kMap, typename T, int V>
struct ChannelMap {
  const Walk& walk;
  const Operands& operands;
  std::int64_t channel;
  Coefficients<kMap, Accumulator<T>> coefficients[V];

  template <int kBatch>
  __device__ __forceinline__ void Visit(std::int64_t sample, std::int64_t step) {
    const Operand* all[3] = {&operands.dY, &operands.X, &operands.output};
    const std::int64_t strides[3] = {
        all[0]->channel_stride, all[1]->channel_stride, all[2]->channel_stride};
    MapElements<kMap, T, V> batch[kBatch];
    std::int64_t offsets[kBatch][3];
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
#pragma unroll
      for (int k = 0; k < 3; ++k) {
        offsets[j][k] =
            SampleOffset(walk, *all[k], sample + j * step) + channel * all[k]->channel_stride;
      }
      batch[j].Load(operands, offsets[j], strides, V);
    }
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      batch[j].Store(
          operands, [&](int i) { return coefficients[i]; }, offsets[j][2], strides[2], V);
    }
  }
};

template <Map kMap, typename T, int V>
__device__ void
MapChannels(const Walk& walk, const Operands& operands, const double* coefficients) {
  constexpr int kBatch = V == 1 ? 4 : 2;
  const std::int64_t tile = static_cast<std::int64_t>(walk.width) * V;
  for (std::int64_t begin = blockIdx.x * tile; begin < walk.channels; begin += gridDim.x * tile) {
    ChannelMap<kMap, T, V> map = {walk, operands, begin + LaneX(walk) * V, {}};
    if (map.channel < walk.channels) {
#pragma unroll
      for (int i = 0; i < V; ++i) {
        map.coefficients[i].Load(walk, coefficients, map.channel + i);
      }
      ForEachSample<kBatch>(walk, map);
    }
  }
}

}  // namespace
}  // namespace gradsmith::batch_norm::own

// ---------------------------------------------------------------------------------------------
// Kernels
// ---------------------------------------------------------------------------------------------

// Calls in their arguments' list: one kernel for each path and element type.
#define GRADSMITH_SUM_KERNEL(name, function)                                                \
  extern "C" __global__ void __launch_bounds__(own::kThreads)                               \
      name(own::Walk walk, own::Operands operands, own::Parameter mean, double* partials) { \
    function(walk, operands, mean, partials);                                               \
  }
#define GRADSMITH_MAP_KERNEL(name, function)                                     \
  extern "C" __global__ void __launch_bounds__(own::kThreads)                    \
      name(own::Walk walk, own::Operands operands, const double* coefficients) { \
    function(walk, operands, coefficients);                                      \
  }
#define GRADSMITH_SUM_KERNELS(sums, suffix, T, kSums)                                            \
  GRADSMITH_SUM_KERNEL(gradsmith_bn_##sums##_rows_##suffix, (own::SumRows<kSums, T>))            \
  GRADSMITH_SUM_KERNEL(gradsmith_bn_##sums##_channels_##suffix, (own::SumChannels<kSums, T, 1>)) \
  GRADSMITH_SUM_KERNEL(                                                                          \
      gradsmith_bn_##sums##_vectors_##suffix, (own::SumChannels<kSums, T, own::kVector<T>>))
#define GRADSMITH_MAP_KERNELS(map, suffix, T, kMap)                                            \
  GRADSMITH_MAP_KERNEL(gradsmith_bn_##map##_rows_##suffix, (own::MapRows<kMap, T>))            \
  GRADSMITH_MAP_KERNEL(gradsmith_bn_##map##_channels_##suffix, (own::MapChannels<kMap, T, 1>)) \
  GRADSMITH_MAP_KERNEL(                                                                        \
      gradsmith_bn_##map##_vectors_##suffix, (own::MapChannels<kMap, T, own::kVector<T>>))
#define GRADSMITH_KERNELS(suffix, T)                                    \
  GRADSMITH_SUM_KERNELS(moments, suffix, T, own::Sums::kMoments)        \
  GRADSMITH_SUM_KERNELS(gradient_sums, suffix, T, own::Sums::kGradient) \
  GRADSMITH_SUM_KERNELS(bias_sums, suffix, T, own::Sums::kBias)         \
  GRADSMITH_MAP_KERNELS(normalize, suffix, T, own::Map::kNormalize)     \
  GRADSMITH_MAP_KERNELS(input_gradient, suffix, T, own::Map::kInputGradient)

namespace own = gradsmith::batch_norm::own;

GRADSMITH_KERNELS(f32, float)
GRADSMITH_KERNELS(f64, double)
GRADSMITH_KERNELS(f16, __half)
GRADSMITH_KERNELS(bf16, __nv_bfloat16)

extern "C" __global__ void __launch_bounds__(own::kFinishChannels* own::kFinishLanes)
    gradsmith_bn_finish_forward(
        own::ForwardFinish finish,
        const double* partials,
        double* coefficients) {
  own::FinishForward(finish, partials, coefficients);
}

extern "C" __global__ void __launch_bounds__(own::kFinishChannels* own::kFinishLanes)
    gradsmith_bn_finish_backward(
        own::BackwardFinish finish,
        const double* partials,
        double* coefficients) {
  own::FinishBackward(finish, partials, coefficients);
}
