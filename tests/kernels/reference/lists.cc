#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reference/plain_oracle.h"
#include "reference/sample.h"

namespace gradsmith::reference::sample {

namespace {

std::string NameOf(const std::string& list, std::size_t place) {
  return list + "[" + std::to_string(place) + "]";
}

/// How many tensors of a list there are, by those that are never absent.
template <typename Map>
std::size_t LengthOf(const Map& arguments, const std::string& list) {
  std::size_t length = 0;
  while (arguments.contains(NameOf(list, length))) {
    ++length;
  }
  return length;
}

class ConcatOracle final : public PlainOracle {
 public:
  explicit ConcatOracle(bool is_gradient) : is_gradient_(is_gradient) {}

  [[nodiscard]] std::optional<Shapes> OutputShapes(
      const Shapes& inputs,
      const Attributes& attributes) const override {
    const Shape& first = inputs.at("X[0]");
    const auto rank = static_cast<std::int64_t>(first.size());
    const auto given = std::get<std::int64_t>(attributes.at("axis"));
    if (given < -rank || given >= rank) {
      return std::nullopt;
    }
    const std::size_t axis = AxisOf(first, attributes);
    Shapes parts;
    Shape whole = first;
    whole[axis] = 0;
    for (std::size_t place = 0; place < LengthOf(inputs, "X"); ++place) {
      const Shape& part = inputs.at(NameOf("X", place));
      Shape other = part;
      if (part.size() != first.size()) {
        return std::nullopt;
      }
      other[axis] = first[axis];
      if (other != first) {
        return std::nullopt;
      }
      whole[axis] += part[axis];
      parts[NameOf("dX", place)] = part;
    }
    if (!is_gradient_) {
      return Shapes{{"Y", whole}};
    }
    return inputs.at("dY") == whole ? std::optional(parts) : std::nullopt;
  }

  [[nodiscard]] ExpectedOutputs Run(const Tensors& inputs, const Attributes& attributes)
      const override {
    const Shapes shapes = OutputShapes(ShapesOf(inputs), attributes).value();
    const Shape& first = inputs.at("X[0]").dims;
    const std::size_t axis = AxisOf(first, attributes);
    std::map<std::string, CountingSums> outputs;
    for (const auto& [name, dims] : shapes) {
      outputs.emplace(name, Sums(dims));
    }
    std::int64_t begin = 0;
    for (std::size_t place = 0; place < LengthOf(inputs, "X"); ++place) {
      const Tensor& part = inputs.at(NameOf("X", place));
      for (std::int64_t i = 0; i < Count(part.dims); ++i) {
        Shape index = IndexAt(part.dims, i);
        index[axis] += begin;
        const auto at = static_cast<std::size_t>(i);
        if (is_gradient_) {
          const Tensor& dY = inputs.at("dY");
          outputs.at(NameOf("dX", place)).Add(at, Given(dY.values[Position(dY.dims, index)]));
        } else {
          outputs.at("Y").Add(Position(shapes.at("Y"), index), Given(part.values[at]));
        }
      }
      begin += part.dims[axis];
    }
    ExpectedOutputs expected;
    for (const auto& [name, sums] : outputs) {
      expected[name] = sums.Get();
    }
    return expected;
  }

 private:
  static std::size_t AxisOf(const Shape& dims, const Attributes& attributes) {
    const auto axis = std::get<std::int64_t>(attributes.at("axis"));
    return static_cast<std::size_t>(
        axis < 0 ? axis + static_cast<std::int64_t>(dims.size()) : axis);
  }

  static std::size_t Position(const Shape& dims, const Shape& index) {
    std::int64_t position = 0;
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      position = position * dims[axis] + index[axis];
    }
    return static_cast<std::size_t>(position);
  }

  bool is_gradient_;
};

class SumOracle final : public PlainOracle {
 public:
  [[nodiscard]] std::optional<Shapes> OutputShapes(
      const Shapes& inputs,
      const Attributes& /*attributes*/) const override {
    Shape whole;
    for (std::size_t i = 0; i < LengthOf(inputs, "X"); ++i) {
      const Shape& dims = inputs.at(NameOf("X", i));
      if (dims.size() > 8) {
        return std::nullopt;
      }
      whole.insert(whole.begin(), dims.size() - std::min(dims.size(), whole.size()), 1);
      for (std::size_t back = 1; back <= dims.size(); ++back) {
        std::int64_t& known = whole[whole.size() - back];
        const std::int64_t given = dims[dims.size() - back];
        if (known != given && known != 1 && given != 1) {
          return std::nullopt;
        }
        known = known == 1 ? given : known;
      }
    }
    return Shapes{{"Y", whole}};
  }

  [[nodiscard]] ExpectedOutputs Run(const Tensors& inputs, const Attributes& attributes)
      const override {
    const Shape dims = OutputShapes(ShapesOf(inputs), attributes).value().at("Y");
    CountingSums Y = Sums(dims);
    for (std::int64_t i = 0; i < Count(dims); ++i) {
      for (const auto& [name, term] : inputs) {
        const std::size_t at = PositionOf(term.dims, IndexAt(dims, i));
        Y.Add(static_cast<std::size_t>(i), Given(term.values[at]));
      }
    }
    return {{"Y", Y.Get()}};
  }
};

class DescendOracle final : public PlainOracle {
 public:
  [[nodiscard]] std::optional<Shapes> OutputShapes(
      const Shapes& inputs,
      const Attributes& /*attributes*/) const override {
    Shapes outputs;
    for (std::size_t i = 0; i < LengthOf(inputs, "W"); ++i) {
      const Shape& dims = inputs.at(NameOf("W", i));
      const auto scale = inputs.find(NameOf("scale", i));
      const bool has_scale = scale != inputs.end();
      if (inputs.at(NameOf("dW", i)) != dims || inputs.at(NameOf("V", i)) != dims ||
          (has_scale && !scale->second.empty())) {
        return std::nullopt;
      }
      outputs[NameOf("new_W", i)] = outputs[NameOf("new_V", i)] = dims;
    }
    return inputs.at("rate").empty() ? std::optional(outputs) : std::nullopt;
  }

  [[nodiscard]] ExpectedOutputs Run(const Tensors& inputs, const Attributes& attributes)
      const override {
    const CountingNumber rate = Given(inputs.at("rate").values[0]);
    const CountingNumber momentum = Constant(std::get<double>(attributes.at("momentum")));
    ExpectedOutputs outputs;
    for (std::size_t i = 0; i < LengthOf(inputs, "W"); ++i) {
      const Tensor& W = inputs.at(NameOf("W", i));
      const auto scale = inputs.find(NameOf("scale", i));
      const CountingNumber factor = Given(scale == inputs.end() ? 1 : scale->second.values[0]);
      CountingSums new_W = Sums(W.dims);
      CountingSums new_V = Sums(W.dims);
      for (std::size_t j = 0; j < W.values.size(); ++j) {
        const CountingNumber kept = momentum * Given(inputs.at(NameOf("V", i)).values[j]);
        const CountingNumber added = factor * Given(inputs.at(NameOf("dW", i)).values[j]);
        new_V.Add(j, kept);
        new_V.Add(j, added);
        new_W.Add(j, Given(W.values[j]));
        new_W.Add(j, -rate * kept);
        new_W.Add(j, -rate * added);
      }
      outputs[NameOf("new_W", i)] = new_W.Get();
      outputs[NameOf("new_V", i)] = new_V.Get();
    }
    return outputs;
  }
};

}  // namespace

const Oracle& Concat() {
  static const ConcatOracle kOracle(/*is_gradient=*/false);
  return kOracle;
}

const Oracle& ConcatGrad() {
  static const ConcatOracle kOracle(/*is_gradient=*/true);
  return kOracle;
}

const Oracle& Sum() {
  static const SumOracle kOracle;
  return kOracle;
}

const Oracle& Descend() {
  static const DescendOracle kOracle;
  return kOracle;
}

}  // namespace gradsmith::reference::sample
