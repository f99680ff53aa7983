#include "reference/channels.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reference/counting_sum.h"
#include "reference/plain_oracle.h"

namespace gradsmith::reference::channels {

namespace {

/// An element of a tensor [N, C, *D], with its place among the channels and in [N, *D].
struct Element {
  std::size_t at = 0;
  std::size_t channel = 0;
  std::size_t column = 0;
};

std::vector<Element> ElementsOf(const Shape& dims) {
  std::vector<Element> elements;
  for (std::int64_t i = 0; i < Count(dims); ++i) {
    Shape index = IndexAt(dims, i);
    const auto channel = static_cast<std::size_t>(index[1]);
    index.erase(index.begin() + 1);
    Shape others = dims;
    others.erase(others.begin() + 1);
    std::int64_t column = 0;
    for (std::size_t axis = 0; axis < others.size(); ++axis) {
      column = column * others[axis] + index[axis];
    }
    elements.push_back({static_cast<std::size_t>(i), channel, static_cast<std::size_t>(column)});
  }
  return elements;
}

class ChannelOracle : public PlainOracle {
 public:
  [[nodiscard]] std::optional<Shapes> OutputShapes(
      const Shapes& inputs,
      const Attributes& /*attributes*/) const override {
    const Shape& X = inputs.at("X");
    if (X.size() < 2 || X.size() > 5) {
      return std::nullopt;
    }
    Shape places = X;
    places.erase(places.begin() + 1);
    for (const auto& [name, dims] : inputs) {
      const bool is_element = name == "X" || name == "dY";
      const Shape& of_others = name == "weight" ? places : Shape{X[1]};
      if (dims != (is_element ? X : of_others)) {
        return std::nullopt;
      }
    }
    return Shapes{{"Y", X},
                  {"dX", X},
                  {"mean", {X[1]}},
                  {"inv_std", {X[1]}},
                  {"dScale", {X[1]}},
                  {"dBias", {X[1]}},
                  {"totals", {X[1]}},
                  {"sums", places},
                  {"of_totals", places}};
  }

 protected:
  [[nodiscard]] ExpectedOutputs Outputs(
      const Tensors& inputs,
      const std::vector<std::string>& names) const {
    const Shapes shapes = *OutputShapes(ShapesOf(inputs), {});
    ExpectedOutputs outputs;
    for (const std::string& name : names) {
      outputs[name] = Unknown(shapes.at(name));
    }
    return outputs;
  }
};

CountingNumber At(const Tensors& inputs, const std::string& name, std::size_t at) {
  return Given(inputs.contains(name) ? inputs.at(name).values[at] : 0);
}

class NormOracle final : public ChannelOracle {
 public:
  [[nodiscard]] ExpectedOutputs Run(const Tensors& inputs, const Attributes& attributes)
      const override {
    ExpectedOutputs outputs = Outputs(inputs, {"Y", "mean", "inv_std"});
    const Shape& dims = inputs.at("X").dims;
    const auto channels = static_cast<std::size_t>(dims[1]);
    const std::vector<Element> elements = ElementsOf(dims);
    std::vector<CountingSum> sums(channels);
    for (const Element& element : elements) {
      sums[element.channel].Add(At(inputs, "X", element.at));
    }
    std::vector<CountingNumber> means(channels);
    for (std::size_t c = 0; c < channels; ++c) {
      means[c] = MeanOf(sums[c]);
      Expect(means[c], sums[c].terms(), c, outputs.at("mean"));
    }
    std::vector<CountingSum> squares(channels);
    for (const Element& element : elements) {
      const CountingNumber deviation = At(inputs, "X", element.at) - means[element.channel];
      squares[element.channel].Add(deviation * deviation);
    }
    const CountingNumber epsilon = Constant(AttributeOr<double>(attributes, "epsilon", 1e-5));
    std::vector<CountingNumber> inv_stds(channels);
    for (std::size_t c = 0; c < channels; ++c) {
      inv_stds[c] = Rsqrt(MeanOf(squares[c]) + epsilon);
      Expect(inv_stds[c], 1, c, outputs.at("inv_std"));
    }
    for (const auto& [at, c, column] : elements) {
      const CountingNumber normalized = (At(inputs, "X", at) - means[c]) * inv_stds[c];
      Expect(
          normalized * At(inputs, "scale", c) + At(inputs, "B", c), sums[c].terms(), at,
          outputs.at("Y"));
    }
    return outputs;
  }

  [[nodiscard]] std::set<std::string> InexactOutputs() const override {
    return {"Y", "mean", "inv_std"};
  }

 private:
  static CountingNumber MeanOf(const CountingSum& sum) {
    return sum.terms() > 0 ? sum.Get() / Given(sum.terms()) : sum.Get();
  }
};

class NormGradOracle final : public ChannelOracle {
 public:
  [[nodiscard]] ExpectedOutputs Run(const Tensors& inputs, const Attributes& /*attributes*/)
      const override {
    ExpectedOutputs outputs = Outputs(inputs, {"dX", "dScale", "dBias"});
    const Shape& dims = inputs.at("X").dims;
    const auto channels = static_cast<std::size_t>(dims[1]);
    const std::vector<Element> elements = ElementsOf(dims);
    const auto normalized = [&](const Element& element) {
      return (At(inputs, "X", element.at) - At(inputs, "mean", element.channel)) *
             At(inputs, "inv_std", element.channel);
    };
    std::vector<CountingSum> of_scale(channels);
    std::vector<CountingSum> of_bias(channels);
    for (const Element& element : elements) {
      of_scale[element.channel].Add(At(inputs, "dY", element.at) * normalized(element));
      of_bias[element.channel].Add(At(inputs, "dY", element.at));
    }
    for (std::size_t c = 0; c < channels; ++c) {
      Expect(of_scale[c], c, outputs.at("dScale"));
      Expect(of_bias[c], c, outputs.at("dBias"));
    }
    for (const Element& element : elements) {
      const std::size_t c = element.channel;
      const CountingNumber count = Given(of_bias[c].terms());
      const CountingNumber through_statistics =
          (of_bias[c].Get() + normalized(element) * of_scale[c].Get()) / count;
      Expect(
          At(inputs, "scale", c) * At(inputs, "inv_std", c) *
              (At(inputs, "dY", element.at) - through_statistics),
          of_bias[c].terms(), element.at, outputs.at("dX"));
    }
    return outputs;
  }

  [[nodiscard]] Tensors MakeRandomData(
      const Shapes& inputs,
      const Attributes& attributes,
      Random& random) const override {
    Tensors data = PlainOracle::MakeRandomData(inputs, attributes, random);
    // What the operator gives of this X: a gradient is of its own statistics.
    const ExpectedOutputs forward =
        NormOracle().Run({{"X", data.at("X")}, {"scale", data.at("scale")}}, attributes);
    data["mean"] = forward.at("mean").value;
    data["inv_std"] = forward.at("inv_std").value;
    return data;
  }

  [[nodiscard]] std::set<std::string> InexactOutputs() const override { return {"dX"}; }
};

class TotalsOracle final : public ChannelOracle {
 public:
  [[nodiscard]] ExpectedOutputs Run(const Tensors& inputs, const Attributes& /*attributes*/)
      const override {
    ExpectedOutputs outputs = Outputs(inputs, {"Y", "sums", "of_totals", "totals"});
    std::vector<CountingSum> sums(outputs.at("sums").terms.size());
    std::vector<CountingSum> totals(outputs.at("totals").terms.size());
    const std::vector<Element> elements = ElementsOf(inputs.at("X").dims);
    for (const auto& [at, c, column] : elements) {
      const CountingNumber x = At(inputs, "X", at);
      const CountingNumber weight = At(inputs, "weight", column);
      const CountingNumber factor = At(inputs, "factor", c);
      Expect(x * weight + factor, 1, at, outputs.at("Y"));
      sums[column].Add(x * factor);
      totals[c].Add(x * weight);
    }
    std::vector<CountingSum> of_totals(sums.size());
    for (const auto& [at, c, column] : elements) {
      of_totals[column].Add(At(inputs, "X", at) + totals[c].Get());
    }
    for (std::size_t i = 0; i < sums.size(); ++i) {
      Expect(sums[i], i, outputs.at("sums"));
      Expect(of_totals[i], i, outputs.at("of_totals"));
    }
    for (std::size_t i = 0; i < totals.size(); ++i) {
      Expect(totals[i], i, outputs.at("totals"));
    }
    return outputs;
  }

  /// Numbers of either sign: their sums are short.
  [[nodiscard]] std::optional<ExactData> MakeExactData(
      const Shapes& inputs,
      const Attributes& /*attributes*/,
      int level,
      Random& random) const override {
    constexpr int kLargest = 4;
    if (level >= kLargest) {
      return std::nullopt;
    }
    const std::int64_t largest = kLargest - level;
    ExactData data;
    for (const auto& [name, dims] : inputs) {
      data.inputs[name] = MakeTensor(dims, [&] { return random.Integer(-largest, largest); });
    }
    return data;
  }
};

}  // namespace

const Oracle& ChannelNorm() {
  static const NormOracle oracle;
  return oracle;
}

const Oracle& ChannelNormGrad() {
  static const NormGradOracle oracle;
  return oracle;
}

const Oracle& ChannelTotals() {
  static const TotalsOracle oracle;
  return oracle;
}

}  // namespace gradsmith::reference::channels
