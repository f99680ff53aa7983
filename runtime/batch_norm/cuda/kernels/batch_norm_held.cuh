#ifndef GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_HELD_CUH_
#define GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_HELD_CUH_

#include "batch_norm/cuda/kernels/batch_norm_map.cuh"
#include "cuda/divisor.h"
#include "cuda/kernels/ptx.cuh"

/// All of a gradient in one launch, of blocks that hold all elements of their channels in shared
/// memory: each is loaded once, whatever its layout, and no block waits for another. Such a problem
/// takes as long as the code that is fetched, so loops are not unrolled beyond the loads that are
/// to be under way at once.
namespace gradsmith::batch_norm::own {
namespace {

constexpr int kWarp = 32;

/// What a block's warps have of two numbers of each of its channels.
using HeldSums = double[2][kHeldThreads / kWarp][kMostHeldChannels];

/// Combines what the block's threads have of each channel; the channels' first threads, those of
/// the first warp, get it. `sums` must have been read by all since it was last written.
template <typename Combine>
__device__ __forceinline__ void CombineThreads(
    int channels,
    HeldSums& sums,
    const Combine& combine,
    double* first,
    double* second) {
  for (int distance = kWarp / 2; distance >= channels; distance /= 2) {
    *first = combine(*first, __shfl_down_sync(0xFFFFFFFFU, *first, distance));
    *second = combine(*second, __shfl_down_sync(0xFFFFFFFFU, *second, distance));
  }
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (lane < channels) {
    sums[0][threadIdx.x / kWarp][lane] = *first;
    sums[1][threadIdx.x / kWarp][lane] = *second;
  }
  __syncthreads();
  if (threadIdx.x < channels) {
    const int warps = static_cast<int>(blockDim.x) / kWarp;
#pragma unroll 4
    for (int warp = 1; warp < warps; ++warp) {
      *first = combine(*first, sums[0][warp][lane]);
      *second = combine(*second, sums[1][warp][lane]);
    }
  }
}

__device__ __forceinline__ double Add(double a, double b) {
  return a + b;
}

/// What a block's channels are normalized with, in shared memory: it is asked for late, and loaded
/// with the elements.
struct HeldStatistics {
  double values[4][kMostHeldChannels];

  /// The channel's first thread.
  __device__ __forceinline__ void
  Load(const BackwardFinish& p, std::int64_t channel, bool present) {
    const Normalization& from = p.normalization;
    const bool is_there = present && p.products;
    const int x = static_cast<int>(threadIdx.x);
    values[0][x] = is_there ? LoadParameter(from.mean, channel) : 0;
    values[1][x] = is_there ? LoadParameter(from.inv_std, channel) : 0;
    values[2][x] = is_there ? LoadParameter(from.scale, channel) : 0;
    values[3][x] = is_there && from.bias.present ? LoadParameter(from.bias, channel) : 0;
  }
};

/// One of them, for its first thread.
struct OfFirstThread {
  const HeldStatistics& all;

  __device__ double mean(std::int64_t /*channel*/) const { return all.values[0][threadIdx.x]; }
  __device__ double inv_std(std::int64_t /*channel*/) const { return all.values[1][threadIdx.x]; }
  __device__ double scale(std::int64_t /*channel*/) const { return all.values[2][threadIdx.x]; }
  __device__ double bias(std::int64_t /*channel*/) const { return all.values[3][threadIdx.x]; }
};

/// What a block has in shared memory of its channels, before their elements.
struct HeldScratch {
  HeldStatistics statistics;
  HeldSums sums;
  double coefficients[kAllCoefficients][kMostHeldChannels];
  Units units[kMostHeldChannels];
  bool again[kMostHeldChannels];
};

/// A thread's elements of its channel: of each of its samples, `lanes` apart from one to the next.
template <typename T>
class HeldElements {
 public:
  /// Samples whose loads are under way at once.
  static constexpr int kBatch = 4;

  __device__ __forceinline__ HeldElements(const HeldWalk& held, const Walk& walk, T* memory)
      : held_(held),
        channel_(
            std::int64_t{blockIdx.x} * held.channels +
            (static_cast<int>(threadIdx.x) & (held.channels - 1))),
        first_(threadIdx.x / static_cast<unsigned>(held.channels)),
        samples_(channel_ < walk.channels ? static_cast<std::uint32_t>(walk.samples) : 0),
        memory_(memory + threadIdx.x) {}

  __device__ std::int64_t channel() const { return channel_; }
  __device__ bool present() const { return samples_ != 0; }

  /// Loads all and calls visit(dy, x) for each. X counts for dX and dScale alone.
  template <typename Use>
  __device__ __forceinline__ void Load(const Operands& operands, bool products, const Use& visit)
      const {
    const T* const all_dy = At<const T>(operands.dY, channel_ * operands.dY.channel_stride);
    const T* const all_x = At<const T>(operands.X, channel_ * operands.X.channel_stride);
    T* to = memory_;
#pragma unroll 1
    for (std::uint32_t begin = first_; begin < samples_; begin += kBatch * held_.lanes) {
      T dy[kBatch];
      T x[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const std::uint32_t sample = begin + static_cast<std::uint32_t>(i * held_.lanes);
        if (sample < samples_) {
          dy[i] = all_dy[Offset(operands.dY, sample)];
          x[i] = products ? all_x[Offset(operands.X, sample)] : Convert<T>(0.F);
        }
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        if (begin + static_cast<std::uint32_t>(i * held_.lanes) < samples_) {
          visit(dy[i], x[i]);
          to[0] = dy[i];
          to[blockDim.x] = x[i];
          to += 2 * blockDim.x;
        }
      }
    }
  }

  /// Calls visit(dy, x) for each once more.
  template <typename Use>
  __device__ __forceinline__ void Visit(const Use& visit) const {
    const T* from = memory_;
#pragma unroll 1
    for (std::uint32_t sample = first_; sample < samples_; sample += held_.lanes) {
      visit(from[0], from[blockDim.x]);
      from += 2 * blockDim.x;
    }
  }

  /// Calls make(dy, x, before), where `before` is what the result is added to or null, and stores
  /// what it returns.
  template <int kAtOnce, typename Make>
  __device__ __forceinline__ void Store(const Operands& operands, const Make& make) const {
    T* const all = At<T>(operands.output, channel_ * operands.output.channel_stride);
    const T* from = memory_;
#pragma unroll kAtOnce
    for (std::uint32_t sample = first_; sample < samples_; sample += held_.lanes) {
      T* to = all + Offset(operands.output, sample);
      *to = make(from[0], from[blockDim.x], operands.accumulate ? to : nullptr);
      from += 2 * blockDim.x;
    }
  }

 private:
  /// Returns where a sample of channel 0 lies in a tensor.
  __device__ __forceinline__ std::int64_t Offset(const Operand& operand, std::uint32_t sample)
      const {
    const std::uint32_t row = cuda::Divide(sample, held_.inner);
    return row * operand.strides[kInner - 1] +
           (sample - row * held_.inner.divisor) * operand.strides[kInner];
  }

  const HeldWalk& held_;
  std::int64_t channel_;
  std::uint32_t first_;
  std::uint32_t samples_;
  /// The first of a thread's dY; the X beside it and the next dY are a block's threads further.
  T* memory_;
};

/// Loads the elements and returns the sums of the block's channels, which their first threads get.
template <Sums kSums, typename T>
__device__ __forceinline__ Totals SumHeld(
    const BackwardFinish& p,
    const Operands& operands,
    const HeldWalk& held,
    const HeldElements<T>& elements,
    HeldScratch& scratch) {
  using A = Accumulator<T>;
  A first = 0;
  A second = 0;
  if (elements.present()) {
    const std::int64_t channel = elements.channel();
    const A pivot = p.products ? Pivot<kSums, T>(p.walk, operands, p.normalization, channel) : A(0);
    const Gate<A> gate = GateOf<kSums, T>(p.normalization, channel);
    elements.Load(operands, p.products, [&](T dy, T x) {
      AddTerm<kSums>(Convert<A>(dy), Convert<A>(x), pivot, gate, &first, &second);
    });
  }
  Totals totals = {static_cast<double>(first), static_cast<double>(second), {}};
  CombineThreads(held.channels, scratch.sums, Add, &totals.first, &totals.second);
  return totals;
}

/// The sums of channels in doubt made anew, in `*totals` of their first threads. It is out of line:
/// what happens seldom must cost the rest neither registers nor code.
template <typename T>
__device__ __noinline__ void SumHeldAgain(
    const BackwardFinish& p,
    const HeldWalk& held,
    const HeldElements<T>& elements,
    bool doubtful,
    HeldScratch& scratch,
    Totals* totals) {
  const BackwardAgain again(p);
  const int x = static_cast<int>(threadIdx.x) & (held.channels - 1);
  double largest = 0;
  elements.Visit([&](T dy, T x_value) {
    const double size = fabs(Convert<double>(dy));
    const bool is_finite = isfinite(size) && isfinite(Convert<double>(x_value));
    largest = is_finite ? fmax(largest, size) : HUGE_VAL;
  });
  double unused = 0;
  CombineThreads(
      held.channels, scratch.sums, [](double a, double b) { return fmax(a, b); }, &largest,
      &unused);
  // Another sum of what is not finite is no better.
  const bool is_better = doubtful && isfinite(largest);
  if (threadIdx.x < held.channels) {
    scratch.again[x] = is_better;
    scratch.units[x] = is_better ? again.UnitsOf(elements.channel(), largest) : Units{};
  }
  __syncthreads();
  Totals share = {0, 0, scratch.units[x]};
  if (scratch.again[x]) {
    const TermsAgain terms =
        p.products ? again.TermsOf(elements.channel(), share.units) : TermsAgain{share.units};
    elements.Visit(
        [&](T dy, T x_value) { terms.Add(Convert<double>(dy), Convert<double>(x_value), &share); });
  }
  CombineThreads(held.channels, scratch.sums, Add, &share.first, &share.second);
  if (is_better) {
    *totals = share;
  }
}

/// dX of a wide channel.
template <Map kMap, typename T>
__device__ __noinline__ void MapWideHeld(
    const Operands& operands,
    const HeldElements<T>& elements,
    int x,
    const HeldScratch& scratch) {
  double wide[kAllCoefficients];
  for (int k = 0; k < kAllCoefficients; ++k) {
    const bool is_there = k != kGate || kMap == Map::kReluInputGradient;
    wide[k] = is_there ? scratch.coefficients[k][x] : 0;
  }
  elements.template Store<1>(operands, [&](T dy, T x_value, const T* before) {
    const double value = ApplyWide<kMap>(wide, Convert<double>(dy), Convert<double>(x_value));
    return Convert<T>(before == nullptr ? value : value + Convert<double>(*before));
  });
}

/// dX from the coefficients.
template <Map kMap, typename T>
__device__ __forceinline__ void MapHeld(
    const Operands& operands,
    const HeldElements<T>& elements,
    int x,
    const HeldScratch& scratch) {
  using A = Accumulator<T>;
  if (scratch.coefficients[kUnit][x] != 1) {
    MapWideHeld<kMap>(operands, elements, x, scratch);
    return;
  }
  A narrow[kAllCoefficients];
#pragma unroll
  for (int k = 0; k < kCoefficients<kMap>; ++k) {
    narrow[k] = static_cast<A>(scratch.coefficients[k][x]);
  }
  elements.template Store<2>(operands, [&](T dy, T x_value, const T* before) {
    const A value = own::Apply<kMap>(narrow, Convert<A>(dy), Convert<A>(x_value));
    return Convert<T>(before == nullptr ? value : value + Convert<A>(*before));
  });
}

template <Sums kSums, Map kMap, typename T>
__device__ __forceinline__ void
HeldBackward(const BackwardFinish& p, const Operands& operands, const HeldWalk& held) {
  __shared__ HeldScratch scratch;
  GRADSMITH_DYNAMIC_SHARED(shared);
  const HeldElements<T> elements(held, p.walk, reinterpret_cast<T*>(shared));
  const bool is_first = threadIdx.x < held.channels;
  if (is_first) {
    scratch.statistics.Load(p, elements.channel(), elements.present());
  }
  Totals totals = SumHeld<kSums>(p, operands, held, elements, scratch);
  const BackwardAgainOf<OfFirstThread> again = {p, {scratch.statistics}};
  const bool doubtful = is_first && elements.present() &&
                        again.IsDoubtful(elements.channel(), totals.first, totals.second);
  if (__syncthreads_or(doubtful ? 1 : 0) != 0) {
    SumHeldAgain(p, held, elements, doubtful, scratch, &totals);
  }
  if (is_first && elements.present()) {
    FinishGradientSums(
        p, OfFirstThread{scratch.statistics}, elements.channel(), totals,
        {&scratch.coefficients[0][threadIdx.x], kMostHeldChannels});
  }
  __syncthreads();
  if (operands.output.data != nullptr && elements.present()) {
    const int x = static_cast<int>(threadIdx.x) & (held.channels - 1);
    MapHeld<kMap>(operands, elements, x, scratch);
  }
}

}  // namespace
}  // namespace gradsmith::batch_norm::own

#endif  // GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_HELD_CUH_
