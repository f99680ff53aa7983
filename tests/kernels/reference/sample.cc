#include "reference/sample.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "reference/counting_sum.h"

namespace gradsmith::reference::sample {

namespace {

/// X as [outer, length, inner], whatever its rank.
struct Split {
  std::int64_t outer = 1;
  std::int64_t length = 0;
  std::int64_t inner = 1;
  Shape rows;  ///< X's dims without the axis
};

std::optional<Split> SplitOf(const Shape& X, const Attributes& attributes) {
  auto axis = AttributeOr<std::int64_t>(attributes, "axis", -1);
  const auto rank = static_cast<std::int64_t>(X.size());
  if (axis < -rank || axis >= rank) {
    return std::nullopt;
  }
  axis = (axis + rank) % rank;
  const auto factors = AttributeOr<std::vector<double>>(attributes, "factors", {});
  if (!factors.empty() && static_cast<std::int64_t>(factors.size()) != axis) {
    return std::nullopt;
  }
  Split split;
  for (std::int64_t i = 0; i < rank; ++i) {
    const std::int64_t dim = X[static_cast<std::size_t>(i)];
    if (i == axis) {
      split.length = dim;
      continue;
    }
    (i < axis ? split.outer : split.inner) *= dim;
    split.rows.push_back(dim);
  }
  return split;
}

class PickOracle final : public Oracle {
 public:
  explicit PickOracle(bool is_gradient) : is_gradient_(is_gradient) {}

  [[nodiscard]] std::optional<Shapes> OutputShapes(
      const Shapes& inputs,
      const Attributes& attributes) const override {
    const std::optional<Split> split = SplitOf(inputs.at("X"), attributes);
    if (!split) {
      return std::nullopt;
    }
    for (const auto& [name, dims] : inputs) {
      if (name != "X" && dims != split->rows) {
        return std::nullopt;
      }
    }
    return is_gradient_ ? Shapes{{"dX", inputs.at("X")}}
                        : Shapes{{"Y", split->rows}, {"hits", split->rows}};
  }

  [[nodiscard]] ExpectedOutputs Run(const Tensors& inputs, const Attributes& attributes)
      const override {
    const Split split = SplitOf(inputs.at("X").dims, attributes).value();
    ExpectedOutputs outputs;
    const std::optional<Shapes> shapes = OutputShapes(ShapesOf(inputs), attributes);
    for (const auto& [name, dims] : *shapes) {
      outputs[name] = Unknown(dims);
    }
    for (std::int64_t row = 0; row < split.outer * split.inner; ++row) {
      AddRow(inputs, attributes, split, row, outputs);
    }
    return outputs;
  }

  [[nodiscard]] Tensors MakeRandomData(
      const Shapes& inputs,
      const Attributes& attributes,
      Random& random) const override {
    return MakeData(inputs, attributes, random, [&] { return random.Real(-2, 2); });
  }

  [[nodiscard]] std::optional<ExactData> MakeExactData(
      const Shapes& inputs,
      const Attributes& attributes,
      int level,
      Random& random) const override {
    if (level > 0) {
      return std::nullopt;
    }
    return ExactData{
        MakeData(inputs, attributes, random, [&] { return random.Integer(1, 9); }), {}};
  }

 private:
  template <typename Draw>
  static Tensors
  MakeData(const Shapes& inputs, const Attributes& attributes, Random& random, Draw draw) {
    const Split split = SplitOf(inputs.at("X"), attributes).value();
    Tensors data;
    for (const auto& [name, dims] : inputs) {
      if (name == "index") {
        // One of ten rows names no element.
        data[name] = MakeTensor(
            dims, [&] { return random.Chance(0.1) ? -1 : random.Integer(0, split.length - 1); });
      } else if (name == "mask") {
        data[name] = MakeTensor(dims, [&] { return random.Chance(0.8) ? 1 : 0; });
      } else {
        data[name] = MakeTensor(dims, draw);
      }
    }
    return data;
  }

  void AddRow(
      const Tensors& inputs,
      const Attributes& attributes,
      const Split& split,
      std::int64_t row,
      ExpectedOutputs& outputs) const {
    const auto at = static_cast<std::size_t>(row);
    const double index = inputs.at("index").values[at];
    const bool is_masked = inputs.contains("mask") && inputs.at("mask").values[at] == 0;
    const auto ignored = attributes.find("ignore_index");
    const bool is_ignored = ignored != attributes.end() &&
                            index == static_cast<double>(std::get<std::int64_t>(ignored->second));
    if (is_masked || is_ignored || index < 0 || index >= static_cast<double>(split.length)) {
      return;
    }
    const std::int64_t x_at =
        (row / split.inner * split.length + static_cast<std::int64_t>(index)) * split.inner +
        row % split.inner;
    CountingNumber scale =
        Given(AttributeOr<bool>(attributes, "negate", false) ? -1 : 1) *
        Given(AttributeOr<std::string>(attributes, "unit", "one") == "two" ? 2 : 1);
    for (const double factor : AttributeOr<std::vector<double>>(attributes, "factors", {})) {
      scale = scale * Constant(factor);
    }
    const CountingNumber limit =
        Constant(AttributeOr<double>(attributes, "limit", std::numeric_limits<double>::infinity()));
    const CountingNumber sum =
        scale * Given(inputs.at("X").values[static_cast<std::size_t>(x_at)]) +
        Constant(AttributeOr<double>(attributes, "bias", 0));
    if (is_gradient_) {
      const bool is_clipped = sum.value > limit.value;
      Set(outputs["dX"], static_cast<std::size_t>(x_at),
          is_clipped ? Given(0) : scale * Given(inputs.at("dY").values[at]));
    } else {
      Set(outputs["Y"], at, Min(sum, limit));
      Set(outputs["hits"], at, Given(1));
    }
  }

  static void Set(Expected& output, std::size_t i, const CountingNumber& number) {
    Expect(number, number.value == 0 ? 0 : 1, i, output);
  }

  bool is_gradient_;
};

}  // namespace

const Oracle& Pick() {
  static const PickOracle kOracle(/*is_gradient=*/false);
  return kOracle;
}

const Oracle& PickGrad() {
  static const PickOracle kOracle(/*is_gradient=*/true);
  return kOracle;
}

}  // namespace gradsmith::reference::sample
