#include "batch_norm/cuda/check_arguments.h"
#include "cuda/kernels/difference.cuh"
#include "cuda/kernels/element.cuh"

/// Batch normalization by its definition, to check others by: see batch_norm/cuda/check.h. All is
/// summed in double, and nothing is made fast but by having many threads.
namespace gradsmith::batch_norm::check {
namespace {

using cuda::Difference;
using cuda::LoadElement;

/// Place says where a sample lies along each of the sample dims.
struct Place {
  std::int64_t channel;
  std::int64_t at[kSampleDims];
};

__device__ std::int64_t ChannelOf(const Samples& samples, std::int64_t number) {
  return samples.checked == 1 ? 0 : number * (samples.channels - 1) / (samples.checked - 1);
}

/// Dividing 32 bits is many times faster than 64.
template <typename Index>
__device__ void Split(const Samples& samples, Index left, Place* place) {
  for (int i = kSampleDims - 1; i >= 0; --i) {
    const auto size = static_cast<Index>(samples.dims[i]);
    place->at[i] = static_cast<std::int64_t>(left % size);
    left /= size;
  }
}

__device__ Place PlaceOf(const Samples& samples, std::int64_t channel, std::int64_t sample) {
  Place place;
  place.channel = channel;
  if (samples.count >> 32 == 0) {
    Split(samples, static_cast<std::uint32_t>(sample), &place);
  } else {
    Split(samples, static_cast<std::uint64_t>(sample), &place);
  }
  return place;
}

__device__ std::int64_t OffsetOf(const Tensor& tensor, const Place& place) {
  std::int64_t offset = place.channel * tensor.channel_stride;
  for (int i = 0; i < kSampleDims; ++i) {
    offset += place.at[i] * tensor.strides[i];
  }
  return offset;
}

__device__ double At(const Tensor& tensor, const Place& place) {
  return LoadElement(tensor.data, tensor.type, OffsetOf(tensor, place));
}

/// The number that a channel has of a parameter.
__device__ double Of(const Tensor& parameter, std::int64_t channel) {
  return LoadElement(parameter.data, parameter.type, channel * parameter.channel_stride);
}

/// The sum over the block, to all its threads.
__device__ double SumOverBlock(double share) {
  __shared__ double shares[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  shares[thread] = share;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (thread < half) {
      shares[thread] += shares[thread + half];
    }
    __syncthreads();
  }
  const double sum = shares[0];
  // The next sum must not overwrite it before all have read it.
  __syncthreads();
  return sum;
}

/// The largest over the block, to all its threads.
__device__ double LargestOverBlock(double mine) {
  __shared__ double largest[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  largest[thread] = mine;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (thread < half) {
      largest[thread] = fmax(largest[thread], largest[thread + half]);
    }
    __syncthreads();
  }
  return largest[0];
}

/// Calls visit(place) for this thread's samples of the channel.
template <typename Visitor>
__device__ void ForEachSample(const Samples& samples, std::int64_t channel, const Visitor& visit) {
  for (std::int64_t i = threadIdx.x; i < samples.count; i += kThreads) {
    visit(PlaceOf(samples, channel, i));
  }
}

template <typename Term>
__device__ double Sum(const Samples& samples, std::int64_t channel, const Term& term) {
  double share = 0;
  ForEachSample(samples, channel, [&](const Place& place) { share += term(place); });
  return SumOverBlock(share);
}

/// The largest number that an output's type holds, and the least beside zero.
struct Limits {
  double largest;
  double least;
};

__device__ Limits LimitsOf(int type) {
  switch (type) {
    case 0:
      return {0x1.FFFFFEp127, 0x1p-149};
    case 1:
      return {0x1.FFFFFFFFFFFFFp1023, 0};
    case 2:
      return {65504, 0x1p-24};
    default:
      return {0x1.FEp127, 0x1p-133};
  }
}

/// How far off the elements of a channel are that one thread has seen.
struct Tally {
  double squared_error = 0;
  double squared_expected = 0;
  double wrong = 0;  ///< elements that are not finite and should be, or the other way round
};

/// How far an element is off, but for half a unit of the type's least number. What is expected
/// beyond the type's largest must be infinite.
__device__ double
ErrorOf(const Tensor& output, std::int64_t offset, double expected, Tally* tally) {
  constexpr double kRounding = 1 + 0x1p-7;
  const double stored = LoadElement(output.data, output.type, offset);
  const Limits limits = LimitsOf(output.type);
  if (fabs(expected) > limits.largest) {
    const bool is_infinite = isinf(stored) && (stored > 0) == (expected > 0);
    const bool may_be_largest =
        fabs(expected) < limits.largest * kRounding && fabs(stored) == limits.largest;
    tally->wrong += is_infinite || may_be_largest ? 0 : 1;
    return 0;
  }
  if (!isfinite(stored)) {
    tally->wrong += 1;
    return 0;
  }
  return fmax(fabs(stored - expected) - 0.51 * limits.least, 0.0);
}

__device__ double BeforeOf(const Tensor& output, std::int64_t offset) {
  return output.before == nullptr ? 0 : LoadElement(output.before, output.type, offset);
}

/// Compares an element of an output with what it should be; `squared_terms` is the square of what
/// that was summed from. All is measured in a unit whose square is a number of double.
__device__ void Compare(
    const Tensor& output,
    std::int64_t offset,
    double value,
    double squared_terms,
    double unit,
    Tally* tally) {
  const double before = BeforeOf(output, offset) * unit;
  const double expected = before + value * unit;
  const double error = ErrorOf(output, offset, expected / unit, tally) * unit;
  tally->squared_error += error * error;
  tally->squared_expected += fmax(expected * expected, before * before + squared_terms);
}

/// Records a channel's error relative to what was expected of it: of all channels the largest
/// counts, as of numbers so different a sum would be that of a few.
__device__ void Record(double relative, double wrong, Difference* difference) {
  Difference found = {};
  found.largest_error = relative;
  found.not_finite = static_cast<unsigned long long>(wrong);
  cuda::MergeAtomically(found, difference);
}

__device__ void RecordBlock(const Tally& mine, Difference* difference) {
  const double error = SumOverBlock(mine.squared_error);
  const double expected = SumOverBlock(mine.squared_expected);
  const double wrong = SumOverBlock(mine.wrong);
  if (threadIdx.x == 0) {
    constexpr double kLeast = 1e-300;
    Record(sqrt(error) / sqrt(fmax(expected, kLeast)), wrong, difference);
  }
}

/// Compares an output that has one number for each channel; `terms` is the size of what it was
/// summed from.
__device__ void CompareParameter(
    const Tensor& output,
    std::int64_t channel,
    double value,
    double terms,
    Difference* difference) {
  if (output.data == nullptr || threadIdx.x != 0) {
    return;
  }
  constexpr double kLeast = 1e-320;
  const std::int64_t offset = channel * output.channel_stride;
  const double before = BeforeOf(output, offset);
  const double expected = before + value;
  Tally tally;
  const double error = ErrorOf(output, offset, expected, &tally);
  const double size = fmax(fmax(fabs(expected), hypot(before, terms)), kLeast);
  Record(error == 0 ? 0 : error / size, tally.wrong, difference);
}

__device__ double Square(double value) {
  return value * value;
}

/// NaN stays NaN.
__device__ double Relu(double value) {
  return value <= 0 ? 0 : value;
}

/// A channel's mean, as a sample and what is left: large samples that are alike leave nothing.
struct Mean {
  double base;
  double rest;

  __device__ double DeviationOf(double x) const { return (x - base) - rest; }
};

/// Taken from the mean that was summed first, what is summed again does not grow with the samples,
/// as the distance of all from one of them does, and its rounding with it.
__device__ Mean MeanOf(const Samples& samples, const Tensor& X, std::int64_t channel) {
  const auto m = static_cast<double>(samples.count);
  const auto distance_from = [&](double base) {
    return Sum(samples, channel, [&](const Place& place) { return At(X, place) - base; }) / m;
  };
  const double first = At(X, PlaceOf(samples, channel, 0));
  const double base = first + distance_from(first);
  return isfinite(base) ? Mean{base, distance_from(base)} : Mean{base, 0};
}

/// The largest deviation of a channel's.
__device__ double
LargestDeviation(const Samples& samples, const Tensor& X, std::int64_t channel, const Mean& mean) {
  double largest = 0;
  ForEachSample(samples, channel, [&](const Place& place) {
    largest = fmax(largest, fabs(mean.DeviationOf(At(X, place))));
  });
  return LargestOverBlock(largest);
}

/// A power of two by which squares of numbers of a size are numbers of double.
__device__ double UnitOf(double size) {
  return size > 0 && isfinite(size) ? scalbn(1.0, -ilogb(size)) : 1;
}

__device__ void Check(const Forward& p, Difference* differences) {
  const Samples& samples = p.samples;
  const std::int64_t channel = ChannelOf(samples, blockIdx.x);
  const auto m = static_cast<double>(samples.count);
  const Mean mean = MeanOf(samples, p.X, channel);
  const double largest = LargestDeviation(samples, p.X, channel, mean);
  // Epsilon is beside the squares.
  const double unit = UnitOf(fmax(largest, sqrt(p.epsilon)));
  const double squares = Sum(samples, channel, [&](const Place& place) {
    return Square(mean.DeviationOf(At(p.X, place)) * unit);
  });
  const double inv_std = unit / sqrt(squares / m + p.epsilon * unit * unit);
  if (p.Y.data != nullptr) {
    const double factor = Of(p.scale, channel) * inv_std;
    const double bias = Of(p.bias, channel);
    Tally tally;
    ForEachSample(samples, channel, [&](const Place& place) {
      const double product = factor * mean.DeviationOf(At(p.X, place));
      const double y = p.relu ? Relu(product + bias) : product + bias;
      Compare(p.Y, OffsetOf(p.Y, place), y, Square(product) + Square(bias), 1, &tally);
    });
    RecordBlock(tally, &differences[0]);
  }
  const double whole = mean.base + mean.rest;
  const double of_mean = largest / sqrt(m);
  const double old_mean = p.momentum * Of(p.running_mean, channel);
  const double old_var = p.momentum * Of(p.running_var, channel);
  const double new_mean = (1 - p.momentum) * whole;
  const double new_var = (1 - p.momentum) * (squares / (m - 1)) / unit / unit;
  CompareParameter(
      p.new_mean, channel, old_mean + new_mean,
      hypot(old_mean, fmax(fabs(new_mean), (1 - p.momentum) * of_mean)), &differences[1]);
  CompareParameter(p.new_var, channel, old_var + new_var, hypot(old_var, new_var), &differences[2]);
  CompareParameter(p.saved_mean, channel, whole, of_mean, &differences[3]);
  CompareParameter(p.saved_inv_std, channel, inv_std, 0, &differences[4]);
}

__device__ void Check(const Backward& p, Difference* differences) {
  const Samples& samples = p.samples;
  const std::int64_t channel = ChannelOf(samples, blockIdx.x);
  const auto m = static_cast<double>(samples.count);
  const double mean = Of(p.saved_mean, channel);
  const double inv_std = Of(p.saved_inv_std, channel);
  const double scale = Of(p.scale, channel);
  const bool relu = p.bias.data != nullptr;
  const double bias = relu ? Of(p.bias, channel) : 0;
  const auto xhat_at = [&](const Place& place) { return (At(p.X, place) - mean) * inv_std; };
  const auto dy_at = [&](const Place& place) {
    return relu && scale * xhat_at(place) + bias <= 0 ? 0 : At(p.dY, place);
  };
  const auto product_at = [&](const Place& place) { return dy_at(place) * xhat_at(place); };
  const double dbias = Sum(samples, channel, dy_at);
  const double dscale = Sum(samples, channel, product_at);
  // Not the root of the squares' sum, which is no less: squares may have no number.
  const double root = sqrt(m);
  const double dbias_terms =
      Sum(samples, channel, [&](const Place& place) { return fabs(dy_at(place)); }) / root;
  const double dscale_terms =
      Sum(samples, channel, [&](const Place& place) { return fabs(product_at(place)); }) / root;
  if (p.dX.data != nullptr) {
    const double factor = scale * inv_std;
    // What is added to has a size of its own.
    const double unit = p.dX.before == nullptr && factor != 0 ? 1 / fabs(factor) : 1;
    Tally tally;
    ForEachSample(samples, channel, [&](const Place& place) {
      const double dy = dy_at(place);
      const double slope = xhat_at(place) * dscale / m;
      const double terms = Square(dy) + Square(dbias / m) + Square(slope);
      Compare(
          p.dX, OffsetOf(p.dX, place), factor * (dy - dbias / m - slope),
          Square(factor * unit) * terms, unit, &tally);
    });
    RecordBlock(tally, &differences[0]);
  }
  CompareParameter(p.dScale, channel, dscale, dscale_terms, &differences[1]);
  CompareParameter(p.dBias, channel, dbias, dbias_terms, &differences[2]);
}

// ---------------------------------------------------------------------------------------------
// Data that hurts
// ---------------------------------------------------------------------------------------------

/// What a channel holds: numbers [center - radius, center + radius).
struct Hurtful {
  double center;
  double radius;
  double inv_std;  ///< of the gradient's statistics
};

/// Numbers of an element type whose squares it, or a fixed range, has no room for.
__device__ double LargeOf(int type) {
  return type == 1 ? 1e200 : (type == 2 ? 3e4 : 1e30);
}
__device__ double SmallOf(int type) {
  return type == 1 ? 1e-180 : (type == 2 ? 1e-6 : 1e-18);
}
/// A mean beside which a deviation of one still has some bits.
__device__ double MeanOfType(int type) {
  return type == 1 ? 1e6 : (type == 2 ? 1000 : (type == 3 ? 100 : 12345.678));
}

/// The checked channels have all kinds in turn.
__device__ Hurtful HurtfulOf(const Hurt& p, std::int64_t channel, std::int64_t* turn) {
  const std::int64_t number = channel * p.samples.checked / p.samples.channels + p.first;
  *turn = number / kHurtfulKinds;
  switch (number % kHurtfulKinds) {
    case 0:
      return {100.1, 0, 316};
    case 1:
      return {MeanOfType(p.X.type), 1, 1.7};
    case 2:
      return {0, LargeOf(p.X.type), 1.7 / LargeOf(p.X.type)};
    default:
      return {0, SmallOf(p.X.type), 316};
  }
}

__device__ std::uint64_t Hash(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15U;
  value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27U)) * 0x94D049BB133111EBU;
  return value ^ (value >> 31U);
}

__device__ void StoreElement(const Tensor& tensor, std::int64_t offset, double value) {
  void* data = const_cast<void*>(tensor.data);
  switch (tensor.type) {
    case 0:
      static_cast<float*>(data)[offset] = static_cast<float>(value);
      break;
    case 1:
      static_cast<double*>(data)[offset] = value;
      break;
    case 2:
      static_cast<__half*>(data)[offset] = cuda::Convert<__half>(value);
      break;
    default:
      static_cast<__nv_bfloat16*>(data)[offset] = cuda::Convert<__nv_bfloat16>(value);
      break;
  }
}

__device__ void SetParameter(const Tensor& parameter, std::int64_t channel, double value) {
  if (parameter.data != nullptr && threadIdx.x == 0) {
    StoreElement(parameter, channel * parameter.channel_stride, value);
  }
}

/// One block for each channel at a time.
__device__ void Fill(const Hurt& p) {
  for (std::int64_t channel = blockIdx.x; channel < p.samples.channels; channel += gridDim.x) {
    std::int64_t turn = 0;
    const Hurtful hurtful = HurtfulOf(p, channel, &turn);
    for (std::int64_t i = threadIdx.x; i < p.samples.count; i += kThreads) {
      const Place place = PlaceOf(p.samples, channel, i);
      const std::uint64_t hash = Hash(static_cast<std::uint64_t>(channel * p.samples.count + i));
      const double part = static_cast<double>(hash >> 11U) * 0x1p-52 - 1;
      StoreElement(p.X, OffsetOf(p.X, place), hurtful.center + hurtful.radius * part);
      if (p.dY.data != nullptr && hurtful.radius == 0) {
        // Its sums are exact: what is left of dX is what cancels.
        StoreElement(p.dY, OffsetOf(p.dY, place), 0.25);
      }
    }
    SetParameter(p.saved_mean, channel, hurtful.center);
    SetParameter(p.saved_inv_std, channel, hurtful.inv_std);
    // So far from zero that nobody's rounding decides what ReLU passes on.
    SetParameter(p.bias, channel, turn % 2 == 0 ? 4 : -4);
  }
}

}  // namespace
}  // namespace gradsmith::batch_norm::check

/// `differences`: one for each output, zero before.
#define GRADSMITH_BN_CHECK(name, Arguments)                                                  \
  extern "C" __global__ void __launch_bounds__(gradsmith::batch_norm::check::kThreads) name( \
      gradsmith::batch_norm::check::Arguments arguments,                                     \
      gradsmith::cuda::Difference* differences) {                                            \
    gradsmith::batch_norm::check::Check(arguments, differences);                             \
  }

GRADSMITH_BN_CHECK(gradsmith_bn_check_forward, Forward)
GRADSMITH_BN_CHECK(gradsmith_bn_check_backward, Backward)

extern "C" __global__ void __launch_bounds__(gradsmith::batch_norm::check::kThreads)
    gradsmith_bn_hurt(gradsmith::batch_norm::check::Hurt arguments) {
  gradsmith::batch_norm::check::Fill(arguments);
}
