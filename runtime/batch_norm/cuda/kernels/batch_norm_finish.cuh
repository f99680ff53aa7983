#ifndef GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_FINISH_CUH_
#define GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_FINISH_CUH_

#include "batch_norm/cuda/kernels/batch_norm_again.cuh"

/// The second step: what the sums come to.
namespace gradsmith::batch_norm::own {
namespace {

/// What a map needs of a channel: rows of the coefficients, one for each channel.
///   Y  = (X - pivot) * factor + shift
///   dX = dY * factor + (X - pivot) * slope + shift
/// With ReLU dY counts where (X - pivot) * factor + gate is positive. A wide channel has a unit
/// that is not one, and for X - pivot then stands (X - pivot) * unit.
enum Coefficient { kPivot, kFactor, kShift, kSlope, kGate, kUnit };
static_assert(kUnit + 1 == kAllCoefficients);

/// Where a channel's coefficients go: `apart` from one to the next.
struct CoefficientPlace {
  double* first;
  std::int64_t apart;

  __device__ void Store(double pivot, double factor, double shift, double slope, double unit)
      const {
    first[kPivot * apart] = pivot;
    first[kFactor * apart] = factor;
    first[kShift * apart] = shift;
    first[kSlope * apart] = slope;
    first[kUnit * apart] = unit;
  }
  __device__ void StoreGate(double gate) const { first[kGate * apart] = gate; }
};

/// Calls finish(channel, totals) with the sums over all of a channel's partial sums, or with those
/// made anew where they are in doubt. A block, the `block`-th of so many, has kChannels at a time.
template <int kChannels, typename Again, typename Finish>
__device__ __forceinline__ void ForEachSum(
    const Walk& walk,
    const Again& again,
    const double* partials,
    std::int64_t block,
    std::int64_t blocks,
    FinishSums<kChannels>& sums,
    const Finish& finish) {
  const int x = static_cast<int>(threadIdx.x) % kChannels;
  const int y = static_cast<int>(threadIdx.x) / kChannels;
  const std::int64_t rows = walk.slices * walk.places / walk.channels;
  for (std::int64_t begin = block * kChannels; begin < walk.channels; begin += blocks * kChannels) {
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
    CombineLanes<kChannels>(sums, x, y, [](double from, double* to) { *to += from; });
    Totals totals = {0, 0, {}};
    SumDoubtful<kChannels>(again, channel, walk.channels, x, y, sums, &totals);
    if (y == 0 && channel < walk.channels) {
      finish(channel, totals);
    }
    __syncthreads();
  }
}

struct Moments {
  double pivot;
  double rest;       ///< what the mean is beyond the pivot, times unit
  double deviation;  ///< sum of the squared deviations from the mean, times unit^2
  double unit;

  __device__ double mean() const { return pivot + (unit == 1 ? rest : rest / unit); }
};

/// MomentsOf makes a channel's moments from the sums of X - pivot and its square.
__device__ Moments MomentsOf(const ForwardFinish& p, std::int64_t channel, const Totals& totals) {
  if (p.walk.samples == 0) {
    return {0, 0, 0, 1};
  }
  const auto m = static_cast<double>(p.walk.samples);
  const double deviation = totals.second - totals.first * totals.first / m;
  // Rounding must not make it negative; a NaN stays one.
  return {
      MedianSample(p.walk, p.X, p.type, channel), totals.first / m, deviation < 0 ? 0 : deviation,
      totals.units.of_deviation};
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
    mean = weight * mean + (1 - weight) * moments.mean();
    const double scaled = moments.deviation / (m > 1 ? m - 1 : 1);
    const bool has_unit = moments.unit != 1;
    var = weight * var + (1 - weight) * (has_unit ? scaled / moments.unit / moments.unit : scaled);
  }
  StoreParameter(p.new_running_mean, channel, mean);
  StoreParameter(p.new_running_var, channel, var);
}

__device__ void FinishMoments(
    const ForwardFinish& p,
    std::int64_t channel,
    const Moments& moments,
    const CoefficientPlace& place) {
  const double m = p.walk.samples > 0 ? static_cast<double>(p.walk.samples) : 1;
  // In the moments' unit it is a number also where it has none of its type.
  const double scaled = 1 / sqrt(moments.deviation / m + p.epsilon * moments.unit * moments.unit);
  const double inv_std = moments.unit * scaled;
  const double mean = moments.mean();
  const double bias = LoadParameter(p.bias, channel);
  const double scale = LoadParameter(p.scale, channel);
  if (IsWide(inv_std, scale, p.type) || (isinf(inv_std) && isfinite(scaled))) {
    const bool has_unit = moments.unit != 1;
    const double unit = has_unit ? moments.unit : WideUnit(inv_std, mean);
    const double rest = has_unit ? moments.rest : moments.rest * unit;
    const double factor = scale * (has_unit ? scaled : inv_std / unit);
    place.Store(moments.pivot, factor, ShiftOf(bias, rest, factor), 0, unit);
  } else {
    const double pivot = RoundPivot(mean, p.type);
    const double rest = moments.unit == 1 ? moments.rest : moments.rest / moments.unit;
    const double factor = scale * inv_std;
    place.Store(pivot, factor, ShiftOf(bias, (moments.pivot - pivot) + rest, factor), 0, 1);
  }
  UpdateRunning(p, channel, moments);
  StoreParameter(p.saved_mean, channel, mean);
  StoreParameter(p.saved_inv_std, channel, inv_std);
}

__device__ void FinishForward(
    const ForwardFinish& p,
    std::int64_t channel,
    const Totals& totals,
    double* coefficients) {
  FinishMoments(
      p, channel, MomentsOf(p, channel, totals), {coefficients + channel, p.walk.channels});
}

/// The first sum is of dY, the second of dY and X - mean, the mean rounded as pivots are; with ReLU
/// of what it passes on of dY.
template <typename Statistics>
__device__ void FinishGradientSums(
    const BackwardFinish& p,
    const Statistics& given,
    std::int64_t channel,
    const Totals& totals,
    const CoefficientPlace& place) {
  const double unit = totals.units.of_deviation;
  const double gradient_unit = totals.units.of_gradient;
  const auto in_unit_one = [&](double sum) {
    return gradient_unit == 1 ? sum : sum / gradient_unit;
  };
  StoreParameter(p.dBias, channel, in_unit_one(totals.first));
  if (!p.products) {
    return;
  }
  if (p.walk.samples == 0) {
    // The sum of nothing is zero, also where saved_inv_std is the infinite 1 / sqrt(0 + 0).
    StoreParameter(p.dScale, channel, 0);
    return;
  }
  const double mean = given.mean(channel);
  const double inv_std = given.inv_std(channel);
  const double pivot = RoundPivot(mean, p.type);
  const double rest = (mean - pivot) * unit;
  const double inv_std_in_unit = unit == 1 ? inv_std : inv_std / unit;
  const double dscale = (totals.second - rest * totals.first) * inv_std_in_unit;
  StoreParameter(p.dScale, channel, in_unit_one(dscale));
  const auto m = static_cast<double>(p.walk.samples);
  const double factor = given.scale(channel) * inv_std;
  // Means first: a sum may be too large to be multiplied.
  const double slope = -factor * (inv_std_in_unit * in_unit_one(dscale / m));
  const double shift = -factor * in_unit_one(totals.first / m) - rest * slope;
  place.Store(pivot, factor, shift, slope, unit);
  if (p.normalization.bias.present) {
    place.StoreGate(WideGateOf(given, channel, mean - pivot, unit).shift);
  }
}

__device__ void FinishBackward(
    const BackwardFinish& p,
    std::int64_t channel,
    const Totals& totals,
    double* coefficients) {
  FinishGradientSums(
      p, StoredStatistics{p.normalization}, channel, totals,
      {coefficients + channel, p.walk.channels});
}

}  // namespace
}  // namespace gradsmith::batch_norm::own

#endif  // GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_FINISH_CUH_
