#ifndef GRADSMITH_BATCH_NORM_GRADIENT_H_
#define GRADSMITH_BATCH_NORM_GRADIENT_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

#include "batch_norm/activation.h"
#include "batch_norm/kernels.h"
#include "batch_norm/per_channel.h"
#include "core/channels.h"

namespace gradsmith::batch_norm {

/// GradientChannel is what a gradient is given for one channel, as Real.
template <Activation kActivation, typename Real>
struct GradientChannel {
  Real scale = 0;
  Real bias = 0;
  Real mean = 0;
  Real inv_std = 0;

  [[nodiscard]] Real Normalized(double x) const { return (x - mean) * inv_std; }
  /// The gradient of what the activation was given.
  template <typename T>
  [[nodiscard]] double Passed(const std::array<double, 2>& dy_and_x) const {
    const auto [dy, x] = dy_and_x;
    if constexpr (kActivation == Activation::kNone) {
      return dy;
    } else {
      return KeepIf<T>(!((scale * Normalized(x)) + bias <= 0), dy);
    }
  }
};

template <Activation kActivation>
using Channels = std::vector<GradientChannel<kActivation, double>>;

/// LoadChannels reads what a gradient is given for each channel.
template <Activation kActivation>
Channels<kActivation> LoadChannels(const BatchNormalizationReluGrad::Inputs& inputs) {
  const PerChannel scale = Load(*inputs.scale);
  const PerChannel bias = inputs.B == nullptr ? PerChannel(scale.size()) : Load(*inputs.B);
  const PerChannel mean = Load(*inputs.saved_mean);
  const PerChannel inv_std = Load(*inputs.saved_inv_std);
  Channels<kActivation> channels;
  channels.reserve(scale.size());
  for (std::size_t c = 0; c < scale.size(); ++c) {
    channels.push_back({scale[c], bias[c], mean[c], inv_std[c]});
  }
  return channels;
}

template <Activation kActivation>
GradientChannel<kActivation, Wide> Widened(const GradientChannel<kActivation, double>& channel) {
  return {channel.scale, channel.bias, channel.mean, channel.inv_std};
}

/// Gradient is what the gradients of a channel are made of.
struct Gradient {
  Wide dBias = 0;
  Wide dScale = 0;
  /// The mean of dY as far as it is passed.
  Wide mean = 0;
  /// What dX is made of may not be a double.
  bool is_wide = false;
};

/// InputGradient returns one element of dX, of a channel of m values.
template <typename T, Activation kActivation, typename Real>
Real InputGradient(
    const GradientChannel<kActivation, Real>& channel,
    Real mean_of_passed,
    Real mean_of_products,
    const std::array<double, 2>& dy_and_x) {
  const Real rest = channel.template Passed<T>(dy_and_x) - mean_of_passed -
                    (channel.Normalized(dy_and_x[1]) * mean_of_products);
  return channel.scale * channel.inv_std * rest;
}

inline bool IsWithin(double low, double value, double high) {
  return low <= std::abs(value) && std::abs(value) <= high;
}

/// Whether sums that were made in double, or what follows from them, may have over- or underflowed:
/// by parameters that statistics of data near 1 do not have, and in double by the data.
template <typename T, Activation kActivation>
bool IsDoubtful(const GradientChannel<kActivation, double>& channel, const internal::Sums& sums) {
  constexpr double kUsual = 0x1p200;
  const bool usual = IsWithin(1 / kUsual, channel.inv_std, kUsual) &&
                     (channel.scale == 0 || IsWithin(1 / kUsual, channel.scale, kUsual)) &&
                     IsWithin(0, channel.bias, 0x1p900) && IsWithin(0, channel.mean, 0x1p900);
  if constexpr (std::is_same_v<T, double>) {
    return !usual || !IsWithin(0, sums[0], 0x1p300) || !IsWithin(0x1p-700, sums[1], 0x1p300);
  }
  return !usual;
}

/// SetConstantMeans makes the mean exact of each channel whose dY is all one value, as far as it is
/// passed: it is that value, whatever rounding makes of the sum. There are samples.
template <typename T, Activation kActivation>
void SetConstantMeans(
    const Context& context,
    const ConstTensorRef& dY,
    const ConstTensorRef& X,
    const Channels<kActivation>& channels,
    std::vector<Gradient>* gradients) {
  // All of dY is passed where there is no activation, whatever X is.
  constexpr int kRead = kActivation == Activation::kNone ? 1 : 2;
  std::array<ConstTensorRef, kRead> tensors{dY};
  if constexpr (kRead == 2) {
    tensors[1] = X;
  }
  const auto passed = [&](std::int64_t c, const std::array<double, kRead>& values) {
    if constexpr (kRead == 1) {
      return values[0];
    } else {
      return (*gradients)[c].is_wide ? Widened(channels[c]).template Passed<T>(values)
                                     : channels[c].template Passed<T>(values);
    }
  };
  const internal::ChannelReader<T, kRead> reader(tensors);
  std::vector<char> may_be;
  may_be.reserve(gradients->size());
  for (const Gradient& gradient : *gradients) {
    const std::int64_t c = std::ssize(may_be);
    const Wide first = passed(c, reader.First(c));
    may_be.push_back(
        first != 0 && std::abs(gradient.mean - first) <= 0x1p-20 * std::abs(first) ? 1 : 0);
  }
  const std::vector<char> is_constant =
      internal::ConstantChannels<T, kRead>(context, tensors, may_be, passed);
  for (std::size_t c = 0; c < is_constant.size(); ++c) {
    if (is_constant[c] != 0) {
      const auto channel = static_cast<std::int64_t>(c);
      (*gradients)[c].mean = passed(channel, reader.First(channel));
    }
  }
}

/// The gradient of one channel, in Wide.
template <typename T, Activation kActivation>
Gradient WideGradient(
    const internal::ChannelReader<T, 2>& reader,
    const GradientChannel<kActivation, double>& given,
    std::int64_t c) {
  const auto channel = Widened(given);
  Wide sum = 0;
  Wide dScale = 0;
  reader.ForEach(c, [&](const std::array<double, 2>& values) {
    const double passed = channel.template Passed<T>(values);
    sum += passed;
    dScale += passed * channel.Normalized(values[1]);
  });
  return {.dBias = sum, .dScale = dScale, .is_wide = true};
}

/// SumGradients returns the gradients of every channel; `channels` are given, and each has m
/// values.
template <typename T, Activation kActivation>
std::vector<Gradient> SumGradients(
    const Context& context,
    const ConstTensorRef& dY,
    const ConstTensorRef& X,
    const Channels<kActivation>& channels,
    double m) {
  if (m == 0) {
    // The sum of nothing is zero, also where saved_inv_std is the infinite 1 / sqrt(0 + 0).
    return std::vector<Gradient>(channels.size());
  }
  const auto products = [&](std::int64_t c, const std::array<double, 2>& values) {
    const double passed = channels[c].template Passed<T>(values);
    return internal::Sums{passed, passed * (values[1] - channels[c].mean)};
  };
  const std::vector<internal::Sums> sums = internal::SumChannels<T, 2>(context, {dY, X}, products);
  std::vector<Gradient> gradients;
  gradients.reserve(sums.size());
  for (const internal::Sums& sum : sums) {
    const double inv_std = channels[gradients.size()].inv_std;
    gradients.push_back({.dBias = sum[0], .dScale = sum[1] * inv_std, .mean = sum[0] / m});
  }
  const internal::ChannelReader<T, 2> reader({dY, X});
  ForEachChannelThat(
      context, sums.size(), [&](std::size_t c) { return IsDoubtful<T>(channels[c], sums[c]); },
      [&](std::size_t c) {
        gradients[c] = WideGradient(reader, channels[c], static_cast<std::int64_t>(c));
        gradients[c].mean = gradients[c].dBias / m;
        if (kActivation == Activation::kNone && std::isfinite(sums[c][0])) {
          // The same bits as where dBias alone is asked for. What an activation passes is known
          // better now.
          gradients[c].dBias = sums[c][0];
        }
      });
  SetConstantMeans<T>(context, dY, X, channels, &gradients);
  return gradients;
}

/// MapGradient writes dX.
template <typename T, Activation kActivation>
void MapGradient(
    const Context& context,
    const ConstTensorRef& dY,
    const ConstTensorRef& X,
    const Channels<kActivation>& channels,
    const std::vector<Gradient>& gradients,
    double m,
    const TensorRef& dX) {
  using Values = std::array<double, 2>;
  PerChannel mean;
  PerChannel products;
  for (const Gradient& gradient : gradients) {
    mean.push_back(static_cast<double>(gradient.mean));
    products.push_back(static_cast<double>(gradient.dScale / m));
  }
  const auto map = [&](std::int64_t c, const Values& values) {
    return InputGradient<T>(channels[c], mean[c], products[c], values);
  };
  const auto map_wide = [&](std::int64_t c, const Values& values) {
    if (!gradients[c].is_wide) {
      return map(c, values);
    }
    return static_cast<double>(
        InputGradient<T>(Widened(channels[c]), gradients[c].mean, gradients[c].dScale / m, values));
  };
  if (std::ranges::any_of(gradients, &Gradient::is_wide)) {
    internal::MapChannels<T, 2>(context, {dY, X}, dX, map_wide);
  } else {
    internal::MapChannels<T, 2>(context, {dY, X}, dX, map);
  }
}

}  // namespace gradsmith::batch_norm

#endif  // GRADSMITH_BATCH_NORM_GRADIENT_H_
