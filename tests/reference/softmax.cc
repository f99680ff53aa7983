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

#include "reference/counting_sum.h"

namespace gradsmith::reference::softmax {

namespace {

/// A row's elements of one tensor.
using Elements = std::vector<CountingNumber>;

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

/// What is smaller than all others is -infinity: an empty row has no largest element.
CountingNumber Largest(const Elements& x) {
  CountingNumber largest = Given(-std::numeric_limits<long double>::infinity());
  for (const CountingNumber& value : x) {
    largest = Max(largest, value);
  }
  return largest;
}

template <typename Term>
CountingNumber SumOf(std::size_t length, const Term& term) {
  CountingSum sum;
  for (std::size_t i = 0; i < length; ++i) {
    sum.Add(term(i));
  }
  return sum.Get();
}

Elements SoftmaxOf(const Elements& x, bool is_logarithm) {
  const CountingNumber largest = Largest(x);
  const CountingNumber sum = SumOf(x.size(), [&](std::size_t i) { return Exp(x[i] - largest); });
  Elements row;
  for (const CountingNumber& value : x) {
    row.push_back(is_logarithm ? value - largest - Log(sum) : Exp(value - largest) / sum);
  }
  return row;
}

Elements SoftmaxGradOf(const Elements& dy, const Elements& y) {
  const CountingNumber sum = SumOf(y.size(), [&](std::size_t i) { return dy[i] * y[i]; });
  Elements row;
  for (std::size_t i = 0; i < y.size(); ++i) {
    row.push_back(y[i] * (dy[i] - sum));
  }
  return row;
}

Elements LogSoftmaxGradOf(const Elements& dy, const Elements& y) {
  const CountingNumber sum = SumOf(y.size(), [&](std::size_t i) { return dy[i]; });
  Elements row;
  for (std::size_t i = 0; i < y.size(); ++i) {
    row.push_back(dy[i] - Exp(y[i]) * sum);
  }
  return row;
}

class SoftmaxOracle final : public Oracle {
 public:
  using Function = Elements (*)(const std::vector<Elements>& inputs);

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
    Expected expected = Unknown(dims);
    for (std::int64_t row = 0; row < cut.outer * cut.inner; ++row) {
      const std::int64_t first = row / cut.inner * cut.length * cut.inner + row % cut.inner;
      const auto at = [&](std::int64_t i) {
        return static_cast<std::size_t>(first + i * cut.inner);
      };
      std::vector<Elements> rows;
      for (const std::string& name : inputs_) {
        Elements& elements = rows.emplace_back();
        for (std::int64_t i = 0; i < cut.length; ++i) {
          elements.push_back(Given(inputs.find(name)->second.values[at(i)]));
        }
      }
      const Elements outputs = function_(rows);
      for (std::int64_t i = 0; i < cut.length; ++i) {
        Expect(
            outputs[static_cast<std::size_t>(i)], static_cast<double>(cut.length), at(i), expected);
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
