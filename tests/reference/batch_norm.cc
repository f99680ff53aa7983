#include "reference/batch_norm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gradsmith::reference::batch_norm {

namespace {

/// What the oracle computes in: with more bits and a larger range than any type under test, so that
/// what over- or underflows in double on the way does not here.
using Real = long double;

/// Elementary operations after a sum, counted generously: each adds at most one unit of roundoff.
constexpr double kAFew = 8;

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

Real Sum(const std::vector<double>& values, const std::function<Real(Real)>& term) {
  Real sum = 0;
  for (const double value : values) {
    sum += term(value);
  }
  return sum;
}

bool IsPowerOfTwo(double value) {
  int exponent = 0;
  return value > 0 && std::frexp(value, &exponent) == 0.5;
}

/// One channel of a batch. Of an empty one, mean and variance are 0.
struct Statistics {
  double count = 0;
  Real mean = 0;
  Real variance = 0;  ///< biased
  Real unbiased_variance = 0;
  Real inverse_std = 0;
  Real mean_magnitude = 0;  ///< mean of |x|
  Real square_sum = 0;      ///< sum of x^2
};

Statistics StatisticsOf(const std::vector<double>& values, double epsilon) {
  Statistics statistics;
  statistics.count = static_cast<double>(values.size());
  const Real divisor = std::max(1.0, statistics.count);
  statistics.mean = Sum(values, [](Real x) { return x; }) / divisor;
  statistics.mean_magnitude = Sum(values, [](Real x) { return std::abs(x); }) / divisor;
  statistics.square_sum = Sum(values, [](Real x) { return x * x; });
  // The mean is rounded: what the deviations from it sum to is no part of the variance.
  const Real rest = Sum(values, [&](Real x) { return x - statistics.mean; });
  const Real squares =
      Sum(values, [&](Real x) { return (x - statistics.mean) * (x - statistics.mean); }) -
      rest * rest / divisor;
  statistics.variance = squares / divisor;
  statistics.unbiased_variance = squares / std::max(1.0, statistics.count - 1);
  statistics.inverse_std = 1 / std::sqrt(statistics.variance + epsilon);
  return statistics;
}

Expected MakeExpected(const Shape& dims) {
  const auto count = static_cast<std::size_t>(Count(dims));
  Expected expected;
  expected.value = {dims, std::vector<double>(count)};
  expected.terms.resize(count);
  expected.bound.resize(count);
  expected.error.resize(count);
  return expected;
}

struct Element {
  Real value = 0;
  double terms = 0;
  Real bound = 0;
  Real error = 0;
};

void Set(Expected& expected, std::int64_t offset, const Element& element) {
  expected.value.values[offset] = static_cast<double>(element.value);
  expected.terms[offset] = element.terms;
  expected.bound[offset] = static_cast<double>(element.bound);
  expected.error[offset] = static_cast<double>(element.error);
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
bool IsPassed(Real value) {
  return value > 0 || std::isnan(value);
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
    ExpectedOutputs outputs{{"Y", MakeExpected(X.dims)}};
    for (const char* name : {"running_mean", "running_var", "saved_mean", "saved_inv_std"}) {
      outputs[name] = MakeExpected({channels.Count()});
    }
    for (std::int64_t c = 0; c < channels.Count(); ++c) {
      const std::vector<double> values = Gather(X, channels.Offsets(c));
      const Statistics statistics = StatisticsOf(values, Epsilon(attributes));
      SetStatistics(statistics, c, outputs);
      SetRunning(inputs, statistics, Momentum(attributes), c, outputs);
      for (const std::int64_t offset : channels.Offsets(c)) {
        Element element = Normalize(
            X.values[offset], statistics, inputs.at("scale").values[c], inputs.at("B").values[c]);
        if (relu_ && !IsPassed(element.value)) {
          element.value = 0;
        }
        Set(outputs["Y"], offset, element);
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

  static void
  SetStatistics(const Statistics& statistics, std::int64_t c, ExpectedOutputs& outputs) {
    const double count = statistics.count;
    Set(outputs["saved_mean"], c,
        {.value = statistics.mean,
         .terms = count,
         .bound = Bound(statistics),
         .error = (count + 1) * statistics.mean_magnitude});
    Set(outputs["saved_inv_std"], c,
        {.value = statistics.inverse_std,
         .terms = count,
         .bound = Bound(statistics),
         .error = (count + kAFew) * statistics.inverse_std});
  }

  static void SetRunning(
      const Tensors& inputs,
      const Statistics& statistics,
      double momentum,
      std::int64_t c,
      ExpectedOutputs& outputs) {
    const double count = statistics.count;
    struct Running {
      const char* name;
      Real batch;
      Real magnitude;
    };
    for (const auto& [name, batch, magnitude] :
         {Running{"running_mean", statistics.mean, statistics.mean_magnitude},
          Running{"running_var", statistics.unbiased_variance, statistics.unbiased_variance}}) {
      const Tensor* old = Find(inputs, name);
      if (old == nullptr) {
        continue;
      }
      const Real kept = old->values[c];
      const Real value = count == 0 ? kept : momentum * kept + (1 - momentum) * batch;
      // A momentum rounded to the accumulator's type changes 1 - momentum by up to one unit, not by
      // a part of it.
      const Real error =
          kAFew * (std::abs(kept) + magnitude) + (1 - momentum) * (count + kAFew) * magnitude;
      Set(outputs[name], c,
          {.value = value,
           .terms = count == 0 || momentum > 0 || batch != 0 ? 1. : 0.,
           .bound = Bound(statistics) + 4 * std::abs(kept),
           .error = error});
    }
  }

  static Element Normalize(double x, const Statistics& statistics, double scale, double shift) {
    const double count = statistics.count;
    const Real factor = std::abs(scale) * statistics.inverse_std;
    const Real deviation = std::abs(x - statistics.mean);
    return {
        .value = scale * (x - statistics.mean) * statistics.inverse_std + shift,
        .terms = count,
        .bound = Bound(statistics) + 4 * std::abs(shift),
        .error = factor * ((count + 1) * statistics.mean_magnitude + (count + kAFew) * deviation) +
                 2 * std::abs(shift)};
  }

  /// All that MakeExactData leads to are multiples of 1/4, and the sum of squares is the largest.
  static Real Bound(const Statistics& statistics) { return 4 * (statistics.square_sum + 16); }

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
        {"dX", MakeExpected(X.dims)},
        {"dScale", MakeExpected({channels.Count()})},
        {"dBias", MakeExpected({channels.Count()})}};
    const std::vector<double> dY = PassedGradients(inputs);
    for (std::int64_t c = 0; c < channels.Count(); ++c) {
      RunChannel(inputs, dY, channels.Offsets(c), c, outputs);
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
      data["saved_mean"].values[c] = static_cast<double>(statistics.mean);
      data["saved_inv_std"].values[c] = static_cast<double>(statistics.inverse_std);
      if (relu_) {
        const Real gap = (MiddleOfGap(values) - statistics.mean) * statistics.inverse_std;
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

  /// The gradient of what batch normalization left: dY, but where ReLU passed nothing on 0.
  [[nodiscard]] std::vector<double> PassedGradients(const Tensors& inputs) const {
    std::vector<double> passed = inputs.at("dY").values;
    const Tensor& X = inputs.at("X");
    const Channels channels(X.dims);
    for (std::int64_t c = 0; relu_ && c < channels.Count(); ++c) {
      const Real slope = Real{inputs.at("scale").values[c]} * inputs.at("saved_inv_std").values[c];
      for (const std::int64_t i : channels.Offsets(c)) {
        const Real normalized = slope * (Real{X.values[i]} - inputs.at("saved_mean").values[c]);
        if (!IsPassed(normalized + inputs.at("B").values[c])) {
          passed[i] = 0;
        }
      }
    }
    return passed;
  }

  static void RunChannel(
      const Tensors& inputs,
      const std::vector<double>& dY,
      const std::vector<std::int64_t>& offsets,
      std::int64_t c,
      ExpectedOutputs& outputs) {
    const Tensor& X = inputs.at("X");
    const Real scale = inputs.at("scale").values[c];
    const Real mean = inputs.at("saved_mean").values[c];
    const Real inverse_std = inputs.at("saved_inv_std").values[c];
    const Real count = offsets.size();
    Real d_scale = 0;
    Real d_bias = 0;
    Real d_scale_magnitude = 0;
    Real d_bias_magnitude = 0;
    for (const std::int64_t i : offsets) {
      const Real product = dY[i] * (X.values[i] - mean) * inverse_std;
      d_scale += product;
      d_bias += dY[i];
      d_scale_magnitude += std::abs(product);
      d_bias_magnitude += std::abs(dY[i]);
    }
    // With MakeExactData, dY are multiples of 1, X - mean too, inverse_std of 1/2.
    Set(outputs["dScale"], c,
        {.value = d_scale,
         .terms = static_cast<double>(count),
         .bound = 2 * d_scale_magnitude,
         .error = (count + kAFew) * d_scale_magnitude});
    Set(outputs["dBias"], c,
        {.value = d_bias,
         .terms = static_cast<double>(count),
         .bound = d_bias_magnitude,
         .error = (count + 1) * d_bias_magnitude});
    for (const std::int64_t i : offsets) {
      const Real xhat = (X.values[i] - mean) * inverse_std;
      const Real magnitude =
          count * std::abs(dY[i]) + d_bias_magnitude + std::abs(xhat) * d_scale_magnitude;
      const Real factor = std::abs(scale) * inverse_std / count;
      Set(outputs["dX"], i,
          {.value = scale * inverse_std / count * (count * dY[i] - d_bias - xhat * d_scale),
           .terms = static_cast<double>(count),
           .bound = 4 * magnitude,
           .error = factor * (count + kAFew) * magnitude});
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
