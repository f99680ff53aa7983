#include "reference/energies.h"

#include "reference/counting_sum.h"
#include "reference/plain_oracle.h"

namespace gradsmith::reference::energies {

namespace {

using List = std::vector<std::int64_t>;

/// A list with an entry for each spatial axis, by default ones.
List ListOf(const Attributes& attributes, const std::string& name, std::size_t axes) {
  const auto list = AttributeOr<List>(attributes, name, {});
  return list.empty() ? List(axes, 1) : list;
}

/// Nothing where the attributes do not fit X.
std::optional<Shape> OutputDims(const Shape& X, const Attributes& attributes) {
  const auto kernel = AttributeOr<List>(attributes, "kernel_shape", {});
  const List strides = ListOf(attributes, "strides", kernel.size());
  if (X.size() != 2 + kernel.size() || strides.size() != kernel.size()) {
    return std::nullopt;
  }
  Shape Y = X;
  for (std::size_t axis = 0; axis < kernel.size(); ++axis) {
    const std::int64_t room = X[2 + axis] - kernel[axis];
    if (kernel[axis] < 1 || strides[axis] < 1 || (room < 0 && X[2 + axis] > 0)) {
      return std::nullopt;
    }
    Y[2 + axis] = room < 0 ? 0 : room / strides[axis] + 1;
  }
  return Y;
}

/// Calls visit(x, y) with the place of each window, and of each element that it holds.
template <typename Visit>
void ForEachElement(const Shape& X, const Attributes& attributes, const Visit& visit) {
  const auto kernel = AttributeOr<List>(attributes, "kernel_shape", {});
  const List strides = ListOf(attributes, "strides", kernel.size());
  const Shape Y = *OutputDims(X, attributes);
  for (std::int64_t y = 0; y < Count(Y); ++y) {
    for (std::int64_t tap = 0; tap < Count(kernel); ++tap) {
      Shape at = IndexAt(Y, y);
      for (std::size_t axis = 0; axis < kernel.size(); ++axis) {
        at[2 + axis] = at[2 + axis] * strides[axis] + IndexAt(kernel, tap)[axis];
      }
      visit(PositionOf(X, at), static_cast<std::size_t>(y));
    }
  }
}

class EnergyPoolOracle final : public PlainOracle {
 public:
  std::optional<Shapes> OutputShapes(const Shapes& inputs, const Attributes& attributes)
      const override {
    const std::optional<Shape> Y = OutputDims(inputs.at("X"), attributes);
    return Y ? std::optional(Shapes{{"Y", *Y}}) : std::nullopt;
  }

  ExpectedOutputs Run(const Tensors& inputs, const Attributes& attributes) const override {
    const Tensor& X = inputs.at("X");
    CountingSums Y = Sums(*OutputDims(X.dims, attributes));
    ForEachElement(X.dims, attributes, [&](std::size_t x, std::size_t y) {
      Y.Add(y, Given(X.values[x]) * Given(X.values[x]));
    });
    return {{"Y", Y.Get()}};
  }
};

class EnergyPoolGradOracle final : public PlainOracle {
 public:
  std::optional<Shapes> OutputShapes(const Shapes& inputs, const Attributes& attributes)
      const override {
    const bool fits = OutputDims(inputs.at("X"), attributes) == inputs.at("dY");
    return fits ? std::optional(Shapes{{"dX", inputs.at("X")}}) : std::nullopt;
  }

  ExpectedOutputs Run(const Tensors& inputs, const Attributes& attributes) const override {
    const Tensor& X = inputs.at("X");
    CountingSums dX = Sums(X.dims);
    ForEachElement(X.dims, attributes, [&](std::size_t x, std::size_t y) {
      dX.Add(x, Given(2 * X.values[x]) * Given(inputs.at("dY").values[y]));
    });
    return {{"dX", dX.Get()}};
  }
};

}  // namespace

const Oracle& EnergyPool() {
  static const EnergyPoolOracle oracle;
  return oracle;
}

const Oracle& EnergyPoolGrad() {
  static const EnergyPoolGradOracle oracle;
  return oracle;
}

}  // namespace gradsmith::reference::energies
