#include "reference/layer_norm.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reference/counting_sum.h"

namespace gradsmith::reference::layer_norm {

namespace {

/// X as rows: those of the dims before the axis, each of all dims from it on.
struct Cut {
  Shape rows;
  Shape row;
};

std::optional<Cut> CutOf(const Shape& X, const Attributes& attributes) {
  const auto rank = static_cast<std::int64_t>(X.size());
  auto axis = AttributeOr<std::int64_t>(attributes, "axis", -1);
  if (axis < -rank || axis >= rank) {
    return std::nullopt;
  }
  axis += axis < 0 ? rank : 0;
  return Cut{{X.begin(), X.begin() + axis}, {X.begin() + axis, X.end()}};
}

/// Sums over the rows, one for each column.
struct Sums {
  std::vector<CountingSum> of_scale;
  std::vector<CountingSum> of_bias;
};

class LayerNormOracle : public Oracle {
 public:
  /// Simplified: without mean and bias.
  LayerNormOracle(bool is_simplified, bool is_gradient)
      : is_simplified_(is_simplified), is_gradient_(is_gradient) {}

  [[nodiscard]] std::optional<Shapes> OutputShapes(
      const Shapes& inputs,
      const Attributes& attributes) const override {
    const Shape& X = inputs.at("X");
    const std::optional<Cut> cut = CutOf(X, attributes);
    if (!cut) {
      return std::nullopt;
    }
    for (const auto& [name, dims] : inputs) {
      const bool is_of_row = name == "scale" || name == "B";
      const bool is_of_rows = name == "mean" || name == "inv_std";
      const Shape& of_others = is_of_rows ? cut->rows : X;
      if (dims != (is_of_row ? cut->row : of_others)) {
        return std::nullopt;
      }
    }
    Shapes shapes;
    if (is_gradient_) {
      shapes = {{"dX", X}, {"dScale", cut->row}};
    } else {
      shapes = {{"Y", X}, {"inv_std", cut->rows}};
    }
    if (!is_simplified_) {
      shapes[is_gradient_ ? "dBias" : "mean"] = is_gradient_ ? cut->row : cut->rows;
    }
    return shapes;
  }

  [[nodiscard]] ExpectedOutputs Run(const Tensors& inputs, const Attributes& attributes)
      const override {
    const Cut cut = CutOf(inputs.at("X").dims, attributes).value();
    const auto length = static_cast<std::size_t>(Count(cut.row));
    ExpectedOutputs outputs;
    const std::optional<Shapes> shapes = OutputShapes(ShapesOf(inputs), attributes);
    for (const auto& [name, dims] : *shapes) {
      outputs[name] = Unknown(dims);
    }
    Sums sums = {std::vector<CountingSum>(length), std::vector<CountingSum>(length)};
    for (std::size_t row = 0; row < static_cast<std::size_t>(Count(cut.rows)); ++row) {
      if (is_gradient_) {
        RunGradient(inputs, row, length, outputs, sums);
      } else {
        RunForward(inputs, row, length, AttributeOr<double>(attributes, "epsilon", 1e-5), outputs);
      }
    }
    for (std::size_t i = 0; is_gradient_ && i < length; ++i) {
      Expect(sums.of_scale[i], i, outputs.at("dScale"));
      if (!is_simplified_) {
        Expect(sums.of_bias[i], i, outputs.at("dBias"));
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
      const bool is_positive = name == "inv_std" || name == "scale";
      data[name] =
          MakeTensor(dims, [&] { return is_positive ? random.Real(0.5, 2) : random.Real(-2, 2); });
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
      data.inputs[name] = MakeTensor(dims, [&, is_inv_std = name == "inv_std"] {
        return is_inv_std ? 1 : random.Integer(-kLargest[level], kLargest[level]);
      });
    }
    for (const std::string& output : InexactOutputs()) {
      data.inexact[output] = "means are rounded";
    }
    return data;
  }

  [[nodiscard]] std::set<std::string> InexactOutputs() const override {
    if (is_gradient_) {
      return {"dX"};
    }
    return is_simplified_ ? std::set<std::string>{"Y", "inv_std"}
                          : std::set<std::string>{"Y", "mean", "inv_std"};
  }

 private:
  using Numbers = std::vector<CountingNumber>;

  static Numbers
  RowOf(const Tensors& inputs, const char* name, std::size_t row, std::size_t length) {
    Numbers numbers;
    for (std::size_t i = 0; i < length; ++i) {
      numbers.push_back(Given(inputs.at(name).values[row * length + i]));
    }
    return numbers;
  }

  /// The mean of terms, 0 where there are none.
  template <typename Term>
  static CountingNumber MeanOf(std::size_t length, const Term& term) {
    CountingSum sum;
    for (std::size_t i = 0; i < length; ++i) {
      sum.Add(term(i));
    }
    return length > 0 ? sum.Get() / Given(sum.terms()) : sum.Get();
  }

  void RunForward(
      const Tensors& inputs,
      std::size_t row,
      std::size_t length,
      double epsilon,
      ExpectedOutputs& outputs) const {
    const Numbers x = RowOf(inputs, "X", row, length);
    const CountingNumber mean =
        is_simplified_ ? CountingNumber() : MeanOf(length, [&](std::size_t i) { return x[i]; });
    const CountingNumber variance = MeanOf(length, [&](std::size_t i) {
      const CountingNumber deviation = x[i] - mean;
      return deviation * deviation;
    });
    const CountingNumber inv_std = Rsqrt(variance + Constant(epsilon));
    for (std::size_t i = 0; i < length; ++i) {
      const CountingNumber scale = Given(inputs.at("scale").values[i]);
      const CountingNumber bias = Given(inputs.contains("B") ? inputs.at("B").values[i] : 0);
      Expect((x[i] - mean) * inv_std * scale + bias, 1, row * length + i, outputs.at("Y"));
    }
    Expect(inv_std, 1, row, outputs.at("inv_std"));
    if (!is_simplified_) {
      // Where the deviations are no numbers, neither is the mean that kernels correct by them.
      Expect(std::isnan(variance.value) ? variance : mean, 1, row, outputs.at("mean"));
    }
  }

  void RunGradient(
      const Tensors& inputs,
      std::size_t row,
      std::size_t length,
      ExpectedOutputs& outputs,
      Sums& sums) const {
    const Numbers x = RowOf(inputs, "X", row, length);
    const Numbers dy = RowOf(inputs, "dY", row, length);
    const Numbers scale = RowOf(inputs, "scale", 0, length);
    const CountingNumber mean = Given(is_simplified_ ? 0 : inputs.at("mean").values[row]);
    const CountingNumber inv_std = Given(inputs.at("inv_std").values[row]);
    const auto normalized = [&](std::size_t i) { return (x[i] - mean) * inv_std; };
    const CountingNumber plain =
        is_simplified_ ? CountingNumber()
                       : MeanOf(length, [&](std::size_t i) { return dy[i] * scale[i]; });
    const CountingNumber product =
        MeanOf(length, [&](std::size_t i) { return dy[i] * scale[i] * normalized(i); });
    for (std::size_t i = 0; i < length; ++i) {
      sums.of_scale[i].Add(dy[i] * normalized(i));
      sums.of_bias[i].Add(dy[i]);
      Expect(
          inv_std * (dy[i] * scale[i] - plain - normalized(i) * product), 1, row * length + i,
          outputs.at("dX"));
    }
  }

  bool is_simplified_;
  bool is_gradient_;
};

}  // namespace

const Oracle& LayerNormalization() {
  static const LayerNormOracle oracle(false, false);
  return oracle;
}

const Oracle& LayerNormalizationGrad() {
  static const LayerNormOracle oracle(false, true);
  return oracle;
}

const Oracle& SimplifiedLayerNormalization() {
  static const LayerNormOracle oracle(true, false);
  return oracle;
}

const Oracle& SimplifiedLayerNormalizationGrad() {
  static const LayerNormOracle oracle(true, true);
  return oracle;
}

}  // namespace gradsmith::reference::layer_norm
