#include "reference/elementwise.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gradsmith::reference::elementwise {

namespace {

/// An element of each input, in the order of their names as the oracle was given them.
using Elements = std::vector<double>;

/// An operator with one output, each element of which is a function of the inputs' at its place.
class ElementwiseOracle final : public Oracle {
 public:
  using Function = std::function<double(const Elements&, double alpha)>;

  /// Data are exact where the function adds and multiplies only.
  ElementwiseOracle(
      std::vector<std::string> inputs,
      std::string output,
      bool exact,
      Function function)
      : inputs_(std::move(inputs)),
        output_(std::move(output)),
        exact_(exact),
        function_(std::move(function)) {}

  [[nodiscard]] std::optional<Shapes> OutputShapes(
      const Shapes& inputs,
      const Attributes& /*attributes*/) const override {
    const Shape& dims = inputs.find(inputs_.front())->second;
    for (const std::string& name : inputs_) {
      if (inputs.find(name)->second != dims) {
        return std::nullopt;
      }
    }
    return Shapes{{output_, dims}};
  }

  [[nodiscard]] ExpectedOutputs Run(const Tensors& inputs, const Attributes& attributes)
      const override {
    const auto alpha = AttributeOr<double>(attributes, "alpha", 0.01);
    const Shape& dims = inputs.find(inputs_.front())->second.dims;
    Expected expected;
    std::size_t index = 0;
    expected.value = MakeTensor(dims, [&] {
      Elements elements;
      for (const std::string& name : inputs_) {
        elements.push_back(inputs.find(name)->second.values[index]);
      }
      ++index;
      return function_(elements, alpha);
    });
    for (const double value : expected.value.values) {
      expected.terms.push_back(1);
      // Integers, and halves of them where alpha is a half.
      expected.bound.push_back(2 * std::abs(value));
      expected.error.push_back(kRoundings * std::abs(value));
    }
    return {{output_, expected}};
  }

  [[nodiscard]] Tensors MakeRandomData(
      const Shapes& inputs,
      const Attributes& /*attributes*/,
      Random& random) const override {
    Tensors data;
    for (const auto& [name, dims] : inputs) {
      data[name] = MakeTensor(dims, [&, is_result = name == "Y"] {
        // What sigmoid gives lies between 0 and 1; the others keep away from where functions bend.
        const double size = random.Real(0.25, is_result ? 1 : 4);
        return is_result || random.Chance(0.5) ? size : -size;
      });
    }
    return data;
  }

  [[nodiscard]] std::optional<ExactData> MakeExactData(
      const Shapes& inputs,
      const Attributes& /*attributes*/,
      int level,
      Random& random) const override {
    static const std::vector<std::int64_t> kLargest = {15, 3, 1};
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
    return exact_ ? std::set<std::string>{} : std::set<std::string>{output_};
  }

  [[nodiscard]] Attributes ExactAttributes() const override { return {{"alpha", 0.5}}; }

 private:
  static constexpr double kRoundings = 8;

  std::vector<std::string> inputs_;
  std::string output_;
  bool exact_;
  Function function_;
};

}  // namespace

const Oracle& Sigmoid() {
  static const ElementwiseOracle oracle(
      {"X"}, "Y", false, [](const Elements& in, double) { return 1 / (1 + std::exp(-in[0])); });
  return oracle;
}

const Oracle& SigmoidGrad() {
  static const ElementwiseOracle oracle({"dY", "Y"}, "dX", true, [](const Elements& in, double) {
    const long double y = in[1];
    return static_cast<double>(in[0] * (y * (1 - y)));
  });
  return oracle;
}

const Oracle& LeakyRelu() {
  static const ElementwiseOracle oracle({"X"}, "Y", true, [](const Elements& in, double alpha) {
    return in[0] > 0 ? in[0] : in[0] * alpha;
  });
  return oracle;
}

const Oracle& LeakyReluGrad() {
  static const ElementwiseOracle oracle(
      {"dY", "X"}, "dX", true,
      [](const Elements& in, double alpha) { return in[1] > 0 ? in[0] : in[0] * alpha; });
  return oracle;
}

}  // namespace gradsmith::reference::elementwise
