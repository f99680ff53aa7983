#include "batch_norm/cuda/check_arguments.h"
#include "cuda/kernels/difference.cuh"
#include "cuda/kernels/element.cuh"

/// Batch normalization by its definition, to check others by: see batch_norm/cuda/check.h. All is
/// summed in double, and nothing is made fast but by having many threads.
namespace gradsmith::batch_norm::check {
namespace {

using cuda::Difference;
using cuda::LoadElement;

/// Where a sample lies along each of the sample dims.
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

/// Compares an element of an output with what it should be; `squared_terms` is the square of what
/// that was summed from.
__device__ void Compare(
    const Tensor& output,
    std::int64_t offset,
    double value,
    double squared_terms,
    Difference* found) {
  const double before =
      output.before == nullptr ? 0 : LoadElement(output.before, output.type, offset);
  const double expected = before + value;
  cuda::AddPair(
      LoadElement(output.data, output.type, offset), expected,
      fmax(expected * expected, before * before + squared_terms), found);
}

/// Compares an output that has one number for each channel.
__device__ void CompareParameter(
    const Tensor& output,
    std::int64_t channel,
    double value,
    double squared_terms,
    Difference* sums) {
  if (output.data == nullptr || threadIdx.x != 0) {
    return;
  }
  Difference found = {};
  Compare(output, channel * output.channel_stride, value, squared_terms, &found);
  cuda::MergeAtomically(found, sums);
}

__device__ double Square(double value) {
  return value * value;
}

/// NaN stays NaN.
__device__ double Relu(double value) {
  return value <= 0 ? 0 : value;
}

__device__ void Check(const Forward& p, Difference* sums) {
  const Samples& samples = p.samples;
  const std::int64_t channel = ChannelOf(samples, blockIdx.x);
  const auto m = static_cast<double>(samples.count);
  const double mean = Sum(samples, channel, [&](const Place& place) { return At(p.X, place); }) / m;
  const double squares =
      Sum(samples, channel, [&](const Place& place) { return Square(At(p.X, place) - mean); });
  const double inv_std = 1 / sqrt(squares / m + p.epsilon);
  if (p.Y.data != nullptr) {
    const double factor = Of(p.scale, channel) * inv_std;
    const double bias = Of(p.bias, channel);
    Difference found = {};
    ForEachSample(samples, channel, [&](const Place& place) {
      const double product = factor * (At(p.X, place) - mean);
      const double y = p.relu ? Relu(product + bias) : product + bias;
      Compare(p.Y, OffsetOf(p.Y, place), y, Square(product) + Square(bias), &found);
    });
    cuda::MergeAtomically(found, &sums[0]);
  }
  const double old_mean = p.momentum * Of(p.running_mean, channel);
  const double old_var = p.momentum * Of(p.running_var, channel);
  const double new_mean = (1 - p.momentum) * mean;
  const double new_var = (1 - p.momentum) * (squares / (m - 1));
  CompareParameter(
      p.new_mean, channel, old_mean + new_mean, Square(old_mean) + Square(new_mean), &sums[1]);
  CompareParameter(
      p.new_var, channel, old_var + new_var, Square(old_var) + Square(new_var), &sums[2]);
  CompareParameter(p.saved_mean, channel, mean, squares / (m * m), &sums[3]);
  CompareParameter(p.saved_inv_std, channel, inv_std, 0, &sums[4]);
}

__device__ void Check(const Backward& p, Difference* sums) {
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
  const double dbias_terms =
      Sum(samples, channel, [&](const Place& place) { return Square(dy_at(place)); });
  const double dscale_terms =
      Sum(samples, channel, [&](const Place& place) { return Square(product_at(place)); });
  if (p.dX.data != nullptr) {
    const double factor = scale * inv_std;
    Difference found = {};
    ForEachSample(samples, channel, [&](const Place& place) {
      const double dy = dy_at(place);
      const double slope = xhat_at(place) * dscale / m;
      const double terms = Square(dy) + Square(dbias / m) + Square(slope);
      Compare(
          p.dX, OffsetOf(p.dX, place), factor * (dy - dbias / m - slope), Square(factor) * terms,
          &found);
    });
    cuda::MergeAtomically(found, &sums[0]);
  }
  CompareParameter(p.dScale, channel, dscale, dscale_terms, &sums[1]);
  CompareParameter(p.dBias, channel, dbias, dbias_terms, &sums[2]);
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
