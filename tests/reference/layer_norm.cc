#include "reference/layer_norm.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gradsmith::reference::layer_norm {

namespace {

using Real = long double;

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
      const std::vector<double> zeros(static_cast<std::size_t>(Count(dims)));
      outputs[name] = {{dims, zeros}, zeros, zeros, zeros};
    }
    for (std::size_t row = 0; row < static_cast<std::size_t>(Count(cut.rows)); ++row) {
      if (is_gradient_) {
        RunGradient(inputs, row, length, outputs);
      } else {
        RunForward(inputs, row, length, AttributeOr<double>(attributes, "epsilon", 1e-5), outputs);
      }
    }
    if (is_gradient_) {
      Round("dScale", outputs);
      if (!is_simplified_) {
        Round("dBias", outputs);
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
  static void
  Put(const std::string& name, std::size_t at, Real value, Real error, ExpectedOutputs& outputs) {
    Expected& output = outputs.at(name);
    output.value.values[at] = static_cast<double>(value);
    output.terms[at] = 1;
    output.bound[at] = static_cast<double>(error);
    output.error[at] = static_cast<double>(error);
  }
  static void AddTo(const std::string& name, std::size_t at, Real term, ExpectedOutputs& outputs) {
    Expected& output = outputs.at(name);
    output.value.values[at] += static_cast<double>(term);
    output.bound[at] += static_cast<double>(std::abs(term));
    output.terms[at] += 1;
  }
  /// Bounds the errors of sums.
  static void Round(const std::string& name, ExpectedOutputs& outputs) {
    Expected& output = outputs.at(name);
    for (std::size_t i = 0; i < output.terms.size(); ++i) {
      output.error[i] = (output.terms[i] + 8) * output.bound[i];
    }
  }

  /// Errors are counted in units of the kernel's roundoff: of a deviation, those of the mean, which
  /// a kernel may find from deviations from any element of the row.
  void RunForward(
      const Tensors& inputs,
      std::size_t row,
      std::size_t length,
      double epsilon,
      ExpectedOutputs& outputs) const {
    const double* const x = inputs.at("X").values.data() + row * length;
    const Real count = length > 0 ? static_cast<Real>(length) : 1;
    Real mean = 0;
    Real spread = 0;
    for (std::size_t i = 0; i < length; ++i) {
      mean += is_simplified_ ? 0 : x[i] / count;
      spread += is_simplified_ ? 0 : std::abs(Real{x[i]} - x[0]) / count;
    }
    const Real mean_error = (count + 8) * spread;
    Real variance = 0;
    Real variance_error = 0;
    for (std::size_t i = 0; i < length; ++i) {
      const Real deviation = x[i] - mean;
      variance += deviation * deviation / count;
      variance_error += 2 * std::abs(deviation) * (2 * spread + mean_error) / count;
    }
    variance_error += (count + 8) * variance;
    const Real inv_std = 1 / std::sqrt(variance + epsilon);
    const Real relative = variance_error / (2 * (variance + epsilon)) + 4;
    for (std::size_t i = 0; i < length; ++i) {
      const Real deviation = x[i] - mean;
      const Real scale = inputs.at("scale").values[i];
      const Real bias = inputs.contains("B") ? inputs.at("B").values[i] : 0;
      const Real from_first = is_simplified_ ? 0 : std::abs(Real{x[i]} - x[0]);
      const Real error = std::abs(scale) * inv_std *
                             (2 * from_first + mean_error + std::abs(deviation) * (relative + 4)) +
                         2 * std::abs(bias);
      Put("Y", row * length + i, deviation * inv_std * scale + bias, error, outputs);
    }
    Put("inv_std", row, inv_std, inv_std * relative, outputs);
    if (!is_simplified_) {
      // Where the deviations are no numbers, neither is the mean that they correct.
      const Real told = std::isnan(variance) ? variance : mean;
      Put("mean", row, told, mean_error + 2 * std::abs(mean), outputs);
    }
  }

  void RunGradient(
      const Tensors& inputs,
      std::size_t row,
      std::size_t length,
      ExpectedOutputs& outputs) const {
    const double* const x = inputs.at("X").values.data() + row * length;
    const double* const dy = inputs.at("dY").values.data() + row * length;
    const std::vector<double>& scale = inputs.at("scale").values;
    const Real mean = is_simplified_ ? 0 : inputs.at("mean").values[row];
    const Real inv_std = inputs.at("inv_std").values[row];
    const auto count = static_cast<Real>(length);
    Real plain = 0;
    Real product = 0;
    Real plain_size = 0;
    Real product_size = 0;
    for (std::size_t i = 0; i < length; ++i) {
      const Real normalized = (x[i] - mean) * inv_std;
      const Real gradient = Real{dy[i]} * scale[i];
      plain += is_simplified_ ? 0 : gradient / count;
      plain_size += is_simplified_ ? 0 : std::abs(gradient) / count;
      product += gradient * normalized / count;
      product_size += std::abs(gradient * normalized) / count;
      AddTo("dScale", i, dy[i] * normalized, outputs);
      if (!is_simplified_) {
        AddTo("dBias", i, dy[i], outputs);
      }
    }
    for (std::size_t i = 0; i < length; ++i) {
      const Real normalized = (x[i] - mean) * inv_std;
      const Real gradient = Real{dy[i]} * scale[i];
      const Real error = 8 * std::abs(gradient) +
                         (count + 12) * (plain_size + std::abs(normalized) * product_size);
      Put("dX", row * length + i, inv_std * (gradient - plain - normalized * product),
          std::abs(inv_std) * error, outputs);
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
