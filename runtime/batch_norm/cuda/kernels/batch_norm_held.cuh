#ifndef GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_HELD_CUH_
#define GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_HELD_CUH_

#include "batch_norm/cuda/kernels/batch_norm_map.cuh"
#include "cuda/divisor.h"

/// All of a gradient in one launch, of blocks whose threads hold all elements of their channels in
/// registers: each is loaded once, whatever its layout, all of a thread's loads are under way at
/// once, and no block waits for another.
namespace gradsmith::batch_norm::own {
namespace {

constexpr int kWarp = 32;

/// What a block's warps have of two numbers of each of its channels.
using HeldSums = double[2][kHeldThreads / kWarp][kMostHeldChannels];

/// Combines what the block's threads have of each channel; the channels' first threads, those of
/// the first warp, get it. `sums` must have been read by all since it was last written.
template <typename Combine>
__device__ __forceinline__ void
CombineThreads(int channels, HeldSums& sums, const Combine& combine, double* first, double* second) {
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
#pragma unroll
    for (int warp = 1; warp < kHeldThreads / kWarp; ++warp) {
      if (warp < warps) {
        *first = combine(*first, sums[0][warp][lane]);
        *second = combine(*second, sums[1][warp][lane]);
      }
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

/// Where a sample lies along the dims.
struct SamplePlace {
  std::uint32_t at[kSampleDims];

  __device__ __forceinline__ SamplePlace(const HeldWalk& held, std::uint32_t sample) : at{} {
#pragma unroll
    for (int k = kInner; k > 0; --k) {
      if (k > held.first_dim) {
        const std::uint32_t next = cuda::Divide(sample, held.counts[k]);
        at[k] = sample - next * held.counts[k].divisor;
        sample = next;
      } else if (k == held.first_dim) {
        at[k] = sample;
      }
    }
    if (held.first_dim == 0) {
      at[0] = sample;
    }
  }

  __device__ __forceinline__ std::int64_t
  Offset(const HeldWalk& held, const Operand& operand, std::int64_t channel) const {
    std::int64_t offset = channel * operand.channel_stride;
#pragma unroll
    for (int k = kInner; k >= 0; --k) {
      if (k >= held.first_dim) {
        offset += at[k] * operand.strides[k];
      }
    }
    return offset;
  }
};

/// A thread's elements of its channel: of each of its samples, `lanes` apart from one to the next.
template <typename T>
class HeldElements {
 public:
  __device__ __forceinline__ HeldElements(const HeldWalk& held, const Walk& walk)
      : held_(held),
        channel_(
            std::int64_t{blockIdx.x} * held.channels +
            (static_cast<int>(threadIdx.x) & (held.channels - 1))),
        first_(threadIdx.x / static_cast<unsigned>(held.channels)),
        samples_(channel_ < walk.channels ? static_cast<std::uint32_t>(walk.samples) : 0) {}

  __device__ std::int64_t channel() const { return channel_; }
  __device__ bool present() const { return samples_ != 0; }

  /// X counts for dX and dScale alone.
  __device__ __forceinline__ void Load(const Operands& operands, bool products) {
    ForEach(first_, [&](int i, std::uint32_t sample) {
      const SamplePlace place(held_, sample);
      dy_[i] = *At<const T>(operands.dY, place.Offset(held_, operands.dY, channel_));
      x_[i] = products ? *At<const T>(operands.X, place.Offset(held_, operands.X, channel_))
                       : Convert<T>(0.F);
    });
  }

  /// Calls visit(dy, x) for each.
  template <typename Use>
  __device__ __forceinline__ void Visit(const Use& visit) const {
    ForEach(first_, [&](int i, std::uint32_t /*sample*/) { visit(dy_[i], x_[i]); });
  }

  /// Calls map(dy, x, before), where `before` is what the result is added to or null, and stores
  /// what it returns.
  template <typename Make>
  __device__ __forceinline__ void Store(const Operands& operands, const Make& map) const {
    std::uint32_t first = first_;
    // Keeps the compiler from holding the places of all samples since they were loaded.
    asm volatile("" : "+r"(first));
    ForEach(first, [&](int i, std::uint32_t sample) {
      const std::int64_t offset =
          SamplePlace(held_, sample).Offset(held_, operands.output, channel_);
      T* to = At<T>(operands.output, offset);
      *to = map(dy_[i], x_[i], operands.accumulate ? to : nullptr);
    });
  }

 private:
  /// Unrolled, so that elements have registers; what no thread of the block has is passed over.
  template <typename Each>
  __device__ __forceinline__ void ForEach(std::uint32_t first, const Each& each) const {
#pragma unroll
    for (int i = 0; i < kHeldElements<sizeof(T)>; ++i) {
      const std::uint32_t sample = first + static_cast<std::uint32_t>(i * held_.lanes);
      if (sample < samples_) {
        each(i, sample);
      }
    }
  }

  const HeldWalk& held_;
  std::int64_t channel_;
  std::uint32_t first_;
  std::uint32_t samples_;
  T dy_[kHeldElements<sizeof(T)>];
  T x_[kHeldElements<sizeof(T)>];
};

/// What a block has in shared memory of its channels.
struct HeldScratch {
  HeldStatistics statistics;
  HeldSums sums;
  double coefficients[kAllCoefficients][kMostHeldChannels];
  Units units[kMostHeldChannels];
  bool again[kMostHeldChannels];
};

/// The sums of the block's channels, which their first threads get.
template <Sums kSums, typename T>
__device__ __forceinline__ Totals SumHeld(
    const BackwardFinish& p,
    const Operands& operands,
    const HeldWalk& held,
    const HeldElements<T>& elements,
    HeldScratch& scratch) {
  using A = Accumulator<T>;
  A first_of_thread = 0;
  A second_of_thread = 0;
  if (elements.present()) {
    const std::int64_t channel = elements.channel();
    const A pivot = p.products ? Pivot<kSums, T>(p.walk, operands, p.normalization, channel) : A(0);
    const Gate<A> gate = GateOf<kSums, T>(p.normalization, channel);
    elements.Visit([&](T dy, T x) {
      AddTerm<kSums>(
          Convert<A>(dy), Convert<A>(x), pivot, gate, &first_of_thread, &second_of_thread);
    });
  }
  Totals totals = {first_of_thread, second_of_thread, {}};
  CombineThreads(held.channels, scratch.sums, Add, &totals.first, &totals.second);
  return totals;
}

/// dX from the coefficients.
template <Map kMap, typename T>
__device__ __forceinline__ void MapHeld(
    const Operands& operands,
    const HeldElements<T>& elements,
    int x,
    const HeldScratch& scratch) {
  using A = Accumulator<T>;
  if (scratch.coefficients[kUnit][x] == 1) {
    A narrow[kAllCoefficients];
#pragma unroll
    for (int k = 0; k < kCoefficients<kMap>; ++k) {
      narrow[k] = static_cast<A>(scratch.coefficients[k][x]);
    }
    elements.Store(operands, [&](T dy, T x_value, const T* before) {
      const A value = own::Apply<kMap>(narrow, Convert<A>(dy), Convert<A>(x_value));
      return Convert<T>(before == nullptr ? value : value + Convert<A>(*before));
    });
  } else {
    double wide[kAllCoefficients];
#pragma unroll
    for (int k = 0; k < kAllCoefficients; ++k) {
      const bool is_there = k != kGate || kMap == Map::kReluInputGradient;
      wide[k] = is_there ? scratch.coefficients[k][x] : 0;
    }
    elements.Store(operands, [&](T dy, T x_value, const T* before) {
      const double value = ApplyWide<kMap>(wide, Convert<double>(dy), Convert<double>(x_value));
      return Convert<T>(before == nullptr ? value : value + Convert<double>(*before));
    });
  }
}

/// What the sums come to, and dX.
template <Map kMap, typename T>
__device__ __forceinline__ void FinishHeld(
    const BackwardFinish& p,
    const Operands& operands,
    const HeldWalk& held,
    const HeldElements<T>& elements,
    const Totals& totals,
    HeldScratch& scratch) {
  if (threadIdx.x < held.channels && elements.present()) {
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

/// All of it with the sums of channels in doubt made anew. It is out of line and loads the elements
/// again, so that what happens seldom costs the rest no registers.
template <Map kMap, typename T>
__device__ __noinline__ void HeldBackwardAgain(
    const BackwardFinish& p,
    const Operands& operands,
    const HeldWalk& held,
    Totals totals,
    bool doubtful,
    HeldScratch& scratch) {
  HeldElements<T> elements(held, p.walk);
  elements.Load(operands, p.products);
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
    const TermsAgain terms = again.p.products ? again.TermsOf(elements.channel(), share.units)
                                              : TermsAgain{share.units};
    elements.Visit([&](T dy, T x_value) {
      terms.Add(Convert<double>(dy), Convert<double>(x_value), &share);
    });
  }
  CombineThreads(held.channels, scratch.sums, Add, &share.first, &share.second);
  FinishHeld<kMap>(p, operands, held, elements, is_better ? share : totals, scratch);
}

template <Sums kSums, Map kMap, typename T>
__device__ __forceinline__ void
HeldBackward(const BackwardFinish& p, const Operands& operands, const HeldWalk& held) {
  __shared__ HeldScratch scratch;
  HeldElements<T> elements(held, p.walk);
  elements.Load(operands, p.products);
  const bool is_first = threadIdx.x < held.channels;
  if (is_first) {
    scratch.statistics.Load(p, elements.channel(), elements.present());
  }
  const Totals totals = SumHeld<kSums>(p, operands, held, elements, scratch);
  const BackwardAgainOf<OfFirstThread> again = {p, {scratch.statistics}};
  const bool doubtful = is_first && elements.present() &&
                        again.IsDoubtful(elements.channel(), totals.first, totals.second);
  if (__syncthreads_or(doubtful ? 1 : 0) == 0) {
    FinishHeld<kMap>(p, operands, held, elements, totals, scratch);
  } else {
    HeldBackwardAgain<kMap, T>(p, operands, held, totals, doubtful, scratch);
  }
}

}  // namespace
}  // namespace gradsmith::batch_norm::own

#endif  // GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_HELD_CUH_
