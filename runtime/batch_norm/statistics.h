#ifndef GRADSMITH_BATCH_NORM_STATISTICS_H_
#define GRADSMITH_BATCH_NORM_STATISTICS_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "batch_norm/per_channel.h"
#include "core/channels.h"

namespace gradsmith::batch_norm {

/// Statistics of one channel of a batch.
struct Statistics {
  Wide mean = 0;
  Wide variance = 0;           ///< biased
  Wide unbiased_variance = 0;  ///< of one value or none: 0, as the biased one
  Wide inv_std = 0;
  /// What lies between a value and its normalized one may not be a double.
  bool is_wide = false;
};

/// Moments are a channel's mean and its sum of squared deviations from it.
struct Moments {
  Wide mean = 0;
  Wide deviation = 0;
  bool is_wide = false;
};

/// MomentsFrom makes moments of sums over deviations from a mean that was rounded: their squares,
/// and they themselves, which would sum to zero but for the rounding.
template <typename Real>
Moments MomentsFrom(Real mean, Real squares, Real rest, Real m) {
  const Real deviation = squares - (rest * rest / m);
  const Wide residual = rest / m;
  return {
      .mean = std::isfinite(residual) ? mean + residual : Wide{mean},
      .deviation = deviation < 0 ? Real{0} : deviation};
}

/// MomentsOf computes one channel's moments one value after the other, in Wide.
template <typename T>
Moments MomentsOf(const internal::ChannelReader<T, 1>& reader, std::size_t channel, double m) {
  using Value = std::array<double, 1>;
  const auto c = static_cast<std::int64_t>(channel);
  Wide sum = 0;
  reader.ForEach(c, [&](const Value& x) { sum += x[0]; });
  const Wide mean = sum / m;
  Wide squares = 0;
  Wide rest = 0;
  reader.ForEach(c, [&](const Value& x) {
    const Wide d = x[0] - mean;
    squares += d * d;
    rest += d;
  });
  Moments moments = MomentsFrom<Wide>(mean, squares, rest, m);
  moments.is_wide = true;
  return moments;
}

/// Whether moments that were computed in double are not to be trusted: those of a channel that may
/// be all one value, whose mean is that value whatever rounding makes of it, and in double those
/// whose sums may have over- or underflowed. Sums of the other types cannot.
template <typename T>
bool AreDoubtful(const Moments& moments, double m) {
  const auto mean = static_cast<double>(moments.mean);
  const auto deviation = static_cast<double>(moments.deviation);
  const bool may_be_constant = deviation <= m * mean * mean * 0x1p-80;
  if constexpr (std::is_same_v<T, double>) {
    const bool in_range = deviation >= m * 0x1p-900 && deviation <= 0x1p900;
    return may_be_constant || !in_range;
  }
  return may_be_constant && mean != 0;
}

/// BatchMoments returns the moments of every channel. Two passes, so that squares of large values
/// do not cancel.
template <typename T>
std::vector<Moments> BatchMoments(const Context& context, const ConstTensorRef& X, double m) {
  using Value = std::array<double, 1>;
  const auto value = [](std::int64_t, const Value& x) { return internal::Sums{x[0], 0}; };
  PerChannel mean;
  mean.reserve(X.dims[1]);
  for (const internal::Sums& sums : internal::SumChannels<T, 1>(context, {X}, value)) {
    mean.push_back(sums[0] / m);
  }
  const auto squared = [&mean](std::int64_t c, const Value& x) {
    const double d = x[0] - mean[c];
    return internal::Sums{d * d, d};
  };
  std::vector<Moments> moments;
  moments.reserve(mean.size());
  for (const auto& [squares, rest] : internal::SumChannels<T, 1>(context, {X}, squared)) {
    moments.push_back(MomentsFrom<double>(mean[moments.size()], squares, rest, m));
  }
  std::vector<char> are_doubtful;
  are_doubtful.reserve(moments.size());
  for (const Moments& of_channel : moments) {
    are_doubtful.push_back(AreDoubtful<T>(of_channel, m) ? 1 : 0);
  }
  const std::vector<char> is_constant = internal::ConstantChannels<T, 1>(
      context, {X}, are_doubtful, [](std::int64_t, const Value& x) { return x[0]; });
  const internal::ChannelReader<T, 1> reader({X});
  ForEachChannelThat(
      context, moments.size(), [&](std::size_t c) { return are_doubtful[c] != 0; },
      [&](std::size_t c) {
        moments[c] = is_constant[c] != 0
                         ? Moments{.mean = reader.First(static_cast<std::int64_t>(c))[0]}
                         : MomentsOf(reader, c, m);
      });
  return moments;
}

/// BatchStatistics returns the statistics of every channel of X.
template <typename T>
std::vector<Statistics>
BatchStatistics(const Context& context, const ConstTensorRef& X, double epsilon) {
  const double m = SamplesPerChannel(X.dims);
  const std::vector<Moments> moments =
      m > 0 ? BatchMoments<T>(context, X, m) : std::vector<Moments>(X.dims[1]);
  std::vector<Statistics> statistics;
  statistics.reserve(moments.size());
  for (const Moments& of_channel : moments) {
    const Wide variance = of_channel.deviation / std::max(m, 1.0);
    statistics.push_back(
        {.mean = of_channel.mean,
         .variance = variance,
         .unbiased_variance = of_channel.deviation / std::max(m - 1, 1.0),
         .inv_std = 1 / std::sqrt(variance + epsilon),
         .is_wide = of_channel.is_wide});
  }
  return statistics;
}

}  // namespace gradsmith::batch_norm

#endif  // GRADSMITH_BATCH_NORM_STATISTICS_H_
