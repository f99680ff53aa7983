#ifndef GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_AGAIN_CUH_
#define GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_AGAIN_CUH_

#include "batch_norm/cuda/kernels/batch_norm_sums.cuh"

/// Sums that are made anew: of a channel whose numbers are so large or so small that what threads
/// added up, squares and products, may have left the range of their type. All is in double here,
/// and X - pivot in a unit that makes the largest of it about one.
namespace gradsmith::batch_norm::own {
namespace {

/// Powers of two that make what is summed about one, where its type's range asks for it.
struct Units {
  double of_deviation = 1;  ///< X - pivot is multiplied with it
  double of_gradient = 1;   ///< dY is multiplied with it
};

/// A channel's two sums: what the first is of depends on the direction, the second is of products.
struct Totals {
  double first;
  double second;
  Units units;
};

/// Whether 1 / sqrt(variance + epsilon), or its product with scale, is so far from one that maps
/// need double and a unit: what they multiply with leaves the range of float (of a unit, that of
/// double) otherwise. A small product harms large deviations alone.
__device__ bool IsWide(double inv_std, double scale, int type) {
  const double most = type == kDouble ? 0x1p400 : 0x1p40;
  const double least = type == kDouble ? 0x1p-400 : 0x1p-40;
  if (!isfinite(inv_std) || !(inv_std > 0)) {
    return false;
  }
  const double factor = fabs(scale * inv_std);
  const bool is_small = factor > 0 && factor < least * least && inv_std < 0.125;
  return inv_std < least || inv_std > most || factor > most * most || is_small;
}

/// Whether what is made of gradients that add up to about `sum` leaves the range of the type that
/// it is computed in: their products with deviations, and what maps multiply deviations with.
__device__ bool LeavesRange(double sum, double samples, double inv_std, double scale, int type) {
  const double least = type == kDouble ? 0x1p-900 : 0x1p-110;
  if (!isfinite(inv_std) || !(sum > 0)) {
    return false;
  }
  const double slopes = sum * fabs(scale) * inv_std * inv_std;
  const bool is_small = slopes < least * samples && scale != 0 && inv_std < 0.125;
  return sum < least * inv_std * samples || slopes * least > samples || is_small;
}

/// A power of two that makes numbers of a size about one, and itself is a number of double by which
/// one can divide.
__device__ double UnitFor(double size) {
  constexpr int kMost = 1020;
  if (!(size > 0) || !isfinite(size)) {
    return 1;
  }
  const int exponent = -ilogb(size);
  return scalbn(1.0, exponent > kMost ? kMost : (exponent < -kMost ? -kMost : exponent));
}

/// The unit of a wide channel, which is not one. A mean that is large beside its deviation stays
/// finite in it.
__device__ double WideUnit(double inv_std, double mean) {
  double unit = UnitFor(1 / inv_std);
  const double most = UnitFor(fabs(mean)) * 0x1p900;
  if (mean != 0 && unit > most) {
    unit = most;
  }
  return unit == 1 ? 2 : unit;
}

__device__ double SampleAt(
    const SampleGrid& grid,
    const Operand& operand,
    int type,
    std::int64_t channel,
    std::int64_t sample) {
  std::int64_t offset = channel * operand.channel_stride;
  for (int k = kInner; k >= 0; --k) {
    const std::int64_t next = Divide(sample, grid.counts[k]);
    offset += (sample - next * grid.counts[k]) * operand.strides[k];
    sample = next;
  }
  return LoadElement(operand.data, type, offset);
}

/// The largest magnitude of some samples; infinite where one is not finite.
__device__ double LargestOf(
    const SampleGrid& grid,
    const Operand& operand,
    int type,
    std::int64_t channel,
    std::int64_t samples,
    int lane,
    int lanes) {
  double largest = 0;
#pragma unroll 4
  for (std::int64_t i = lane; i < samples; i += lanes) {
    const double value = fabs(SampleAt(grid, operand, type, channel, i));
    if (!isfinite(value)) {
      return HUGE_VAL;
    }
    largest = fmax(largest, value);
  }
  return largest;
}

/// What makes a channel's sums of the forward anew.
struct ForwardAgain {
  const ForwardFinish& p;

  /// A square that is below float's range may be lost where nothing larger is added.
  __device__ bool IsDoubtful(std::int64_t /*channel*/, double first, double second) const {
    if (p.walk.samples == 0) {
      return false;
    }
    const double least = p.type == kDouble ? 0x1p-900 : 0x1p-90;
    // Not as quotients: a division takes as long as a small problem's loads.
    const auto m = static_cast<double>(p.walk.samples);
    return !isfinite(first) || !isfinite(second) || second + p.epsilon * m < least * m;
  }

  __device__ double Largest(std::int64_t channel, int lane, int lanes) const {
    return LargestOf(p.grid, p.grid.X, p.type, channel, p.walk.samples, lane, lanes);
  }

  /// Epsilon must fit beside the squares.
  __device__ Units UnitsOf(std::int64_t /*channel*/, double largest) const {
    return {UnitFor(fmax(largest, sqrt(p.epsilon)))};
  }

  __device__ Totals Sum(std::int64_t channel, const Units& units, int lane, int lanes) const {
    const double unit = units.of_deviation;
    const double offset = -MedianSample(p.walk, p.X, p.type, channel) * unit;
    Totals totals = {0, 0, units};
    // Few lanes sum many samples, whose distances from the pivot add up: Kahan's sum keeps what
    // rounding takes from it. nvcc does not reorder additions.
    double lost = 0;
#pragma unroll 4
    for (std::int64_t i = lane; i < p.walk.samples; i += lanes) {
      const double deviation = fma(SampleAt(p.grid, p.grid.X, p.type, channel, i), unit, offset);
      const double term = deviation - lost;
      const double sum = totals.first + term;
      lost = (sum - totals.first) - term;
      totals.first = sum;
      totals.second += deviation * deviation;
    }
    return totals;
  }
};

/// What channels are normalized with, loaded where it is used.
struct StoredStatistics {
  const Normalization& given;

  __device__ double mean(std::int64_t channel) const { return LoadParameter(given.mean, channel); }
  __device__ double inv_std(std::int64_t channel) const {
    return LoadParameter(given.inv_std, channel);
  }
  __device__ double scale(std::int64_t channel) const {
    return LoadParameter(given.scale, channel);
  }
  __device__ double bias(std::int64_t channel) const { return LoadParameter(given.bias, channel); }
};

/// ReLU's gate of a wide channel, as maps have it: of (X - pivot) * unit.
struct WideGate {
  double factor;
  double shift;
};

template <typename Statistics>
__device__ WideGate
WideGateOf(const Statistics& given, std::int64_t channel, double rest, double unit) {
  const double factor = given.scale(channel) * given.inv_std(channel);
  return {factor, ShiftOf(given.bias(channel), rest, factor) * unit};
}

/// The terms of a channel's sums of the gradient that are made anew.
struct TermsAgain {
  Units units;
  double pivot = 0;
  bool relu = false;
  WideGate gate{};

  __device__ void Add(double dy, double x, Totals* totals) const {
    const double unit = units.of_deviation;
    const double deviation = fma(x, unit, -pivot * unit);
    dy *= units.of_gradient;
    if (relu && fma(deviation, gate.factor, gate.shift) <= 0) {  // as the map decides, bit for bit
      dy = 0;
    }
    totals->first += dy;
    totals->second += dy * deviation;
  }
};

/// What makes a channel's sums of the gradient anew.
template <typename Statistics>
struct BackwardAgainOf {
  const BackwardFinish& p;
  Statistics given;

  /// Where both sums are zero, dY most likely is: ReLU leaves nothing of many channels.
  __device__ bool IsDoubtful(std::int64_t channel, double first, double second) const {
    if (p.walk.samples == 0) {
      return false;
    }
    if (!isfinite(first) || !isfinite(second)) {
      return true;
    }
    if (!p.products) {
      return false;
    }
    const double inv_std = given.inv_std(channel);
    const double scale = given.scale(channel);
    const double sum = fmax(fabs(first), fabs(second) * inv_std);
    const auto m = static_cast<double>(p.walk.samples);
    return IsWide(inv_std, scale, p.type) || LeavesRange(sum, m, inv_std, scale, p.type);
  }

  /// Returns the largest magnitude of dY, which its unit is chosen by; infinity where an element of
  /// dY, or of X where products are summed, is not finite.
  __device__ double Largest(std::int64_t channel, int lane, int lanes) const {
    const double of_dy = LargestOf(p.grid, p.grid.dY, p.type, channel, p.walk.samples, lane, lanes);
    const bool is_finite =
        isfinite(of_dy) &&
        (!p.products ||
         isfinite(LargestOf(p.grid, p.grid.X, p.type, channel, p.walk.samples, lane, lanes)));
    return is_finite ? of_dy : HUGE_VAL;
  }

  __device__ Units UnitsOf(std::int64_t channel, double largest) const {
    Units units;
    if (p.type == kDouble) {
      units.of_gradient = UnitFor(largest);
    }
    if (p.products) {
      units.of_deviation = WideUnit(given.inv_std(channel), given.mean(channel));
    }
    return units;
  }

  __device__ Totals Sum(std::int64_t channel, const Units& units, int lane, int lanes) const {
    Totals totals = {0, 0, units};
    if (!p.products) {
#pragma unroll 4
      for (std::int64_t i = lane; i < p.walk.samples; i += lanes) {
        totals.first += SampleAt(p.grid, p.grid.dY, p.type, channel, i) * units.of_gradient;
      }
      return totals;
    }
    const TermsAgain terms = TermsOf(channel, units);
#pragma unroll 2
    for (std::int64_t i = lane; i < p.walk.samples; i += lanes) {
      const double x = SampleAt(p.grid, p.grid.X, p.type, channel, i);
      terms.Add(SampleAt(p.grid, p.grid.dY, p.type, channel, i), x, &totals);
    }
    return totals;
  }

  /// Where products are summed.
  __device__ TermsAgain TermsOf(std::int64_t channel, const Units& units) const {
    const double mean = given.mean(channel);
    const double pivot = RoundPivot(mean, p.type);
    const bool relu = p.normalization.bias.present;
    return {
        units, pivot, relu,
        relu ? WideGateOf(given, channel, mean - pivot, units.of_deviation) : WideGate{0, 0}};
  }
};

struct BackwardAgain : BackwardAgainOf<StoredStatistics> {
  __device__ explicit BackwardAgain(const BackwardFinish& finish)
      : BackwardAgainOf<StoredStatistics>{finish, {finish.normalization}} {}
};

/// The sums of a channel that a thread has to itself, made anew where they are in doubt.
template <typename Again>
__device__ Totals TotalsOf(const Again& again, std::int64_t channel, double first, double second) {
  const Totals found = {first, second, {}};
  if (!again.IsDoubtful(channel, first, second)) {
    return found;
  }
  const double largest = again.Largest(channel, 0, 1);
  // Another sum of what is not finite is no better.
  return isfinite(largest) ? again.Sum(channel, again.UnitsOf(channel, largest), 0, 1) : found;
}

/// What a block of kFinishLanes for each of its channels adds up in.
template <int kChannels>
using FinishSums = double[2][kFinishLanes][kChannels];

/// Adds up, or takes the largest of, what all lanes have of each of the two; the first lane has it.
template <int kChannels, typename Combine>
__device__ __forceinline__ void
CombineLanes(FinishSums<kChannels>& sums, int x, int y, const Combine& combine) {
  for (int half = kFinishLanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (y < half) {
      combine(sums[0][y + half][x], &sums[0][y][x]);
      combine(sums[1][y + half][x], &sums[1][y][x]);
    }
  }
}

/// The same by a block, of its channels that are in doubt; `*totals` of the first lanes. All sums
/// are in the first lanes' places.
template <int kChannels, typename Again>
__device__ __forceinline__ void SumDoubtful(
    const Again& again,
    std::int64_t channel,
    std::int64_t channels,
    int x,
    int y,
    FinishSums<kChannels>& sums,
    Totals* totals) {
  bool doubtful = false;
  if (y == 0) {
    doubtful = channel < channels && again.IsDoubtful(channel, sums[0][0][x], sums[1][0][x]);
    *totals = {sums[0][0][x], sums[1][0][x], {}};
    sums[0][1][x] = doubtful ? 1 : 0;
  }
  if (__syncthreads_or(doubtful ? 1 : 0) == 0) {
    return;
  }
  const bool mine = sums[0][1][x] != 0;
  __syncthreads();
  sums[0][y][x] = mine ? again.Largest(channel, y, kFinishLanes) : 0;
  sums[1][y][x] = 0;
  CombineLanes<kChannels>(sums, x, y, [](double from, double* to) { *to = fmax(*to, from); });
  __syncthreads();
  const double largest = sums[0][0][x];
  const bool is_better = mine && isfinite(largest);
  __syncthreads();
  Totals share = {0, 0, {}};
  if (is_better) {
    share = again.Sum(channel, again.UnitsOf(channel, largest), y, kFinishLanes);
  }
  sums[0][y][x] = share.first;
  sums[1][y][x] = share.second;
  CombineLanes<kChannels>(sums, x, y, [](double from, double* to) { *to += from; });
  if (y == 0 && is_better) {
    *totals = {sums[0][0][x], sums[1][0][x], share.units};
  }
}

}  // namespace
}  // namespace gradsmith::batch_norm::own

#endif  // GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_AGAIN_CUH_
