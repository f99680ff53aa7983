#include "reference/prelu.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gradsmith::reference::prelu {

namespace {

/// For each element of X, which of the slope's it meets: the last dims stand together.
std::vector<std::size_t> SlopeOfElements(const Shape& X, const Shape& slope) {
  std::vector<std::size_t> places;
  for (std::int64_t i = 0; i < Count(X); ++i) {
    std::int64_t rest = i;
    std::int64_t place = 0;
    std::int64_t stride = 1;
    for (std::size_t back = 1; back <= slope.size(); ++back) {
      const std::int64_t whole = X[X.size() - back];
      const std::int64_t own = slope[slope.size() - back];
      place += (own == 1 ? 0 : rest % whole) * stride;
      stride *= own;
      rest /= whole;
    }
    places.push_back(static_cast<std::size_t>(place));
  }
  return places;
}

Expected Zero(const Shape& dims) {
  Expected expected;
  expected.value = MakeTensor(dims, [] { return 0; });
  expected.terms.resize(expected.value.values.size());
  expected.bound.resize(expected.value.values.size());
  expected.error.resize(expected.value.values.size());
  return expected;
}

void AddTerm(Expected& expected, std::size_t at, double term) {
  expected.value.values[at] += term;
  expected.terms[at] += 1;
  expected.bound[at] += std::abs(term);
}

/// The rounding of (terms + a few) additions of the terms' absolute values.
void BoundErrors(Expected& expected) {
  for (std::size_t i = 0; i < expected.error.size(); ++i) {
    expected.error[i] = (expected.terms[i] + 4) * expected.bound[i];
  }
}

class PReluOracle final : public Oracle {
 public:
  explicit PReluOracle(bool is_gradient) : is_gradient_(is_gradient) {}

  [[nodiscard]] std::optional<Shapes> OutputShapes(
      const Shapes& inputs,
      const Attributes& /*attributes*/) const override {
    const Shape& X = inputs.at("X");
    const Shape& slope = inputs.at("slope");
    if (slope.size() > X.size() || (is_gradient_ && inputs.at("dY") != X)) {
      return std::nullopt;
    }
    for (std::size_t back = 1; back <= slope.size(); ++back) {
      const std::int64_t own = slope[slope.size() - back];
      if (own != 1 && own != X[X.size() - back]) {
        return std::nullopt;
      }
    }
    return is_gradient_ ? Shapes{{"dX", X}, {"dSlope", slope}} : Shapes{{"Y", X}};
  }

  [[nodiscard]] ExpectedOutputs Run(const Tensors& inputs, const Attributes& /*attributes*/)
      const override {
    const Tensor& X = inputs.at("X");
    const Tensor& slope = inputs.at("slope");
    const std::vector<std::size_t> places = SlopeOfElements(X.dims, slope.dims);
    Expected of_x = Zero(X.dims);
    Expected of_slope = Zero(slope.dims);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const double factor = X.values[i] > 0 ? 1 : slope.values[places[i]];
      AddTerm(of_x, i, factor * (is_gradient_ ? inputs.at("dY").values[i] : X.values[i]));
      if (is_gradient_) {
        AddTerm(of_slope, places[i], X.values[i] > 0 ? 0 : X.values[i] * inputs.at("dY").values[i]);
      }
    }
    BoundErrors(of_x);
    BoundErrors(of_slope);
    return is_gradient_ ? ExpectedOutputs{{"dX", of_x}, {"dSlope", of_slope}}
                        : ExpectedOutputs{{"Y", of_x}};
  }

  [[nodiscard]] Tensors MakeRandomData(
      const Shapes& inputs,
      const Attributes& /*attributes*/,
      Random& random) const override {
    Tensors data;
    for (const auto& [name, dims] : inputs) {
      data[name] = MakeTensor(dims, [&] {
        // Away from 0, where PRelu bends.
        const double size = random.Real(0.25, 4);
        return random.Chance(0.5) ? size : -size;
      });
    }
    return data;
  }

  [[nodiscard]] std::optional<ExactData> MakeExactData(
      const Shapes& inputs,
      const Attributes& /*attributes*/,
      int level,
      Random& random) const override {
    static const std::vector<std::int64_t> kLargest = {7, 3, 1};
    if (level >= static_cast<int>(kLargest.size())) {
      return std::nullopt;
    }
    const std::int64_t largest = kLargest[static_cast<std::size_t>(level)];
    ExactData data;
    for (const auto& [name, dims] : inputs) {
      data.inputs[name] = MakeTensor(dims, [&] { return random.Integer(-largest, largest); });
    }
    return data;
  }

 private:
  bool is_gradient_;
};

}  // namespace

const Oracle& PRelu() {
  static const PReluOracle kOracle(/*is_gradient=*/false);
  return kOracle;
}

const Oracle& PReluGrad() {
  static const PReluOracle kOracle(/*is_gradient=*/true);
  return kOracle;
}

}  // namespace gradsmith::reference::prelu
