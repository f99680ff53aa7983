#include "conv/cuda/direct_arguments.h"
#include "cuda/kernels/difference.cuh"
#include "cuda/kernels/element.cuh"

/// Convolutions by the definition; see conv/cuda/direct.h.
namespace gradsmith::conv::direct {
namespace {

using cuda::Accumulator;
using cuda::Convert;
using cuda::Difference;

/// One loop of a sum of products: where its terms lie in the two tensors that are read.
struct Loop {
  std::int64_t count;
  std::int64_t a_step;
  std::int64_t b_step;
};

/// All terms of one element of the result: four loops inside each other.
struct Terms {
  std::int64_t a;
  std::int64_t b;
  Loop loops[4];
};

/// The positions v of a loop with 0 <= start + v * step < size, 0 <= v < count.
struct Range {
  std::int64_t begin;
  std::int64_t end;
};

__device__ std::int64_t Max(std::int64_t a, std::int64_t b) {
  return a > b ? a : b;
}
__device__ std::int64_t Min(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}

/// Rounds up; b > 0. Zero where a is negative.
__device__ std::int64_t CeilDivide(std::int64_t a, std::int64_t b) {
  return a <= 0 ? 0 : (a - 1) / b + 1;
}

__device__ Range
Inside(std::int64_t start, std::int64_t step, std::int64_t size, std::int64_t count) {
  const Range range = {CeilDivide(-start, step), Min(count, CeilDivide(size - start, step))};
  return {range.begin, Max(range.begin, range.end)};
}

/// Where the element at an index of the result lies: (n, channel, axes) or (m, c, taps).
struct Position {
  std::int64_t at[kRank];
};

__device__ Position PositionOf(const Arguments& arguments, std::int64_t index) {
  Position position;
  const int innermost = arguments.channels_innermost ? 1 : kRank - 1;
  position.at[innermost] = index % arguments.dims[innermost];
  index /= arguments.dims[innermost];
  for (int i = kRank - 1; i >= 0; --i) {
    if (i != innermost) {
      position.at[i] = index % arguments.dims[i];
      index /= arguments.dims[i];
    }
  }
  return position;
}

/// Returns the index of a position: PositionOf in reverse.
__device__ std::int64_t IndexOf(const Arguments& arguments, const Position& position) {
  const int innermost = arguments.channels_innermost ? 1 : kRank - 1;
  std::int64_t index = 0;
  for (int i = 0; i < kRank; ++i) {
    if (i != innermost) {
      index = index * arguments.dims[i] + position.at[i];
    }
  }
  return index * arguments.dims[innermost] + position.at[innermost];
}

__device__ std::int64_t Offset(const std::int64_t (&strides)[kRank], const Position& position) {
  std::int64_t offset = 0;
  for (int i = 0; i < kRank; ++i) {
    offset += strides[i] * position.at[i];
  }
  return offset;
}

/// y[n, m, o]: a = x, b = w; over c and the taps that meet x.
__device__ Terms ForwardTerms(const Arguments& p, const Position& y) {
  const std::int64_t group = y.at[1] / p.y_channels;
  Terms terms;
  terms.a = y.at[0] * p.x_strides[0] + group * p.x_channels * p.x_strides[1];
  terms.b = y.at[1] * p.w_strides[0];
  terms.loops[0] = {p.x_channels, p.x_strides[1], p.w_strides[1]};
  for (int i = 0; i < kSpatialRank; ++i) {
    const AxisArguments& axis = p.axes[i];
    const std::int64_t start = y.at[2 + i] * axis.stride - axis.pad;
    const Range taps = Inside(start, axis.dilation, axis.x, axis.w);
    const std::int64_t x_stride = p.x_strides[2 + i];
    const std::int64_t w_stride = p.w_strides[2 + i];
    terms.a += (start + taps.begin * axis.dilation) * x_stride;
    terms.b += taps.begin * w_stride;
    terms.loops[1 + i] = {taps.end - taps.begin, axis.dilation * x_stride, w_stride};
  }
  return terms;
}

/// The taps k of an axis for which (x + pad - k * dilation) / stride is a position of y.
struct Taps {
  std::int64_t first;
  std::int64_t count;
  std::int64_t first_y;
};

__device__ Taps TapsOf(const AxisArguments& axis, std::int64_t x) {
  const std::int64_t padded = x + axis.pad;
  const Taps none = {0, 0, 0};
  if (axis.y == 0) {
    return none;
  }
  const std::int64_t end = Min(axis.w, padded / axis.dilation + 1);
  const std::int64_t begin = CeilDivide(padded - (axis.y - 1) * axis.stride, axis.dilation);
  // Every tap_step-th tap falls on a position of y; the first may be any of so many.
  const std::int64_t last_try = Min(end, begin + axis.tap_step);
  for (std::int64_t k = begin; k < last_try; ++k) {
    const std::int64_t reached = padded - k * axis.dilation;
    if (reached % axis.stride == 0) {
      return {k, (end - k - 1) / axis.tap_step + 1, reached / axis.stride};
    }
  }
  return none;
}

/// x[n, c, i]: a = y, b = w; over the m of c's group and the taps that reach x.
__device__ Terms BackwardDataTerms(const Arguments& p, const Position& x) {
  const std::int64_t group = x.at[1] / p.x_channels;
  const std::int64_t first_m = group * p.y_channels;
  Terms terms;
  terms.a = x.at[0] * p.y_strides[0] + first_m * p.y_strides[1];
  terms.b = first_m * p.w_strides[0] + (x.at[1] - group * p.x_channels) * p.w_strides[1];
  terms.loops[0] = {p.y_channels, p.y_strides[1], p.w_strides[0]};
  for (int i = 0; i < kSpatialRank; ++i) {
    const AxisArguments& axis = p.axes[i];
    const Taps taps = TapsOf(axis, x.at[2 + i]);
    const std::int64_t y_stride = p.y_strides[2 + i];
    const std::int64_t w_stride = p.w_strides[2 + i];
    terms.a += taps.first_y * y_stride;
    terms.b += taps.first * w_stride;
    terms.loops[1 + i] = {taps.count, -axis.y_step * y_stride, axis.tap_step * w_stride};
  }
  return terms;
}

/// w[m, c, k]: a = x, b = y; over n and the o whose tap k meets x.
__device__ Terms BackwardFilterTerms(const Arguments& p, const Position& w) {
  const std::int64_t group = w.at[0] / p.y_channels;
  Terms terms;
  terms.a = (group * p.x_channels + w.at[1]) * p.x_strides[1];
  terms.b = w.at[0] * p.y_strides[1];
  terms.loops[0] = {p.batch, p.x_strides[0], p.y_strides[0]};
  for (int i = 0; i < kSpatialRank; ++i) {
    const AxisArguments& axis = p.axes[i];
    const std::int64_t start = w.at[2 + i] * axis.dilation - axis.pad;
    const Range outputs = Inside(start, axis.stride, axis.x, axis.y);
    const std::int64_t x_stride = p.x_strides[2 + i];
    const std::int64_t y_stride = p.y_strides[2 + i];
    terms.a += (start + outputs.begin * axis.stride) * x_stride;
    terms.b += outputs.begin * y_stride;
    terms.loops[1 + i] = {outputs.end - outputs.begin, axis.stride * x_stride, y_stride};
  }
  return terms;
}

__device__ Terms TermsOf(const Arguments& arguments, const Position& position) {
  switch (arguments.primitive) {
    case kForward:
      return ForwardTerms(arguments, position);
    case kBackwardData:
      return BackwardDataTerms(arguments, position);
    default:
      return BackwardFilterTerms(arguments, position);
  }
}

__device__ const std::int64_t (&ResultStrides(const Arguments& arguments))[kRank] {
  switch (arguments.primitive) {
    case kForward:
      return arguments.y_strides;
    case kBackwardData:
      return arguments.x_strides;
    default:
      return arguments.w_strides;
  }
}

/// Sums of sums: each loop has one of its own, so that rounding errors grow with the loops' lengths
/// and not with their product.
template <int kLoop, typename T>
__device__ Accumulator<T>
SumLoop(const Terms& terms, std::int64_t at_a, std::int64_t at_b, const T* a, const T* b) {
  const Loop& loop = terms.loops[kLoop];
  Accumulator<T> sum = 0;
  for (std::int64_t i = 0; i < loop.count; ++i) {
    if constexpr (kLoop == 3) {
      sum += Convert<Accumulator<T>>(a[at_a]) * Convert<Accumulator<T>>(b[at_b]);
    } else {
      sum += SumLoop<kLoop + 1>(terms, at_a, at_b, a, b);
    }
    at_a += loop.a_step;
    at_b += loop.b_step;
  }
  return sum;
}

template <typename T>
__device__ Accumulator<T> Sum(const Terms& terms, const T* a, const T* b) {
  return SumLoop<0>(terms, terms.a, terms.b, a, b);
}

template <typename T>
__device__ void
Direct(const Arguments& arguments, const T* a, const T* b, T* result, bool accumulate) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t index = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
       index < arguments.count; index += step) {
    const Position position = PositionOf(arguments, index);
    const Accumulator<T> sum = Sum(TermsOf(arguments, position), a, b);
    T& element = result[Offset(ResultStrides(arguments), position)];
    element = Convert<T>(accumulate ? Convert<Accumulator<T>>(element) + sum : sum);
  }
}

/// SplitMix64 by Steele, Lea and Flood.
__device__ std::uint64_t Hash(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15U;
  value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27U)) * 0x94D049BB133111EBU;
  return value ^ (value >> 31U);
}

__device__ Position CornerPosition(const Arguments& arguments, std::int64_t corner) {
  Position position;
  for (int i = 0; i < kRank; ++i) {
    position.at[i] = ((corner >> i) & 1) != 0 ? arguments.dims[i] - 1 : 0;
  }
  return position;
}

/// Anywhere, but on one end of one dim.
__device__ Position
BorderPosition(const Arguments& arguments, std::int64_t place, std::int64_t side) {
  Position position;
  for (int i = 0; i < kRank; ++i) {
    const std::uint64_t hash = Hash(static_cast<std::uint64_t>(place) * kRank + i);
    position.at[i] =
        static_cast<std::int64_t>(hash % static_cast<std::uint64_t>(arguments.dims[i]));
  }
  position.at[side / 2] = side % 2 == 0 ? 0 : arguments.dims[side / 2] - 1;
  return position;
}

__device__ std::int64_t
StratumIndex(const Arguments& arguments, std::int64_t stratum, std::int64_t strata) {
  const std::int64_t length = arguments.count / strata;
  const std::int64_t left = arguments.count % strata;
  const std::int64_t begin = stratum * length + Min(stratum, left);
  const std::int64_t size = length + (stratum < left ? 1 : 0);
  const std::uint64_t hash = Hash(~static_cast<std::uint64_t>(stratum));
  return begin + static_cast<std::int64_t>(hash % static_cast<std::uint64_t>(size));
}

/// The elements of a place are neighbours in the order of PositionOf.
__device__ Position
SamplePosition(const Arguments& arguments, const Sample& sample, std::int64_t number) {
  constexpr std::int64_t kCorners = 1 << kRank;
  if (sample.all) {
    return PositionOf(arguments, number);
  }
  if (number < kCorners) {
    return CornerPosition(arguments, number);
  }
  number -= kCorners;
  const std::int64_t place = number / sample.neighbours;
  const std::int64_t neighbour = number - place * sample.neighbours;
  const std::int64_t of_borders = sample.border * 2 * kRank;
  const std::int64_t index =
      place < of_borders
          ? IndexOf(arguments, BorderPosition(arguments, place, place / sample.border))
          : StratumIndex(arguments, place - of_borders, sample.strata);
  return PositionOf(arguments, (index + neighbour) % arguments.count);
}

/// Makes the longer of the first and the last loop the innermost, since its terms are found without
/// a division. A last loop along lines of images stays the innermost, since neighbouring threads
/// then read neighbouring elements.
__device__ void PutLongInnermost(const Arguments& arguments, Terms* terms) {
  constexpr std::int64_t kFew = 4;
  const std::int64_t last = terms->loops[3].count;
  const bool runs_along_lines = arguments.primitive == kBackwardFilter && last >= kFew;
  if (last < terms->loops[0].count && !runs_along_lines) {
    const Loop longer = terms->loops[0];
    terms->loops[0] = terms->loops[3];
    terms->loops[3] = longer;
  }
}

/// Returns the logarithm to base 2 of how many threads share a run of the innermost loop: as many
/// as get eight of its terms each, but one at least.
__device__ unsigned PowerOfThreads(std::int64_t terms, unsigned threads) {
  constexpr std::int64_t kTerms = 8;
  unsigned power = 0;
  while ((2U << power) <= threads && (2U << power) * kTerms <= terms) {
    ++power;
  }
  return power;
}

/// Run names a run of the innermost loop by where the loops around it are.
struct Run {
  std::int64_t at[3];
};

/// Returns the run with a number. Beyond the last run at[0] is not less than its loop's count.
__device__ Run RunOf(const Terms& terms, std::int64_t number) {
  Run run;
  for (int i = 2; i > 0; --i) {
    run.at[i] = number % terms.loops[i].count;
    number /= terms.loops[i].count;
  }
  run.at[0] = number;
  return run;
}

/// Adds `by` to a run's number, with carries instead of divisions.
__device__ void Advance(const Terms& terms, const Run& by, Run* run) {
  std::int64_t carry = 0;
  for (int i = 2; i > 0; --i) {
    run->at[i] += by.at[i] + carry;
    carry = run->at[i] >= terms.loops[i].count ? 1 : 0;
    run->at[i] -= carry * terms.loops[i].count;
  }
  run->at[0] += by.at[0] + carry;
}

/// Returns the sum of the products a[i * a_step] * b[i * b_step] for i below `terms`. A thread
/// reads a batch of terms before it adds them up, since it would otherwise wait for the memory at
/// each of them. Where the last batch is not full, it reads that batch's first term again instead
/// and adds nothing.
template <typename T>
__device__ double
SumRun(std::int64_t terms, const T* a, std::int64_t a_step, const T* b, std::int64_t b_step) {
  constexpr int kBatch = 8;
  double sum = 0;
  for (; terms > 0; terms -= kBatch) {
    T of_a[kBatch];
    T of_b[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const std::int64_t place = i < terms ? i : 0;
      of_a[i] = a[place * a_step];
      of_b[i] = b[place * b_step];
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const double product = Convert<double>(of_a[i]) * Convert<double>(of_b[i]);
      sum += i < terms ? product : 0;
    }
    a += kBatch * a_step;
    b += kBatch * b_step;
  }
  return sum;
}

/// Returns the sum of those terms that are the share of one of `threads` threads.
template <typename T>
__device__ double
SumShare(const Terms& terms, unsigned thread, unsigned threads, const T* a, const T* b) {
  for (const Loop& loop : terms.loops) {
    if (loop.count == 0) {
      return 0;
    }
  }
  const Loop& along = terms.loops[3];
  const unsigned power = PowerOfThreads(along.count, threads);
  const unsigned of_run = 1U << power;
  const unsigned first = thread % of_run;
  const std::int64_t of_thread = (along.count - first + of_run - 1) >> power;
  const Run step = RunOf(terms, threads >> power);
  double sum = 0;
  for (Run run = RunOf(terms, thread >> power); run.at[0] < terms.loops[0].count;
       Advance(terms, step, &run)) {
    std::int64_t at_a = terms.a + first * along.a_step;
    std::int64_t at_b = terms.b + first * along.b_step;
    for (int i = 0; i < 3; ++i) {
      at_a += run.at[i] * terms.loops[i].a_step;
      at_b += run.at[i] * terms.loops[i].b_step;
    }
    sum += SumRun(of_thread, a + at_a, along.a_step * of_run, b + at_b, along.b_step * of_run);
  }
  return sum;
}

/// Adds up the shares of those threads of a block whose numbers differ by a multiple of `apart`.
/// Each of the first `apart` threads gets its sum.
__device__ double SumBlock(double share, unsigned apart) {
  __shared__ double shares[kMaxBlockThreads];
  shares[threadIdx.x] = share;
  for (unsigned half = blockDim.x / 2; half >= apart; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      shares[threadIdx.x] += shares[threadIdx.x + half];
    }
  }
  return shares[threadIdx.x];
}

/// Returns the sum of a number's element, of `neighbours` that a block has; thread t adds up terms
/// of element t % neighbours. Each of the first `neighbours` threads gets its element's.
template <typename T>
__device__ double SumOfElement(
    const Arguments& arguments,
    const Position& position,
    bool is_one,
    unsigned neighbours,
    const T* a,
    const T* b) {
  double share = 0;
  if (is_one) {
    Terms terms = TermsOf(arguments, position);
    PutLongInnermost(arguments, &terms);
    share = SumShare(terms, threadIdx.x / neighbours, blockDim.x / neighbours, a, b);
  }
  return SumBlock(share, neighbours);
}

/// Direct for long sums of few elements: a block has `neighbours` of them.
template <typename T>
__device__ void DirectByBlocks(
    const Arguments& arguments,
    unsigned neighbours,
    const T* a,
    const T* b,
    T* result,
    bool accumulate) {
  const std::int64_t index =
      std::int64_t{blockIdx.x} * neighbours + threadIdx.x % neighbours;
  const bool is_one = index < arguments.count;
  const Position position = PositionOf(arguments, is_one ? index : 0);
  const double sum = SumOfElement(arguments, position, is_one, neighbours, a, b);
  if (threadIdx.x < neighbours && is_one) {
    T& element = result[Offset(ResultStrides(arguments), position)];
    element = Convert<T>(accumulate ? Convert<double>(element) + sum : sum);
  }
}

/// Bits of the significand where sums may be rounded twice; 0 where nobody asks.
template <typename T>
constexpr int kDigits = 0;
template <>
constexpr int kDigits<__half> = 11;
template <>
constexpr int kDigits<__nv_bfloat16> = 8;

/// Half a unit in the last place of a number.
template <typename T>
__device__ double HalfUnit(double number) {
  int exponent = 0;
  frexp(number, &exponent);
  return scalbn(1.0, exponent - kDigits<T> - 1);
}

/// Half of the least number of a type whose subnormal numbers count.
template <typename T>
constexpr double kHalfOfLeast = 0;
template <>
constexpr double kHalfOfLeast<__half> = 0x1.04p-25;

template <typename T>
__device__ void Record(double stored, double expected, Difference* difference) {
  if (fabs(stored - expected) <= kHalfOfLeast<T>) {
    stored = expected;
  }
  Difference found = {};
  found.compared = 1;
  cuda::AddPair(stored, expected, expected * expected, &found);
  // A little more than one rounding, for what the sums in float are off.
  if (kDigits<T> > 0 && found.largest_error > 1.02 * HalfUnit<T>(expected) + 1e-6) {
    found.rounded_twice = 1;
  }
  cuda::MergeAtomically(found, difference);
}

/// Each block checks `neighbours` elements.
template <typename T>
__device__ void Check(
    const Arguments& arguments,
    const Sample& sample,
    const T* a,
    const T* b,
    const T* result,
    const T* before,
    Difference* difference) {
  const unsigned neighbour = threadIdx.x % sample.neighbours;
  const std::int64_t number = std::int64_t{blockIdx.x} * sample.neighbours + neighbour;
  const bool is_one = number < sample.count;
  const Position position = SamplePosition(arguments, sample, is_one ? number : 0);
  const double sum = SumOfElement(arguments, position, is_one, sample.neighbours, a, b);
  if (threadIdx.x < sample.neighbours && is_one) {
    const std::int64_t offset = Offset(ResultStrides(arguments), position);
    const double old = before == nullptr ? 0 : Convert<double>(before[offset]);
    Record<T>(Convert<double>(result[offset]), old + sum, difference);
  }
}

}  // namespace
}  // namespace gradsmith::conv::direct

#define GRADSMITH_CONV_KERNELS(suffix, T)                                                       \
  extern "C" __global__ void __launch_bounds__(gradsmith::conv::direct::kThreads)               \
      gradsmith_conv_direct_##suffix(                                                           \
          gradsmith::conv::direct::Arguments arguments, const void* a, const void* b,           \
          void* result, bool accumulate) {                                                      \
    gradsmith::conv::direct::Direct(                                                            \
        arguments, static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(result), \
        accumulate);                                                                            \
  }                                                                                             \
  extern "C" __global__ void __launch_bounds__(gradsmith::conv::direct::kMaxBlockThreads)       \
      gradsmith_conv_direct_by_blocks_##suffix(                                                 \
          gradsmith::conv::direct::Arguments arguments, unsigned neighbours, const void* a,     \
          const void* b, void* result, bool accumulate) {                                       \
    gradsmith::conv::direct::DirectByBlocks(                                                    \
        arguments, neighbours, static_cast<const T*>(a), static_cast<const T*>(b),              \
        static_cast<T*>(result), accumulate);                                                   \
  }                                                                                             \
  extern "C" __global__ void __launch_bounds__(gradsmith::conv::direct::kMaxBlockThreads)       \
      gradsmith_conv_check_##suffix(                                                            \
          gradsmith::conv::direct::Arguments arguments, gradsmith::conv::direct::Sample sample, \
          const void* a, const void* b, const void* result, const void* before,                 \
          gradsmith::cuda::Difference* difference) {                                            \
    gradsmith::conv::direct::Check(                                                             \
        arguments, sample, static_cast<const T*>(a), static_cast<const T*>(b),                  \
        static_cast<const T*>(result), static_cast<const T*>(before), difference);              \
  }

GRADSMITH_CONV_KERNELS(f32, float)
GRADSMITH_CONV_KERNELS(f64, double)
GRADSMITH_CONV_KERNELS(f16, __half)
GRADSMITH_CONV_KERNELS(bf16, __nv_bfloat16)
