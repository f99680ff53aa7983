#ifndef GRADSMITH_CUDA_KERNELS_BATCH_NORM_FINISH_CUH_
#define GRADSMITH_CUDA_KERNELS_BATCH_NORM_FINISH_CUH_

#include "cuda/kernels/batch_norm_sums.cuh"

/// The second step: what the sums come to.
namespace gradsmith::batch_norm::own {
namespace {

/// What a map needs of a channel: rows of the coefficients, one for each channel.
///   Y  = (X - pivot) * factor + shift
///   dX = dY * factor + (X - pivot) * slope + shift
/// With ReLU dY counts where (X - pivot) * factor + gate is positive.
enum Coefficient { kPivot, kFactor, kShift, kSlope, kGate };
constexpr int kAllCoefficients = 5;

/// Where a channel's coefficients go: `apart` from one to the next.
struct CoefficientPlace {
  double* first;
  std::int64_t apart;

  __device__ void Store(double pivot, double factor, double shift, double slope) const {
    first[kPivot * apart] = pivot;
    first[kFactor * apart] = factor;
    first[kShift * apart] = shift;
    first[kSlope * apart] = slope;
  }
  __device__ void StoreGate(double gate) const { first[kGate * apart] = gate; }
};

/// What a block of kFinishLanes for each of its channels adds up in.
template <int kChannels>
using FinishSums = double[2][kFinishLanes][kChannels];

/// Calls finish(channel, first, second) with the sums over all of a channel's partial sums. A block,
/// the `block`-th of so many, has kChannels at a time.
template <int kChannels, typename Finish>
__device__ __forceinline__ void ForEachSum(
    const Walk& walk,
    const double* partials,
    std::int64_t block,
    std::int64_t blocks,
    FinishSums<kChannels>& sums,
    const Finish& finish) {
  const int x = static_cast<int>(threadIdx.x) % kChannels;
  const int y = static_cast<int>(threadIdx.x) / kChannels;
  const std::int64_t rows = walk.slices * walk.places / walk.channels;
  for (std::int64_t begin = block * kChannels; begin < walk.channels;
       begin += blocks * kChannels) {
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

__device__ void FinishMoments(
    const ForwardFinish& p,
    std::int64_t channel,
    const Moments& moments,
    const CoefficientPlace& place) {
  const double m = p.walk.samples > 0 ? static_cast<double>(p.walk.samples) : 1;
  const double inv_std = 1 / sqrt(moments.deviation / m + p.epsilon);
  const double factor = LoadParameter(p.scale, channel) * inv_std;
  const double pivot = RoundPivot(moments.mean, p.type);
  const double shift = ShiftOf(LoadParameter(p.bias, channel), moments.mean, pivot, factor);
  place.Store(pivot, factor, shift, 0);
  UpdateRunning(p, channel, moments);
  StoreParameter(p.saved_mean, channel, moments.mean);
  StoreParameter(p.saved_inv_std, channel, inv_std);
}

__device__ void FinishForward(
    const ForwardFinish& p,
    std::int64_t channel,
    double first,
    double second,
    double* coefficients) {
  FinishMoments(
      p, channel, MomentsOf(p, channel, first, second), {coefficients + channel, p.walk.channels});
}

/// `products` are of dY and X - mean, the mean rounded as pivots are; with ReLU of what it passes
/// on of dY.
__device__ void FinishGradientSums(
    const BackwardFinish& p,
    std::int64_t channel,
    double dbias,
    double products,
    const CoefficientPlace& place) {
  StoreParameter(p.dBias, channel, dbias);
  if (!p.products) {
    return;
  }
  if (p.walk.samples == 0) {
    // The sum of nothing is zero, also where saved_inv_std is the infinite 1 / sqrt(0 + 0).
    StoreParameter(p.dScale, channel, 0);
    return;
  }
  const Normalization& given = p.normalization;
  const double mean = LoadParameter(given.mean, channel);
  const double inv_std = LoadParameter(given.inv_std, channel);
  const double pivot = RoundPivot(mean, p.type);
  const double dscale = (products - (mean - pivot) * dbias) * inv_std;
  StoreParameter(p.dScale, channel, dscale);
  const auto m = static_cast<double>(p.walk.samples);
  const double factor = LoadParameter(given.scale, channel) * inv_std;
  const double slope = -factor * inv_std * dscale / m;
  const double shift = -factor * dbias / m - (mean - pivot) * slope;
  place.Store(pivot, factor, shift, slope);
  if (given.bias.present) {
    place.StoreGate(ShiftOf(LoadParameter(given.bias, channel), mean, pivot, factor));
  }
}

__device__ void FinishBackward(
    const BackwardFinish& p,
    std::int64_t channel,
    double dbias,
    double products,
    double* coefficients) {
  FinishGradientSums(p, channel, dbias, products, {coefficients + channel, p.walk.channels});
}

}  // namespace
}  // namespace gradsmith::batch_norm::own

#endif  // GRADSMITH_CUDA_KERNELS_BATCH_NORM_FINISH_CUH_
