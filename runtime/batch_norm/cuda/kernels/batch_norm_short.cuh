#ifndef GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_SHORT_CUH_
#define GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_SHORT_CUH_

#include "batch_norm/cuda/kernels/batch_norm_map.cuh"

/// All of a problem with few samples in one launch, a thread for each channel: such a problem takes
/// as long as the code that is fetched and the loads that wait for each other, so both are few.
/// Sums are in double: there are too few terms for that to count.
namespace gradsmith::batch_norm::own {
namespace {

/// What a thread loads of a tensor before it uses the first of it: what comes from memory, and what
/// was there before and is in the cache.
constexpr int kShortBatch = 8;
constexpr int kCachedBatch = 2;

/// A channel's samples of an input, which lie at one distance.
template <typename T>
struct Samples {
  const T* first;
  std::int64_t apart;

  __device__ Samples(const Operand& operand, std::int64_t channel)
      : first(At<const T>(operand, channel * operand.channel_stride)),
        apart(operand.strides[kInner]) {}
};

/// OutputOffset returns where a sample of the output lies.
__device__ std::int64_t
OutputOffset(const Walk& walk, const Operand& output, std::int64_t channel, int sample) {
  const std::int64_t row = Divide(sample, walk.counts[kInner]);
  return channel * output.channel_stride + RowOffset(walk, output, row) +
         (sample - row * walk.counts[kInner]) * output.strides[kInner];
}

/// Calls visit(value of a, value of b, sample) for each sample.
template <int kBatch, typename T, typename Visit>
__device__ __forceinline__ void
ForEachSample(int samples, const Samples<T>& a, const Samples<T>& b, const Visit& visit) {
#pragma unroll 1
  for (int begin = 0; begin < samples; begin += kBatch) {
    T of_a[kBatch];
    T of_b[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      // The last once more rather than a branch.
      const int sample = begin + i < samples ? begin + i : samples - 1;
      of_a[i] = a.first[sample * a.apart];
      of_b[i] = b.first[sample * b.apart];
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      if (begin + i < samples) {
        visit(of_a[i], of_b[i], begin + i);
      }
    }
  }
}

/// A channel's coefficients as a map takes them.
template <typename T>
struct OwnCoefficients {
  double wide[kAllCoefficients] = {};

  __device__ CoefficientPlace place() { return {wide, 1}; }

  /// What the map makes of a sample, added to `before` where that is given.
  template <Map kMap>
  __device__ T Apply(T dy, T x, const T* before = nullptr) const {
    using A = Accumulator<T>;
    if (wide[kUnit] != 1) {
      const double value = ApplyWide<kMap>(wide, Convert<double>(dy), Convert<double>(x));
      return Convert<T>(before == nullptr ? value : value + Convert<double>(*before));
    }
    A narrow[kAllCoefficients];
#pragma unroll
    for (int k = 0; k < kAllCoefficients; ++k) {
      narrow[k] = static_cast<A>(wide[k]);
    }
    const A value = own::Apply<kMap>(narrow, Convert<A>(dy), Convert<A>(x));
    return Convert<T>(before == nullptr ? value : value + Convert<A>(*before));
  }
};

template <Map kMap, typename T>
__device__ void ShortForward(const ForwardFinish& p, const Operands& operands) {
  const std::int64_t channel = std::int64_t{blockIdx.x} * kShortThreads + threadIdx.x;
  if (channel >= p.walk.channels) {
    return;
  }
  const auto count = static_cast<int>(p.walk.samples);
  const Samples<T> x(operands.X, channel);
  // Of numbers that are alike nothing is rounded, as it would be if they were added up.
  const double pivot = MedianSample(p.walk, operands.X, p.type, channel);
  double first = 0;
  double second = 0;
  ForEachSample<kShortBatch>(count, x, x, [&](T value, T, int) {
    const double deviation = Convert<double>(value) - pivot;
    first += deviation;
    second += deviation * deviation;
  });
  OwnCoefficients<T> coefficients;
  FinishMoments(
      p, channel, MomentsOf(p, channel, TotalsOf(ForwardAgain{p}, channel, first, second)),
      coefficients.place());
  if (operands.output.data == nullptr) {
    return;
  }
  ForEachSample<kCachedBatch>(count, x, x, [&](T value, T, int sample) {
    *At<T>(operands.output, OutputOffset(p.walk, operands.output, channel, sample)) =
        coefficients.template Apply<kMap>(value, value);
  });
}

template <Sums kSums, Map kMap, typename T>
__device__ void ShortBackward(const BackwardFinish& p, const Operands& operands) {
  using A = Accumulator<T>;
  const std::int64_t channel = std::int64_t{blockIdx.x} * kShortThreads + threadIdx.x;
  if (channel >= p.walk.channels) {
    return;
  }
  const auto count = static_cast<int>(p.walk.samples);
  const Samples<T> dy(operands.dY, channel);
  // X counts for dX and dScale alone.
  const Samples<T> x(p.products ? operands.X : operands.dY, channel);
  const double pivot =
      p.products ? RoundPivot(LoadParameter(p.normalization.mean, channel), p.type) : 0;
  const Gate<A> gate = GateOf<kSums, T>(p.normalization, channel);
  double dbias = 0;
  double products = 0;
  ForEachSample<kShortBatch>(count, dy, x, [&](T dy_value, T x_value, int) {
    double passed = Convert<double>(dy_value);
    if constexpr (kSums == Sums::kReluGradient) {
      passed = gate.Pass(Convert<A>(dy_value), Convert<A>(x_value) - static_cast<A>(pivot));
    }
    dbias += passed;
    products += passed * (Convert<double>(x_value) - pivot);
  });
  OwnCoefficients<T> coefficients;
  FinishGradientSums(
      p, StoredStatistics{p.normalization}, channel,
      TotalsOf(BackwardAgain{p}, channel, dbias, products), coefficients.place());
  if (operands.output.data == nullptr) {
    return;
  }
  ForEachSample<kCachedBatch>(count, dy, x, [&](T dy_value, T x_value, int sample) {
    T* place = At<T>(operands.output, OutputOffset(p.walk, operands.output, channel, sample));
    *place =
        coefficients.template Apply<kMap>(dy_value, x_value, operands.accumulate ? place : nullptr);
  });
}

}  // namespace
}  // namespace gradsmith::batch_norm::own

#endif  // GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_SHORT_CUH_
