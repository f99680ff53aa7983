#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/plain_oracle.h"
#include "reference/sample.h"

namespace gradsmith::reference::sample {

namespace {

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
    CountingSums of_X = Sums(X.dims);
    CountingSums of_slope = Sums(slope.dims);
    for (std::size_t i = 0; i < X.values.size(); ++i) {
      const std::size_t at = PositionOf(slope.dims, IndexAt(X.dims, static_cast<std::int64_t>(i)));
      if (is_gradient_) {
        const CountingNumber dy = Given(inputs.at("dY").values[i]);
        of_X.Add(i, dy * Given(slope.values[at]));
        of_slope.Add(at, dy * Given(X.values[i]));
      } else {
        of_X.Add(i, Given(X.values[i]) * Given(slope.values[at]));
      }
    }
    return is_gradient_ ? ExpectedOutputs{{"dX", of_X.Get()}, {"dSlope", of_slope.Get()}}
                        : ExpectedOutputs{{"Y", of_X.Get()}};
  }

 private:
  bool is_gradient_;
};

/// From one tensor to another that has the attribute's dims behind the first, or those that an
/// input holds.
class CopyOracle final : public PlainOracle {
 public:
  CopyOracle(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)) {}

  [[nodiscard]] std::optional<Shapes> OutputShapes(
      const Shapes& inputs,
      const Attributes& attributes) const override {
    const Shape& from = inputs.at(from_);
    Shape to;
    const bool is_held = inputs.contains("shape");
    if (is_held) {
      to = inputs.at("shape");
    } else {
      to = AttributeOr<std::vector<std::int64_t>>(attributes, "size", {});
      to.insert(to.begin(), from[0]);
    }
    if (from.size() < 2 || from.size() > 4 || to.size() != from.size() || to[0] != from[0]) {
      return std::nullopt;
    }
    for (std::size_t axis = 1; axis < from.size(); ++axis) {
      if (to[axis] < 0 || (!is_held && to[axis] > from[axis])) {
        return std::nullopt;
      }
    }
    return Shapes{{to_, to}};
  }

  [[nodiscard]] ExpectedOutputs Run(const Tensors& inputs, const Attributes& attributes)
      const override {
    const Tensor& from = inputs.at(from_);
    const std::optional<Shapes> shapes = OutputShapes(ShapesOf(inputs), attributes);
    const Shape& dims = shapes.value().at(to_);
    CountingSums to = Sums(dims);
    for (std::int64_t i = 0; i < Count(dims); ++i) {
      const Shape index = IndexAt(dims, i);
      bool is_within = true;
      std::int64_t position = 0;
      for (std::size_t axis = 0; axis < index.size(); ++axis) {
        is_within = is_within && index[axis] < from.dims[axis];
        position = position * from.dims[axis] + index[axis];
      }
      if (is_within) {
        to.Add(static_cast<std::size_t>(i), Given(from.values[static_cast<std::size_t>(position)]));
      }
    }
    return {{to_, to.Get()}};
  }

 private:
  std::string from_;
  std::string to_;
};

/// Words of 32 bits, one for each number of X.
class SiftOracle final : public Oracle {
 public:
  [[nodiscard]] std::optional<Shapes> OutputShapes(
      const Shapes& inputs,
      const Attributes& /*attributes*/) const override {
    const Shape& X = inputs.at("X");
    const Shape bits{X.empty() ? 0 : (X[0] + 31) / 32};
    if (X.size() != 1 || (inputs.contains("bits") && inputs.at("bits") != bits)) {
      return std::nullopt;
    }
    return Shapes{{"Y", X}, {"left", bits}};
  }

  [[nodiscard]] ExpectedOutputs Run(const Tensors& inputs, const Attributes& /*attributes*/)
      const override {
    const Tensor& X = inputs.at("X");
    const auto bits = inputs.find("bits");
    CountingSums Y = Sums(X.dims);
    Expected left = Unknown({(X.dims[0] + 31) / 32});
    left.bound.assign(left.bound.size(), 1);  // bits are not summed
    for (std::size_t i = 0; i < X.values.size(); ++i) {
      const double weight = std::ldexp(1, static_cast<int>(i % 32));
      const bool is_set = bits == inputs.end() ||
                          std::fmod(std::floor(bits->second.values[i / 32] / weight), 2) == 1;
      Y.Add(i, Given(is_set ? X.values[i] : 0));
      left.value.values[i / 32] += is_set && X.values[i] != 0 ? weight : 0;
    }
    return {{"Y", Y.Get()}, {"left", left}};
  }

  [[nodiscard]] Tensors MakeRandomData(
      const Shapes& inputs,
      const Attributes& /*attributes*/,
      Random& random) const override {
    return Data(inputs, random);
  }

  [[nodiscard]] std::optional<ExactData> MakeExactData(
      const Shapes& inputs,
      const Attributes& /*attributes*/,
      int level,
      Random& random) const override {
    return level > 0 ? std::nullopt : std::optional(ExactData{Data(inputs, random), {}});
  }

 private:
  static Tensors Data(const Shapes& inputs, Random& random) {
    constexpr std::int64_t kMost = (std::int64_t{1} << 32) - 1;
    Tensors data{{"X", MakeTensor(inputs.at("X"), [&] { return random.Integer(-4, 4); })}};
    if (inputs.contains("bits")) {
      data["bits"] = MakeTensor(inputs.at("bits"), [&] { return random.Integer(0, kMost); });
    }
    return data;
  }
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
    const Tensor& X = inputs.at("X");
    CountingSums Y = Sums(X.dims);
    for (std::size_t i = 0; i < X.values.size(); ++i) {
      Y.Add(i, Given(inputs.at("number").values[0]));
    }
    return {{"Y", Y.Get()}};
  }
};

class TotalOracle final : public PlainOracle {
 public:
  [[nodiscard]] std::optional<Shapes> OutputShapes(
      const Shapes& /*inputs*/,
      const Attributes& /*attributes*/) const override {
    return Shapes{{"Y", {}}};
  }

  [[nodiscard]] ExpectedOutputs Run(const Tensors& inputs, const Attributes& /*attributes*/)
      const override {
    CountingSums Y = Sums({});
    for (const double x : inputs.at("X").values) {
      Y.Add(0, Given(x));
    }
    return {{"Y", Y.Get()}};
  }
};

}  // namespace

const Oracle& Total() {
  static const TotalOracle kOracle;
  return kOracle;
}

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
  static const CopyOracle kOracle("X", "Y");
  return kOracle;
}

const Oracle& CropGrad() {
  static const CopyOracle kOracle("dY", "dX");
  return kOracle;
}

const Oracle& Sift() {
  static const SiftOracle kOracle;
  return kOracle;
}

}  // namespace gradsmith::reference::sample
