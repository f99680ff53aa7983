#include "reference/softmax.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gradsmith::reference::softmax {

namespace {

using Real = long double;
/// A row's elements of one tensor.
using Elements = std::vector<Real>;

/// What is expected of one element: the value, and the error's bound (Expected::error).
struct Element {
  Real value = 0;
  Real error = 0;
};

/// A tensor as [outer, length, inner]: its rows have `length` elements, `inner` apart.
struct Cut {
  std::int64_t outer = 1;
  std::int64_t length = 1;
  std::int64_t inner = 1;
};

std::optional<Cut> CutOf(const Shape& dims, const Attributes& attributes) {
  const auto rank = static_cast<std::int64_t>(dims.size());
  auto axis = AttributeOr<std::int64_t>(attributes, "axis", -1);
  if (axis < -rank || axis >= rank) {
    return std::nullopt;
  }
  axis += axis < 0 ? rank : 0;
  const bool coerced = AttributeOr<bool>(attributes, "coerced", false);
  Cut cut;
  for (std::int64_t i = 0; i < rank; ++i) {
    const std::int64_t dim = dims[static_cast<std::size_t>(i)];
    if (i < axis) {
      cut.outer *= dim;
    } else if (i == axis || coerced) {
      cut.length *= dim;
    } else {
      cut.inner *= dim;
    }
  }
  return cut;
}

Real Largest(const Elements& x) {
  Real largest = -std::numeric_limits<Real>::infinity();
  for (const Real value : x) {
    largest = std::max(largest, value);
  }
  return largest;
}

/// A product that is 0 where its first factor is.
Real Times(Real factor, Real of) {
  return factor == 0 ? 0 : factor * of;
}

/// The kernel rounds differences to the largest element, and a power's error is its exponent's.
std::vector<Element> SoftmaxOf(const Elements& x, bool is_logarithm) {
  const Real largest = Largest(x);
  Real sum = 0;
  Real exponents = 0;
  for (const Real value : x) {
    const Real power = std::exp(value - largest);
    sum += power;
    exponents += Times(power, largest - value);
  }
  const auto terms = static_cast<Real>(x.size());
  // Relative to the sum: of each power, and of adding them.
  const Real of_sum = exponents / sum + terms + 4;
  std::vector<Element> row;
  for (const Real value : x) {
    if (is_logarithm) {
      const Real logarithm = std::log(sum);
      const Real distance = largest - value;
      const Real size = std::isinf(distance) ? 0 : 4 * (distance + logarithm);
      row.push_back({-distance - logarithm, size + of_sum});
    } else {
      const Real y = std::exp(value - largest) / sum;
      row.push_back({y, Times(y, largest - value + of_sum + 6)});
    }
  }
  return row;
}

std::vector<Element> SoftmaxGradOf(const Elements& dy, const Elements& y) {
  Real sum = 0;
  Real size = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    sum += dy[i] * y[i];
    size += std::abs(dy[i] * y[i]);
  }
  const auto terms = static_cast<Real>(y.size());
  std::vector<Element> row;
  for (std::size_t i = 0; i < y.size(); ++i) {
    row.push_back(
        {y[i] * (dy[i] - sum), std::abs(y[i]) * ((terms + 4) * size + 4 * std::abs(dy[i]))});
  }
  return row;
}

std::vector<Element> LogSoftmaxGradOf(const Elements& dy, const Elements& y) {
  Real sum = 0;
  Real size = 0;
  for (const Real value : dy) {
    sum += value;
    size += std::abs(value);
  }
  const auto terms = static_cast<Real>(y.size());
  std::vector<Element> row;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const Real power = std::exp(y[i]);
    row.push_back(
        {dy[i] - power * sum, 4 * std::abs(dy[i]) + power * size * (terms + 6 + std::abs(y[i]))});
  }
  return row;
}

class SoftmaxOracle final : public Oracle {
 public:
  using Function = std::vector<Element> (*)(const std::vector<Elements>& inputs);

  SoftmaxOracle(std::vector<std::string> inputs, std::string output, bool exact, Function function)
      : inputs_(std::move(inputs)),
        output_(std::move(output)),
        exact_(exact),
        function_(function) {}

  [[nodiscard]] std::optional<Shapes> OutputShapes(
      const Shapes& inputs,
      const Attributes& attributes) const override {
    const Shape& dims = inputs.find(inputs_.front())->second;
    for (const std::string& name : inputs_) {
      if (inputs.find(name)->second != dims) {
        return std::nullopt;
      }
    }
    return CutOf(dims, attributes) ? std::optional(Shapes{{output_, dims}}) : std::nullopt;
  }

  [[nodiscard]] ExpectedOutputs Run(const Tensors& inputs, const Attributes& attributes)
      const override {
    const Shape& dims = inputs.find(inputs_.front())->second.dims;
    const Cut cut = CutOf(dims, attributes).value();
    const std::vector<double> zeros(static_cast<std::size_t>(Count(dims)));
    Expected expected = {{dims, zeros}, zeros, zeros, zeros};
    for (std::int64_t row = 0; row < cut.outer * cut.inner; ++row) {
      const std::int64_t first = row / cut.inner * cut.length * cut.inner + row % cut.inner;
      const auto at = [&](std::int64_t i) {
        return static_cast<std::size_t>(first + i * cut.inner);
      };
      std::vector<Elements> rows;
      for (const std::string& name : inputs_) {
        Elements& elements = rows.emplace_back();
        for (std::int64_t i = 0; i < cut.length; ++i) {
          elements.push_back(inputs.find(name)->second.values[at(i)]);
        }
      }
      const std::vector<Element> outputs = function_(rows);
      for (std::int64_t i = 0; i < cut.length; ++i) {
        const Element& element = outputs[static_cast<std::size_t>(i)];
        expected.value.values[at(i)] = static_cast<double>(element.value);
        expected.terms[at(i)] = static_cast<double>(cut.length);
        expected.bound[at(i)] = static_cast<double>(element.error);
        expected.error[at(i)] = static_cast<double>(element.error);
      }
    }
    return {{output_, expected}};
  }

  [[nodiscard]] Tensors MakeRandomData(
      const Shapes& inputs,
      const Attributes& attributes,
      Random& random) const override {
    Tensors data;
    for (const auto& [name, dims] : inputs) {
      const auto length = static_cast<double>(CutOf(dims, attributes).value().length);
      data[name] = MakeTensor(dims, [&, is_result = name == "Y"] {
        if (!is_result) {
          return random.Real(-3, 3);
        }
        // What softmax gives, or its logarithm.
        const double part = random.Real(0.25, 2) / std::max(length, 2.0);
        return exact_ ? part : std::log(part);
      });
    }
    return data;
  }

  [[nodiscard]] std::optional<ExactData> MakeExactData(
      const Shapes& inputs,
      const Attributes& /*attributes*/,
      int level,
      Random& random) const override {
    static const std::vector<std::int64_t> kLargest = {5, 2, 1};
    if (level >= static_cast<int>(kLargest.size())) {
      return std::nullopt;
    }
    ExactData data;
    for (const auto& [name, dims] : inputs) {
      data.inputs[name] =
          MakeTensor(dims, [&] { return random.Integer(-kLargest[level], kLargest[level]); });
    }
    if (!exact_) {
      data.inexact[output_] = "an exponential is rounded";
    }
    return data;
  }

  [[nodiscard]] std::set<std::string> InexactOutputs() const override {
    // Long rows of integers give more bits than a half has.
    return {output_};
  }

 private:
  std::vector<std::string> inputs_;
  std::string output_;
  bool exact_;
  Function function_;
};

}  // namespace

const Oracle& Softmax() {
  static const SoftmaxOracle oracle(
      {"X"}, "Y", false, [](const std::vector<Elements>& in) { return SoftmaxOf(in[0], false); });
  return oracle;
}

const Oracle& SoftmaxGrad() {
  static const SoftmaxOracle oracle({"dY", "Y"}, "dX", true, [](const std::vector<Elements>& in) {
    return SoftmaxGradOf(in[0], in[1]);
  });
  return oracle;
}

const Oracle& LogSoftmax() {
  static const SoftmaxOracle oracle(
      {"X"}, "Y", false, [](const std::vector<Elements>& in) { return SoftmaxOf(in[0], true); });
  return oracle;
}

const Oracle& LogSoftmaxGrad() {
  static const SoftmaxOracle oracle({"dY", "Y"}, "dX", false, [](const std::vector<Elements>& in) {
    return LogSoftmaxGradOf(in[0], in[1]);
  });
  return oracle;
}

}  // namespace gradsmith::reference::softmax
