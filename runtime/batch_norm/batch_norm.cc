#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "batch_norm/activation.h"
#include "batch_norm/kernels.h"
#include "batch_norm/shapes.h"
#include "core/channels.h"
#include "core/element.h"

/// All arithmetic is in double: the kernels wait for memory, so it is free, and a mean that is
/// large beside the deviation does no harm.
namespace gradsmith::batch_norm {
namespace {

using internal::MapChannels;
using internal::SumChannels;
using internal::Sums;
using internal::VisitDataType;

template <int kCount>
using Values = std::array<double, kCount>;

template <typename Ref>
bool IsPresent(const Ref* tensor) {
  return tensor != nullptr && tensor->present;
}

/// One number for each channel.
using PerChannel = std::vector<double>;

PerChannel Load(const ConstTensorRef& tensor) {
  PerChannel values(tensor.dims[0]);
  VisitDataType(tensor.type, [&]<typename T>(std::type_identity<T>) {
    const T* data = static_cast<const T*>(tensor.data);
    for (std::int64_t c = 0; c < tensor.dims[0]; ++c) {
      values[c] = internal::Convert<double>(data[c * tensor.strides[0]]);
    }
  });
  return values;
}

void StoreIfPresent(const PerChannel& values, const TensorRef* tensor) {
  if (!IsPresent(tensor)) {
    return;
  }
  VisitDataType(tensor->type, [&]<typename T>(std::type_identity<T>) {
    T* data = static_cast<T*>(tensor->data);
    for (std::int64_t c = 0; c < tensor->dims[0]; ++c) {
      data[c * tensor->strides[0]] = internal::Convert<T>(values[c]);
    }
  });
}

/// m: how many values each channel has.
double SamplesPerChannel(const Dims& dims) {
  double samples = 1;
  for (int i = 0; i < dims.size(); ++i) {
    samples *= i == 1 ? 1.0 : static_cast<double>(dims[i]);
  }
  return samples;
}

struct Statistics {
  PerChannel mean;
  /// Sums of the squared deviations from the mean.
  PerChannel deviation;
};

/// Two passes, so that squares of large values do not cancel.
template <typename T>
Statistics BatchStatistics(const Context& context, const ConstTensorRef& X) {
  const double m = SamplesPerChannel(X.dims);
  Statistics statistics{.mean = PerChannel(X.dims[1]), .deviation = PerChannel(X.dims[1])};
  if (m == 0) {
    return statistics;
  }
  const auto value = [](std::int64_t, const Values<1>& x) { return Sums{x[0], 0}; };
  const std::vector<Sums> sums = SumChannels<T, 1>(context, {X}, value);
  for (std::int64_t c = 0; c < X.dims[1]; ++c) {
    statistics.mean[c] = sums[c][0] / m;
  }
  const auto squared = [&mean = statistics.mean](std::int64_t c, const Values<1>& x) {
    const double d = x[0] - mean[c];
    return Sums{d * d, d};
  };
  const std::vector<Sums> deviations = SumChannels<T, 1>(context, {X}, squared);
  for (std::int64_t c = 0; c < X.dims[1]; ++c) {
    // The deviations would sum to zero but for the rounding of the mean.
    const auto [squares, sum] = deviations[c];
    statistics.deviation[c] = squares - (sum * sum / m);
  }
  return statistics;
}

/// momentum * old + (1 - momentum) * batch, or the old ones where there is no batch.
PerChannel
UpdateRunning(const PerChannel& old, const PerChannel& batch, double momentum, double m) {
  PerChannel updated = old;
  if (m > 0) {
    for (std::size_t c = 0; c < old.size(); ++c) {
      updated[c] = (momentum * old[c]) + ((1 - momentum) * batch[c]);
    }
  }
  return updated;
}

PerChannel Divided(PerChannel values, double divisor) {
  for (double& value : values) {
    value /= divisor;
  }
  return values;
}

PerChannel InverseStd(const PerChannel& variance, double epsilon) {
  PerChannel inv_std(variance.size());
  for (std::size_t c = 0; c < variance.size(); ++c) {
    inv_std[c] = 1 / std::sqrt(variance[c] + epsilon);
  }
  return inv_std;
}

/// What ReLU makes of a value; NaN stays NaN.
double Relu(double value) {
  return value <= 0 ? 0 : value;
}

template <typename T>
void Train(
    const Context& context,
    Activation activation,
    const Attributes& attributes,
    const BatchNormalization::Inputs& inputs,
    const BatchNormalization::Outputs& outputs) {
  const double m = SamplesPerChannel(inputs.X->dims);
  const Statistics batch = BatchStatistics<T>(context, *inputs.X);
  // One value, or none, has no variance.
  const PerChannel variance = Divided(batch.deviation, std::max(m, 1.0));
  const PerChannel unbiased_variance = Divided(batch.deviation, std::max(m - 1, 1.0));
  const PerChannel inv_std = InverseStd(variance, attributes.epsilon);
  if (IsPresent(outputs.Y)) {
    const PerChannel scale = Load(*inputs.scale);
    const PerChannel bias = Load(*inputs.B);
    const auto normalize = [&](std::int64_t c, const Values<1>& x) {
      const double y = (scale[c] * ((x[0] - batch.mean[c]) * inv_std[c])) + bias[c];
      return activation == Activation::kRelu ? Relu(y) : y;
    };
    MapChannels<T, 1>(context, {*inputs.X}, *outputs.Y, normalize);
  }
  // These may stand in their inputs' memory: both are read before either is written.
  const PerChannel running_mean =
      UpdateRunning(Load(*inputs.running_mean), batch.mean, attributes.momentum, m);
  const PerChannel running_var =
      UpdateRunning(Load(*inputs.running_var), unbiased_variance, attributes.momentum, m);
  StoreIfPresent(running_mean, outputs.running_mean);
  StoreIfPresent(running_var, outputs.running_var);
  StoreIfPresent(batch.mean, outputs.saved_mean);
  StoreIfPresent(inv_std, outputs.saved_inv_std);
}

/// Per channel, what a gradient is made of.
struct GradientSums {
  PerChannel dBias;
  PerChannel dScale;
};

template <typename T>
PerChannel SumOfGradient(const Context& context, const ConstTensorRef& dY) {
  const auto gradient = [](std::int64_t, const Values<1>& dy) { return Sums{dy[0], 0}; };
  const std::vector<Sums> sums = SumChannels<T, 1>(context, {dY}, gradient);
  PerChannel dBias;
  for (const Sums& sum : sums) {
    dBias.push_back(sum[0]);
  }
  return dBias;
}

/// What a call is given for each channel.
struct Channels {
  PerChannel scale;
  PerChannel bias;  ///< empty without an activation
  PerChannel mean;
  PerChannel inv_std;

  explicit Channels(const BatchNormalizationReluGrad::Inputs& inputs)
      : scale(Load(*inputs.scale)),
        bias(inputs.B == nullptr ? PerChannel() : Load(*inputs.B)),
        mean(Load(*inputs.saved_mean)),
        inv_std(Load(*inputs.saved_inv_std)) {}

  [[nodiscard]] double Normalized(std::int64_t c, double x) const {
    return (x - mean[c]) * inv_std[c];
  }
  /// The gradient of what the activation was given.
  [[nodiscard]] double Passed(std::int64_t c, double dy, double x) const {
    return !bias.empty() && (scale[c] * Normalized(c, x)) + bias[c] <= 0 ? 0 : dy;
  }
};

template <typename T>
GradientSums SumGradients(
    const Context& context,
    const ConstTensorRef& dY,
    const ConstTensorRef& X,
    const Channels& channels) {
  const auto products = [&](std::int64_t c, const Values<2>& values) {
    const auto [dy, x] = values;
    const double passed = channels.Passed(c, dy, x);
    return Sums{passed, passed * (x - channels.mean[c])};
  };
  const bool empty = NumElements(X.dims) == 0;
  GradientSums result;
  for (const Sums& sum : SumChannels<T, 2>(context, {dY, X}, products)) {
    result.dBias.push_back(sum[0]);
    // The sum of nothing is zero, also where saved_inv_std is the infinite 1 / sqrt(0 + 0).
    const double factor = empty ? 0 : channels.inv_std[result.dScale.size()];
    result.dScale.push_back(sum[1] * factor);
  }
  return result;
}

/// B is given where there was an activation.
template <typename T>
void Backward(
    const Context& context,
    const BatchNormalizationReluGrad::Inputs& inputs,
    const BatchNormalizationGrad::Outputs& outputs) {
  if (ActivationOf(inputs) == Activation::kNone && !IsPresent(outputs.dX) &&
      !IsPresent(outputs.dScale)) {
    if (IsPresent(outputs.dBias)) {
      StoreIfPresent(SumOfGradient<T>(context, *inputs.dY), outputs.dBias);
    }
    return;
  }
  const Channels channels(inputs);
  const GradientSums sums = SumGradients<T>(context, *inputs.dY, *inputs.X, channels);
  if (IsPresent(outputs.dX)) {
    const double m = SamplesPerChannel(inputs.X->dims);
    // Divided by m last: its reciprocal would not be exact.
    const auto input_gradient = [&](std::int64_t c, const Values<2>& values) {
      const auto [dy, x] = values;
      const double part = (m * channels.Passed(c, dy, x)) - sums.dBias[c] -
                          (channels.Normalized(c, x) * sums.dScale[c]);
      return channels.scale[c] * channels.inv_std[c] * part / m;
    };
    MapChannels<T, 2>(context, {*inputs.dY, *inputs.X}, *outputs.dX, input_gradient);
  }
  StoreIfPresent(sums.dScale, outputs.dScale);
  StoreIfPresent(sums.dBias, outputs.dBias);
}

Status TrainOf(
    const Context& context,
    Activation activation,
    const Attributes& attributes,
    const BatchNormalization::Inputs& inputs,
    const BatchNormalization::Outputs& outputs) {
  if (Status status = CheckShapes(inputs, outputs); !status.ok()) {
    return status;
  }
  VisitDataType(inputs.X->type, [&]<typename T>(std::type_identity<T>) {
    Train<T>(context, activation, attributes, inputs, outputs);
  });
  return {};
}

Status BackwardOf(
    const Context& context,
    const BatchNormalizationReluGrad::Inputs& inputs,
    const BatchNormalizationGrad::Outputs& outputs) {
  if (Status status = CheckShapes(inputs, outputs); !status.ok()) {
    return status;
  }
  VisitDataType(inputs.dY->type, [&]<typename T>(std::type_identity<T>) {
    Backward<T>(context, inputs, outputs);
  });
  return {};
}

}  // namespace

Status BatchNormalization::RunCpu(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return TrainOf(context, Activation::kNone, attributes, inputs, outputs);
}

Status BatchNormalizationRelu::RunCpu(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return TrainOf(context, Activation::kRelu, attributes, inputs, outputs);
}

Status BatchNormalizationGrad::RunCpu(
    const Context& context,
    const Attributes& /*attributes*/,
    const Inputs& inputs,
    const Outputs& outputs) {
  return BackwardOf(context, WithoutActivation(inputs), outputs);
}

Status BatchNormalizationReluGrad::RunCpu(
    const Context& context,
    const Attributes& /*attributes*/,
    const Inputs& inputs,
    const Outputs& outputs) {
  return BackwardOf(context, inputs, outputs);
}

}  // namespace gradsmith::batch_norm
