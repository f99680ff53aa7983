#include "reference/batch_norm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reference/counting_sum.h"

namespace gradsmith::reference::batch_norm {

namespace {

/// Sums of n terms cost n - 1 additions.
CountingSum EmptySum() {
  return CountingSum(/*roundings=*/-1);
}

double Epsilon(const Attributes& attributes) {
  return AttributeOr<double>(attributes, "epsilon", 1e-5);
}

double Momentum(const Attributes& attributes) {
  return AttributeOr<double>(attributes, "momentum", 0.9);
}

/// The elements of one channel of a (N, C, D...) tensor, by their offsets.
class Channels {
 public:
  explicit Channels(const Shape& dims)
      : batch_(dims[0]),
        channels_(dims[1]),
        positions_(reference::Count(Shape(dims.begin() + 2, dims.end()))) {}

  [[nodiscard]] std::int64_t Count() const { return channels_; }
  [[nodiscard]] std::int64_t ElementsInEach() const { return batch_ * positions_; }

  [[nodiscard]] std::vector<std::int64_t> Offsets(std::int64_t channel) const {
    std::vector<std::int64_t> offsets;
    for (std::int64_t n = 0; n < batch_; ++n) {
      for (std::int64_t position = 0; position < positions_; ++position) {
        offsets.push_back((n * channels_ + channel) * positions_ + position);
      }
    }
    return offsets;
  }

 private:
  std::int64_t batch_;
  std::int64_t channels_;
  std::int64_t positions_;
};

std::vector<double> Gather(const Tensor& tensor, const std::vector<std::int64_t>& offsets) {
  std::vector<double> values(offsets.size());
  std::transform(offsets.begin(), offsets.end(), values.begin(), [&](std::int64_t offset) {
    return tensor.values[offset];
  });
  return values;
}

bool IsPowerOfTwo(double value) {
  int exponent = 0;
  return value > 0 && std::frexp(value, &exponent) == 0.5;
}

/// The statistics of a channel of a batch. Where it is empty, mean and variance are 0.
struct Statistics {
  double count = 0;
  CountingNumber mean;
  CountingNumber variance;  ///< biased
  CountingNumber unbiased_variance;
  CountingNumber inverse_std;
};

/// Deviations are from a mean that is taken to be exact: variance is least there, so that an error
/// of the mean changes it to second order alone. What deviations from the oracle's own mean, which
/// is rounded, sum to is no part of the variance.
CountingNumber SquaresOf(const std::vector<double>& values, const CountingNumber& mean) {
  CountingSum squares = EmptySum();
  long double rest = 0;
  for (const double value : values) {
    const CountingNumber deviation = Exactly(value) - Exactly(mean.value);
    squares.Add(deviation * deviation);
    rest += deviation.value;
  }
  CountingNumber result = squares.Get();
  result.value -= values.empty() ? 0 : rest * rest / static_cast<long double>(values.size());
  return result;
}

Statistics StatisticsOf(const std::vector<double>& values, double epsilon) {
  Statistics statistics;
  statistics.count = static_cast<double>(values.size());
  const CountingNumber divisor = Exactly(std::max(1.0, statistics.count));
  CountingSum sum = EmptySum();
  for (const double value : values) {
    sum.Add(Exactly(value));
  }
  statistics.mean = sum.Get() / divisor;
  const CountingNumber squares = SquaresOf(values, statistics.mean);
  statistics.variance = squares / divisor;
  statistics.unbiased_variance = squares / Exactly(std::max(1.0, statistics.count - 1));
  statistics.inverse_std = Exactly(1) / Sqrt(statistics.variance + Constant(epsilon));
  return statistics;
}

const Tensor* Find(const Tensors& tensors, const std::string& name) {
  const auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : &found->second;
}

/// True where X is (N, C, D...) and each of the named inputs that is there is (C).
bool Fits(const Shapes& inputs, const std::vector<std::string>& per_channel) {
  const Shape& X = inputs.at("X");
  return X.size() >= 2 && X.size() <= 5 &&
         std::all_of(per_channel.begin(), per_channel.end(), [&](const std::string& name) {
           const auto found = inputs.find(name);
           return found == inputs.end() || found->second == Shape{X[1]};
         });
}

double Sign(Random& random) {
  return random.Chance(0.5) ? 1 : -1;
}

/// X with channels of different means and spreads.
Tensor MakeRandomX(const Shape& dims, Random& random) {
  Tensor X{dims, std::vector<double>(static_cast<std::size_t>(Count(dims)))};
  const Channels channels(dims);
  for (std::int64_t c = 0; c < channels.Count(); ++c) {
    const double mean = random.Real(-2, 2);
    const double spread = random.Real(0.5, 2);
    for (const std::int64_t offset : channels.Offsets(c)) {
      X.values[offset] = mean + spread * random.Real(-1.7, 1.7);
    }
  }
  return X;
}

/// Where ReLU was given this, it passes gradients on; NaN it passes on as well.
bool IsPassed(const CountingNumber& number) {
  return number.value > 0 || std::isnan(number.value);
}

class Forward final : public Oracle {
 public:
  explicit Forward(bool relu) : relu_(relu) {}

  [[nodiscard]] std::optional<Shapes> OutputShapes(
      const Shapes& inputs,
      const Attributes& /*attributes*/) const override {
    if (!Fits(inputs, {"scale", "B", "running_mean", "running_var"})) {
      return std::nullopt;
    }
    const Shape& X = inputs.at("X");
    const Shape per_channel{X[1]};
    return Shapes{
        {"Y", X},
        {"running_mean", per_channel},
        {"running_var", per_channel},
        {"saved_mean", per_channel},
        {"saved_inv_std", per_channel}};
  }

  [[nodiscard]] ExpectedOutputs Run(const Tensors& inputs, const Attributes& attributes)
      const override {
    const Tensor& X = inputs.at("X");
    const Channels channels(X.dims);
    ExpectedOutputs outputs{{"Y", Unknown(X.dims)}};
    for (const char* name : {"running_mean", "running_var", "saved_mean", "saved_inv_std"}) {
      outputs[name] = Unknown({channels.Count()});
    }
    for (std::int64_t c = 0; c < channels.Count(); ++c) {
      const std::vector<double> values = Gather(X, channels.Offsets(c));
      const Statistics statistics = StatisticsOf(values, Epsilon(attributes));
      Expect(statistics.mean, statistics.count, c, outputs["saved_mean"]);
      Expect(statistics.inverse_std, statistics.count, c, outputs["saved_inv_std"]);
      SetRunning(inputs, statistics, Momentum(attributes), c, outputs);
      for (const std::int64_t offset : channels.Offsets(c)) {
        const CountingNumber normalized = Exactly(inputs.at("scale").values[c]) *
                                              (Exactly(X.values[offset]) - statistics.mean) *
                                              statistics.inverse_std +
                                          Exactly(inputs.at("B").values[c]);
        Expect(
            relu_ ? Max(normalized, Exactly(0)) : normalized, statistics.count, offset,
            outputs["Y"]);
      }
    }
    return outputs;
  }

  [[nodiscard]] Tensors MakeRandomData(
      const Shapes& inputs,
      const Attributes& /*attributes*/,
      Random& random) const override {
    Tensors data;
    for (const auto& [name, dims] : inputs) {
      data[name] = name == "X" ? MakeRandomX(dims, random)
                               : MakeTensor(dims, [&] { return random.Real(0.5, 1.5); });
    }
    return data;
  }

  /// X is an integer mean and, for so many elements that variance + epsilon is a power of 4, that
  /// mean plus or minus a deviation.
  [[nodiscard]] std::optional<ExactData> MakeExactData(
      const Shapes& inputs,
      const Attributes& attributes,
      int level,
      Random& random) const override {
    constexpr int kLevels = 3;
    if (level >= kLevels) {
      return std::nullopt;
    }
    const std::int64_t largest = kLevels - level;
    ExactData data;
    for (const auto& [name, dims] : inputs) {
      data.inputs[name] = MakeTensor(
          dims, [&] { return Sign(random) * static_cast<double>(random.Integer(1, largest)); });
    }
    FillX(PatternFor(data.inputs["X"].dims, Epsilon(attributes)), data.inputs["X"], random);
    for (double& scale : data.inputs["scale"].values) {
      scale = Sign(random) * std::ldexp(1, static_cast<int>(random.Integer(0, 1)));
    }
    data.inexact = Inexact(data.inputs["X"].dims, attributes);
    return data;
  }

  [[nodiscard]] Attributes ExactAttributes() const override {
    return {{"epsilon", 0.25}, {"momentum", 0.5}};
  }

  [[nodiscard]] std::set<std::string> InexactOutputs() const override {
    return {"Y", "saved_mean", "saved_inv_std", "running_mean", "running_var"};
  }

 private:
  /// How many elements of a channel deviate from the mean, half of them up, and by how much.
  struct Pattern {
    std::int64_t deviating = 0;
    double deviation = 0;
    bool exact = false;
  };

  /// With a count of elements that is not a power of two the mean itself is rounded.
  static Pattern PatternFor(const Shape& dims, double epsilon) {
    const std::int64_t count = Channels(dims).ElementsInEach();
    const auto total = static_cast<double>(std::max<std::int64_t>(1, count));
    if (IsPowerOfTwo(total)) {
      for (std::int64_t deviating = count - count % 2; deviating >= 0; deviating -= 2) {
        for (const double deviation : {1., 2., 4.}) {
          const double variance = static_cast<double>(deviating) / total * deviation * deviation;
          if (IsPowerOfTwo(std::sqrt(variance + epsilon))) {
            return {deviating, deviation, true};
          }
        }
      }
    }
    return {count - count % 2, 2, false};
  }

  static void FillX(const Pattern& pattern, Tensor& X, Random& random) {
    const Channels channels(X.dims);
    for (std::int64_t c = 0; c < channels.Count(); ++c) {
      const double mean = Sign(random) * static_cast<double>(random.Integer(1, 3));
      std::vector<std::int64_t> offsets = channels.Offsets(c);
      random.Shuffle(offsets);
      for (std::size_t i = 0; i < offsets.size(); ++i) {
        const bool deviates = static_cast<std::int64_t>(i) < pattern.deviating;
        const double direction = i % 2 == 0 ? 1 : -1;
        X.values[offsets[i]] = mean + (deviates ? direction * pattern.deviation : 0);
      }
    }
  }

  static std::map<std::string, std::string, std::less<>> Inexact(
      const Shape& dims,
      const Attributes& attributes) {
    const std::int64_t count = Channels(dims).ElementsInEach();
    if (count > 0 && !IsPowerOfTwo(static_cast<double>(count))) {
      const std::string why = "N * prod(D) is not a power of two";
      return {
          {"Y", why},
          {"saved_mean", why},
          {"saved_inv_std", why},
          {"running_mean", why},
          {"running_var", why}};
    }
    std::map<std::string, std::string, std::less<>> inexact;
    if (!PatternFor(dims, Epsilon(attributes)).exact) {
      inexact["Y"] = inexact["saved_inv_std"] = "variance + epsilon is no power of 4";
    }
    const double momentum = Momentum(attributes);
    if (momentum * 4 != std::floor(momentum * 4)) {
      inexact["running_mean"] = inexact["running_var"] = "momentum is not a multiple of 1/4";
    }
    if (count > 1) {
      inexact["running_var"] = "N * prod(D) - 1 is not a power of two";
    }
    return inexact;
  }

  static void SetRunning(
      const Tensors& inputs,
      const Statistics& statistics,
      double momentum,
      std::int64_t c,
      ExpectedOutputs& outputs) {
    const CountingNumber weight = Constant(momentum);
    for (const auto& [name, batch] :
         {std::pair("running_mean", statistics.mean),
          std::pair("running_var", statistics.unbiased_variance)}) {
      const Tensor* old = Find(inputs, name);
      if (old == nullptr) {
        continue;
      }
      const CountingNumber kept = Exactly(old->values[c]);
      const bool is_empty = statistics.count == 0;
      const bool is_reached = is_empty || momentum > 0 || batch.value != 0;
      Expect(
          is_empty ? kept : weight * kept + (Exactly(1) - weight) * batch, is_reached ? 1 : 0, c,
          outputs[name]);
    }
  }

  bool relu_;
};

class Gradient final : public Oracle {
 public:
  /// With ReLU there is an input B.
  explicit Gradient(bool relu) : relu_(relu) {}

  [[nodiscard]] std::optional<Shapes> OutputShapes(
      const Shapes& inputs,
      const Attributes& /*attributes*/) const override {
    const Shape& X = inputs.at("X");
    if (!Fits(inputs, {"scale", "B", "saved_mean", "saved_inv_std"}) || inputs.at("dY") != X) {
      return std::nullopt;
    }
    return Shapes{{"dX", X}, {"dScale", {X[1]}}, {"dBias", {X[1]}}};
  }

  [[nodiscard]] ExpectedOutputs Run(const Tensors& inputs, const Attributes& /*attributes*/)
      const override {
    const Tensor& X = inputs.at("X");
    const Channels channels(X.dims);
    ExpectedOutputs outputs{
        {"dX", Unknown(X.dims)},
        {"dScale", Unknown({channels.Count()})},
        {"dBias", Unknown({channels.Count()})}};
    for (std::int64_t c = 0; c < channels.Count(); ++c) {
      RunChannel(inputs, channels.Offsets(c), c, outputs);
    }
    return outputs;
  }

  /// The saved statistics are X's own, as the forward leaves them. With ReLU no element is near
  /// where it bends: the gradient jumps there.
  [[nodiscard]] Tensors MakeRandomData(
      const Shapes& inputs,
      const Attributes& attributes,
      Random& random) const override {
    Tensors data;
    for (const auto& [name, dims] : inputs) {
      data[name] = MakeTensor(dims, [&] { return Sign(random) * random.Real(0.1, 1.5); });
    }
    Tensor& X = data["X"];
    X = relu_ ? MakeXInTwoHalves(X.dims, random) : MakeRandomX(X.dims, random);
    const Channels channels(X.dims);
    for (std::int64_t c = 0; c < channels.Count(); ++c) {
      const std::vector<double> values = Gather(X, channels.Offsets(c));
      const Statistics statistics = StatisticsOf(values, Epsilon(attributes));
      const long double mean = statistics.mean.value;
      const long double inverse_std = statistics.inverse_std.value;
      data["saved_mean"].values[c] = static_cast<double>(mean);
      data["saved_inv_std"].values[c] = static_cast<double>(inverse_std);
      if (relu_) {
        const long double gap = (MiddleOfGap(values) - mean) * inverse_std;
        data["B"].values[c] = static_cast<double>(-data["scale"].values[c] * gap);
      }
    }
    return data;
  }

  /// Integers, and statistics that are not X's. Where the number of elements is a power of two,
  /// each channel repeats one block of eight pairs of dY and X, shuffled, so that dX needs no more
  /// bits than with eight.
  [[nodiscard]] std::optional<ExactData> MakeExactData(
      const Shapes& inputs,
      const Attributes& /*attributes*/,
      int level,
      Random& random) const override {
    constexpr int kLevels = 8;
    if (level >= kLevels) {
      return std::nullopt;
    }
    const std::int64_t largest = std::max(1, 4 - level);
    ExactData data;
    for (const auto& [name, dims] : inputs) {
      data.inputs[name] = MakeTensor(
          dims, [&] { return Sign(random) * static_cast<double>(random.Integer(1, largest)); });
    }
    for (const std::string name : {"scale", "saved_inv_std"}) {
      for (double& value : data.inputs[name].values) {
        const double power = std::ldexp(1, static_cast<int>(random.Integer(-1, 1)));
        value = name == "scale" ? Sign(random) * power : power;
      }
    }
    const std::int64_t count = Channels(data.inputs["X"].dims).ElementsInEach();
    if (count > 0 && !IsPowerOfTwo(static_cast<double>(count))) {
      data.inexact["dX"] = "N * prod(D) is not a power of two";
    } else {
      RepeatBlocks(data.inputs["dY"], data.inputs["X"], random);
    }
    return data;
  }

  [[nodiscard]] std::set<std::string> InexactOutputs() const override { return {"dX"}; }

 private:
  static void RepeatBlocks(Tensor& dY, Tensor& X, Random& random) {
    constexpr std::size_t kBlock = 8;
    const Channels channels(X.dims);
    for (std::int64_t c = 0; c < channels.Count(); ++c) {
      std::vector<std::int64_t> offsets = channels.Offsets(c);
      random.Shuffle(offsets);
      for (std::size_t i = kBlock; i < offsets.size(); ++i) {
        dY.values[offsets[i]] = dY.values[offsets[i - kBlock]];
        X.values[offsets[i]] = X.values[offsets[i - kBlock]];
      }
    }
  }

  /// As MakeRandomX, but nothing is near a channel's middle.
  static Tensor MakeXInTwoHalves(const Shape& dims, Random& random) {
    Tensor X{dims, std::vector<double>(static_cast<std::size_t>(Count(dims)))};
    const Channels channels(dims);
    for (std::int64_t c = 0; c < channels.Count(); ++c) {
      const double middle = random.Real(-2, 2);
      const double spread = random.Real(0.5, 2);
      for (const std::int64_t offset : channels.Offsets(c)) {
        X.values[offset] = middle + Sign(random) * spread * random.Real(0.5, 1.7);
      }
    }
    return X;
  }

  /// The middle of the widest gap between values, or below all where none is wide.
  static double MiddleOfGap(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    double widest = 0.4;
    double middle = values.empty() ? 0 : values[0] - 0.5;
    for (std::size_t i = 1; i < values.size(); ++i) {
      if (values[i] - values[i - 1] > widest) {
        widest = values[i] - values[i - 1];
        middle = (values[i] + values[i - 1]) / 2;
      }
    }
    return middle;
  }

  /// The numbers of a channel.
  struct Channel {
    CountingNumber scale;
    CountingNumber mean;
    CountingNumber inverse_std;
    CountingNumber bias;

    [[nodiscard]] CountingNumber Normalized(double x) const {
      return (Exactly(x) - mean) * inverse_std;
    }
  };

  [[nodiscard]] Channel ChannelOf(const Tensors& inputs, std::int64_t c) const {
    const auto at = [&](const char* name) { return Exactly(inputs.at(name).values[c]); };
    return {at("scale"), at("saved_mean"), at("saved_inv_std"), relu_ ? at("B") : Exactly(0)};
  }

  /// The gradient of what batch normalization left: dY, but where ReLU passed nothing on 0.
  [[nodiscard]] CountingNumber
  PassedGradient(const Tensors& inputs, const Channel& channel, std::int64_t i) const {
    const CountingNumber normalized = channel.Normalized(inputs.at("X").values[i]);
    const bool is_passed = !relu_ || IsPassed(channel.scale * normalized + channel.bias);
    return Exactly(is_passed ? inputs.at("dY").values[i] : 0);
  }

  void RunChannel(
      const Tensors& inputs,
      const std::vector<std::int64_t>& offsets,
      std::int64_t c,
      ExpectedOutputs& outputs) const {
    const Tensor& X = inputs.at("X");
    const Channel channel = ChannelOf(inputs, c);
    CountingSum d_scale = EmptySum();
    CountingSum d_bias = EmptySum();
    for (const std::int64_t i : offsets) {
      const CountingNumber dY = PassedGradient(inputs, channel, i);
      d_scale.Add(dY * channel.Normalized(X.values[i]));
      d_bias.Add(dY);
    }
    Expect(d_scale, c, outputs["dScale"]);
    Expect(d_bias, c, outputs["dBias"]);
    const CountingNumber count = Exactly(static_cast<long double>(offsets.size()));
    for (const std::int64_t i : offsets) {
      const CountingNumber dY = PassedGradient(inputs, channel, i);
      // Kernels may add these in any order, and the factor to any of them first.
      CountingSum gradient = EmptySum();
      gradient.Add(count * dY);
      gradient.Add(-d_bias.Get());
      gradient.Add(-(channel.Normalized(X.values[i]) * d_scale.Get()));
      Expect(
          channel.scale * channel.inverse_std / count * gradient.Get(), d_bias.terms(), i,
          outputs["dX"]);
    }
  }

  bool relu_;
};

}  // namespace

const Oracle& BatchNormalization() {
  static const Forward kOracle(/*relu=*/false);
  return kOracle;
}

const Oracle& BatchNormalizationGrad() {
  static const Gradient kOracle(/*relu=*/false);
  return kOracle;
}

const Oracle& BatchNormalizationRelu() {
  static const Forward kOracle(/*relu=*/true);
  return kOracle;
}

const Oracle& BatchNormalizationReluGrad() {
  static const Gradient kOracle(/*relu=*/true);
  return kOracle;
}

}  // namespace gradsmith::reference::batch_norm
