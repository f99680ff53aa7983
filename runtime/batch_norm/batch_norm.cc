#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <vector>

#include "batch_norm/activation.h"
#include "batch_norm/gradient.h"
#include "batch_norm/kernels.h"
#include "batch_norm/per_channel.h"
#include "batch_norm/shapes.h"
#include "batch_norm/statistics.h"
#include "core/channels.h"
#include "core/element.h"

/// All arithmetic is in double: the kernels wait for memory, so it is free, and a mean that is
/// large beside the deviation does no harm. A channel whose sums in double are not to be trusted is
/// summed anew, one value after the other (statistics.h, gradient.h).
namespace gradsmith::batch_norm {
namespace {

using internal::ChannelReader;
using internal::MapChannels;
using internal::SumChannels;
using internal::Sums;
using internal::VisitFloatingType;

template <int kCount>
using Values = std::array<double, kCount>;

/// momentum * old + (1 - momentum) * batch, or the old ones where there is no batch.
PerChannel UpdateRunning(
    const PerChannel& old,
    const std::vector<Statistics>& batch,
    Wide Statistics::*value,
    double momentum,
    double m) {
  const auto update = [momentum](auto kept, auto of_batch) {
    return (momentum * kept) + ((1 - momentum) * of_batch);
  };
  PerChannel updated = old;
  for (std::size_t c = 0; c < old.size() && m > 0; ++c) {
    const Wide of_batch = batch[c].*value;
    updated[c] = batch[c].is_wide ? static_cast<double>(update(Wide{old[c]}, of_batch))
                                  : update(old[c], static_cast<double>(of_batch));
  }
  return updated;
}

/// What each channel's values are normalized with, in double as far as that goes.
struct Normalization {
  PerChannel scale;
  PerChannel bias;
  PerChannel mean;
  PerChannel inv_std;
  /// The bias, less what the mean's rounding puts on every value.
  PerChannel shift;
  std::vector<char> is_wide;

  Normalization(const std::vector<Statistics>& batch, const BatchNormalization::Inputs& inputs)
      : scale(Load(*inputs.scale)), bias(Load(*inputs.B)), shift(bias), is_wide(batch.size()) {
    mean.reserve(batch.size());
    inv_std.reserve(batch.size());
    for (std::size_t c = 0; c < batch.size(); ++c) {
      mean.push_back(static_cast<double>(batch[c].mean));
      inv_std.push_back(static_cast<double>(batch[c].inv_std));
      const auto rounding = static_cast<double>(batch[c].mean - mean[c]);
      shift[c] -= rounding == 0 ? 0 : scale[c] * (rounding * inv_std[c]);
      const bool is_near = std::abs(scale[c]) <= 0x1p900 && std::abs(bias[c]) <= 0x1p900;
      is_wide[c] = batch[c].is_wide || !is_near ? 1 : 0;
    }
  }
};

template <typename T, Activation kActivation>
void Normalize(
    const Context& context,
    const std::vector<Statistics>& batch,
    const BatchNormalization::Inputs& inputs,
    const TensorRef& Y) {
  const Normalization channels(batch, inputs);
  // What ReLU makes of NaN is NaN.
  const auto activated = [](double y) {
    return kActivation == Activation::kRelu ? KeepIf<T>(!(y <= 0), y) : y;
  };
  const auto normalize = [&](std::int64_t c, const Values<1>& x) {
    const double normalized = (x[0] - channels.mean[c]) * channels.inv_std[c];
    return activated((channels.scale[c] * normalized) + channels.shift[c]);
  };
  const auto normalize_wide = [&](std::int64_t c, const Values<1>& x) {
    if (channels.is_wide[c] == 0) {
      return normalize(c, x);
    }
    const Wide normalized = (x[0] - batch[c].mean) * batch[c].inv_std;
    return activated(static_cast<double>((channels.scale[c] * normalized) + channels.bias[c]));
  };
  if (std::ranges::any_of(channels.is_wide, std::identity())) {
    MapChannels<T, 1>(context, {*inputs.X}, Y, normalize_wide);
  } else {
    MapChannels<T, 1>(context, {*inputs.X}, Y, normalize);
  }
}

template <typename T, Activation kActivation>
void Train(
    const Context& context,
    const Attributes& attributes,
    const BatchNormalization::Inputs& inputs,
    const BatchNormalization::Outputs& outputs) {
  const double m = SamplesPerChannel(inputs.X->dims);
  const std::vector<Statistics> batch = BatchStatistics<T>(context, *inputs.X, attributes.epsilon);
  if (IsPresent(outputs.Y)) {
    Normalize<T, kActivation>(context, batch, inputs, *outputs.Y);
  }
  // These may stand in their inputs' memory: both are read before either is written.
  const PerChannel running_mean =
      UpdateRunning(Load(*inputs.running_mean), batch, &Statistics::mean, attributes.momentum, m);
  const PerChannel running_var = UpdateRunning(
      Load(*inputs.running_var), batch, &Statistics::unbiased_variance, attributes.momentum, m);
  StoreIfPresent(running_mean, std::identity(), outputs.running_mean);
  StoreIfPresent(running_var, std::identity(), outputs.running_var);
  StoreIfPresent(batch, &Statistics::mean, outputs.saved_mean);
  StoreIfPresent(batch, &Statistics::inv_std, outputs.saved_inv_std);
}

template <typename T>
PerChannel SumOfGradient(const Context& context, const ConstTensorRef& dY) {
  const auto gradient = [](std::int64_t, const Values<1>& dy) { return Sums{dy[0], 0}; };
  const std::vector<Sums> sums = SumChannels<T, 1>(context, {dY}, gradient);
  PerChannel dBias;
  for (const Sums& sum : sums) {
    dBias.push_back(sum[0]);
  }
  if constexpr (std::is_same_v<T, double>) {
    const auto overflowed = [&](std::size_t c) { return !std::isfinite(dBias[c]); };
    ForEachChannelThat(context, dBias.size(), overflowed, [&](std::size_t c) {
      Wide sum = 0;
      ChannelReader<T, 1>({dY}).ForEach(c, [&](const Values<1>& dy) { sum += dy[0]; });
      dBias[c] = static_cast<double>(sum);
    });
  }
  return dBias;
}

/// B is given where there was an activation.
template <typename T, Activation kActivation>
void Backward(
    const Context& context,
    const BatchNormalizationReluGrad::Inputs& inputs,
    const BatchNormalizationGrad::Outputs& outputs) {
  if (kActivation == Activation::kNone && !IsPresent(outputs.dX) && !IsPresent(outputs.dScale)) {
    if (IsPresent(outputs.dBias)) {
      StoreIfPresent(SumOfGradient<T>(context, *inputs.dY), std::identity(), outputs.dBias);
    }
    return;
  }
  const double m = SamplesPerChannel(inputs.X->dims);
  const Channels<kActivation> channels = LoadChannels<kActivation>(inputs);
  const std::vector<Gradient> gradients =
      SumGradients<T>(context, *inputs.dY, *inputs.X, channels, m);
  if (IsPresent(outputs.dX)) {
    MapGradient<T>(context, *inputs.dY, *inputs.X, channels, gradients, m, *outputs.dX);
  }
  StoreIfPresent(gradients, &Gradient::dScale, outputs.dScale);
  StoreIfPresent(gradients, &Gradient::dBias, outputs.dBias);
}

/// Whether there is nothing to write. Channels may then be more than there is memory for.
template <typename... PerChannelOutputs>
bool HasNothingToWrite(const ConstTensorRef& X, const PerChannelOutputs*... outputs) {
  return NumElements(X.dims) == 0 && !(IsPresent(outputs) || ...);
}

template <Activation kActivation>
Status TrainOf(
    const Context& context,
    const Attributes& attributes,
    const BatchNormalization::Inputs& inputs,
    const BatchNormalization::Outputs& outputs) {
  if (Status status = CheckShapes(inputs, outputs); !status.ok()) {
    return status;
  }
  if (HasNothingToWrite(
          *inputs.X, outputs.running_mean, outputs.running_var, outputs.saved_mean,
          outputs.saved_inv_std)) {
    return {};
  }
  VisitFloatingType(inputs.X->type, [&]<typename T>(std::type_identity<T>) {
    Train<T, kActivation>(context, attributes, inputs, outputs);
  });
  return {};
}

template <Activation kActivation>
Status BackwardOf(
    const Context& context,
    const BatchNormalizationReluGrad::Inputs& inputs,
    const BatchNormalizationGrad::Outputs& outputs) {
  if (Status status = CheckShapes(inputs, outputs); !status.ok()) {
    return status;
  }
  if (HasNothingToWrite(*inputs.X, outputs.dScale, outputs.dBias)) {
    return {};
  }
  VisitFloatingType(inputs.dY->type, [&]<typename T>(std::type_identity<T>) {
    Backward<T, kActivation>(context, inputs, outputs);
  });
  return {};
}

}  // namespace

Status BatchNormalization::RunCpu(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return TrainOf<Activation::kNone>(context, attributes, inputs, outputs);
}

Status BatchNormalizationRelu::RunCpu(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return TrainOf<Activation::kRelu>(context, attributes, inputs, outputs);
}

Status BatchNormalizationGrad::RunCpu(
    const Context& context,
    const Attributes& /*attributes*/,
    const Inputs& inputs,
    const Outputs& outputs) {
  return BackwardOf<Activation::kNone>(context, WithoutActivation(inputs), outputs);
}

Status BatchNormalizationReluGrad::RunCpu(
    const Context& context,
    const Attributes& /*attributes*/,
    const Inputs& inputs,
    const Outputs& outputs) {
  return BackwardOf<Activation::kRelu>(context, inputs, outputs);
}

}  // namespace gradsmith::batch_norm
