#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/sample.h"

namespace gradsmith::reference::sample {

namespace {

/// The index of the element at a position of a dense tensor.
Shape IndexAt(const Shape& dims, std::int64_t position) {
  Shape index(dims.size());
  for (std::size_t axis = dims.size(); axis-- > 0;) {
    index[axis] = position % dims[axis];
    position /= dims[axis];
  }
  return index;
}

/// The position of an element of a dense tensor, its last dims those that the index ends with.
std::size_t PositionOf(const Shape& dims, const Shape& index) {
  std::int64_t position = 0;
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    const std::int64_t at = index[index.size() - dims.size() + axis];
    position = position * dims[axis] + (dims[axis] == 1 ? 0 : at);
  }
  return static_cast<std::size_t>(position);
}

void AddTerm(Expected& sum, std::size_t at, double term) {
  sum.value.values[at] += term;
  sum.terms[at] += 1;
  sum.bound[at] += std::abs(term);
  sum.error[at] = (sum.terms[at] + 2) * sum.bound[at];
}

Expected Zeros(const Shape& dims) {
  const std::vector<double> zeros(static_cast<std::size_t>(Count(dims)));
  return {{dims, zeros}, zeros, zeros, zeros};
}

/// Data of numbers that need few digits, or of any.
class PlainOracle : public Oracle {
 public:
  [[nodiscard]] Tensors MakeRandomData(
      const Shapes& inputs,
      const Attributes& /*attributes*/,
      Random& random) const override {
    Tensors data;
    for (const auto& [name, dims] : inputs) {
      data[name] = MakeTensor(dims, [&] { return random.Real(-1, 1); });
    }
    return data;
  }

  [[nodiscard]] std::optional<ExactData> MakeExactData(
      const Shapes& inputs,
      const Attributes& /*attributes*/,
      int level,
      Random& random) const override {
    if (level > 1) {
      return std::nullopt;
    }
    ExactData data;
    for (const auto& [name, dims] : inputs) {
      data.inputs[name] = MakeTensor(dims, [&] { return random.Integer(1, level == 0 ? 5 : 2); });
    }
    return data;
  }
};

class BlendOracle final : public PlainOracle {
 public:
  explicit BlendOracle(bool is_gradient) : is_gradient_(is_gradient) {}

  [[nodiscard]] std::optional<Shapes> OutputShapes(
      const Shapes& inputs,
      const Attributes& /*attributes*/) const override {
    const Shape& X = inputs.at("X");
    const Shape& slope = inputs.at("slope");
    if (slope.size() > X.size() || (is_gradient_ && inputs.at("dY") != X)) {
      return std::nullopt;
    }
    for (std::size_t axis = 0; axis < slope.size(); ++axis) {
      const std::int64_t whole = X[X.size() - slope.size() + axis];
      if (slope[axis] != 1 && slope[axis] != whole) {
        return std::nullopt;
      }
    }
    return is_gradient_ ? Shapes{{"dX", X}, {"dSlope", slope}} : Shapes{{"Y", X}};
  }

  [[nodiscard]] ExpectedOutputs Run(const Tensors& inputs, const Attributes& /*attributes*/)
      const override {
    const Tensor& X = inputs.at("X");
    const Tensor& slope = inputs.at("slope");
    ExpectedOutputs outputs;
    outputs[is_gradient_ ? "dX" : "Y"] = Zeros(X.dims);
    if (is_gradient_) {
      outputs["dSlope"] = Zeros(slope.dims);
    }
    for (std::size_t i = 0; i < X.values.size(); ++i) {
      const std::size_t at = PositionOf(slope.dims, IndexAt(X.dims, static_cast<std::int64_t>(i)));
      if (is_gradient_) {
        const double dy = inputs.at("dY").values[i];
        AddTerm(outputs["dX"], i, dy * slope.values[at]);
        AddTerm(outputs["dSlope"], at, dy * X.values[i]);
      } else {
        AddTerm(outputs["Y"], i, X.values[i] * slope.values[at]);
      }
    }
    return outputs;
  }

 private:
  bool is_gradient_;
};

/// From one tensor to another that has the attribute's dims behind the first.
class CopyOracle final : public PlainOracle {
 public:
  CopyOracle(std::string from, std::string to, std::string attribute, bool may_grow)
      : from_(std::move(from)),
        to_(std::move(to)),
        attribute_(std::move(attribute)),
        may_grow_(may_grow) {}

  [[nodiscard]] std::optional<Shapes> OutputShapes(
      const Shapes& inputs,
      const Attributes& attributes) const override {
    const Shape& from = inputs.at(from_);
    const auto given = AttributeOr<std::vector<std::int64_t>>(attributes, attribute_, {});
    if (from.size() < 2 || from.size() > 4 || given.size() + 1 != from.size()) {
      return std::nullopt;
    }
    Shape to{from[0]};
    for (std::size_t axis = 1; axis < from.size(); ++axis) {
      to.push_back(given[axis - 1]);
      if (to[axis] < 0 || (!may_grow_ && to[axis] > from[axis])) {
        return std::nullopt;
      }
    }
    return Shapes{{to_, to}};
  }

  [[nodiscard]] ExpectedOutputs Run(const Tensors& inputs, const Attributes& attributes)
      const override {
    const Tensor& from = inputs.at(from_);
    const std::optional<Shapes> shapes = OutputShapes(ShapesOf(inputs), attributes);
    ExpectedOutputs outputs;
    Expected& to = outputs[to_] = Zeros(shapes.value().at(to_));
    for (std::size_t i = 0; i < to.value.values.size(); ++i) {
      const Shape index = IndexAt(to.value.dims, static_cast<std::int64_t>(i));
      bool is_within = true;
      std::int64_t position = 0;
      for (std::size_t axis = 0; axis < index.size(); ++axis) {
        is_within = is_within && index[axis] < from.dims[axis];
        position = position * from.dims[axis] + index[axis];
      }
      if (is_within) {
        AddTerm(to, i, from.values[static_cast<std::size_t>(position)]);
      }
    }
    return outputs;
  }

 private:
  std::string from_;
  std::string to_;
  std::string attribute_;
  bool may_grow_;
};

class SpreadOracle final : public PlainOracle {
 public:
  [[nodiscard]] std::optional<Shapes> OutputShapes(
      const Shapes& inputs,
      const Attributes& /*attributes*/) const override {
    return inputs.at("number").empty() ? std::optional(Shapes{{"Y", inputs.at("X")}})
                                       : std::nullopt;
  }

  [[nodiscard]] ExpectedOutputs Run(const Tensors& inputs, const Attributes& /*attributes*/)
      const override {
    ExpectedOutputs outputs;
    Expected& Y = outputs["Y"] = Zeros(inputs.at("X").dims);
    for (std::size_t i = 0; i < Y.value.values.size(); ++i) {
      AddTerm(Y, i, inputs.at("number").values[0]);
    }
    return outputs;
  }
};

}  // namespace

const Oracle& Spread() {
  static const SpreadOracle kOracle;
  return kOracle;
}

const Oracle& Blend() {
  static const BlendOracle kOracle(/*is_gradient=*/false);
  return kOracle;
}

const Oracle& BlendGrad() {
  static const BlendOracle kOracle(/*is_gradient=*/true);
  return kOracle;
}

const Oracle& Crop() {
  static const CopyOracle kOracle("X", "Y", "size", /*may_grow=*/false);
  return kOracle;
}

const Oracle& CropGrad() {
  static const CopyOracle kOracle("dY", "dX", "x_shape", /*may_grow=*/true);
  return kOracle;
}

}  // namespace gradsmith::reference::sample
