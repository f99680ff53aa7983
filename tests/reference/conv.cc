#include "reference/conv.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "reference/counting_sum.h"

namespace gradsmith::reference::conv {

namespace {

using List = std::vector<std::int64_t>;

/// One spatial axis of a convolution that slides over an image of `image` positions and makes
/// `result` ones. A transposed convolution reads `result` positions and writes `image` ones.
struct Axis {
  std::int64_t image = 1;
  std::int64_t result = 1;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t pad_begin = 0;

  [[nodiscard]] std::int64_t Reach() const { return dilation * (kernel - 1) + 1; }
};

/// A convolution padded to three axes, the additional ones of one position. The filter is
/// (result_channels, image_channels / group, K...).
struct Convolution {
  std::int64_t batch = 0;
  std::int64_t image_channels = 0;
  std::int64_t result_channels = 0;
  std::int64_t group = 1;
  std::array<Axis, 3> axes;
  int rank = 0;

  [[nodiscard]] Shape Dims(std::int64_t channels, std::int64_t Axis::*length) const {
    Shape dims{batch, channels};
    for (int i = 3 - rank; i < 3; ++i) {
      dims.push_back(axes[i].*length);
    }
    return dims;
  }
};

std::int64_t At(const List& list, std::size_t i, std::int64_t absent) {
  return list.empty() ? absent : list.at(i);
}

/// The attributes of one spatial axis.
struct AxisAttributes {
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t pad_begin = 0;
  std::int64_t pad_end = 0;
  std::int64_t output_padding = 0;
  std::optional<std::int64_t> output_shape;
  std::string auto_pad;
};

AxisAttributes AttributesOfAxis(const Attributes& attributes, std::size_t i, std::size_t rank) {
  const auto list = [&](const char* name) { return AttributeOr<List>(attributes, name, {}); };
  AxisAttributes axis;
  axis.stride = At(list("strides"), i, 1);
  axis.dilation = At(list("dilations"), i, 1);
  axis.pad_begin = At(list("pads"), i, 0);
  axis.pad_end = At(list("pads"), i + rank, 0);
  axis.output_padding = At(list("output_padding"), i, 0);
  if (const List output_shape = list("output_shape"); !output_shape.empty()) {
    axis.output_shape = output_shape.at(i);
  }
  axis.auto_pad = AttributeOr<std::string>(attributes, "auto_pad", "NOTSET");
  return axis;
}

/// Sets what follows from the image's length; false where there is no such convolution.
bool ResolveForward(const AxisAttributes& given, Axis& axis) {
  const std::int64_t reach = axis.Reach();
  if (given.auto_pad.starts_with("SAME")) {
    axis.result = (axis.image + axis.stride - 1) / axis.stride;
    const std::int64_t needed = (axis.result - 1) * axis.stride + reach - axis.image;
    const std::int64_t total = std::max<std::int64_t>(0, needed);
    axis.pad_begin = given.auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    return true;
  }
  const std::int64_t padded = axis.image + given.pad_begin + given.pad_end;
  axis.pad_begin = given.pad_begin;
  axis.result = padded < reach ? 0 : (padded - reach) / axis.stride + 1;
  return padded >= reach || axis.image == 0;
}

/// Sets what follows from the length of what the transposed convolution reads.
bool ResolveTransposed(const AxisAttributes& given, Axis& axis) {
  if (given.output_padding >= std::max(axis.stride, axis.dilation)) {
    return false;
  }
  const std::int64_t full = axis.stride * (axis.result - 1) + given.output_padding + axis.Reach();
  if (!given.output_shape && !given.auto_pad.starts_with("SAME")) {
    axis.pad_begin = given.pad_begin;
    axis.image = axis.result == 0 ? 0 : full - given.pad_begin - given.pad_end;
    return axis.image >= 0;
  }
  if (given.auto_pad == "VALID") {
    return false;
  }
  axis.image = given.output_shape.value_or(axis.result * axis.stride);
  const std::int64_t total = std::max<std::int64_t>(0, full - axis.image);
  axis.pad_begin = given.auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
  return true;
}

bool PadsAreOverridden(const Attributes& attributes) {
  return AttributeOr<std::string>(attributes, "auto_pad", "NOTSET") != "NOTSET" ||
         !AttributeOr<List>(attributes, "output_shape", {}).empty();
}

bool AttributesFit(const Attributes& attributes, const Shape& X, const Shape& W) {
  const List pads = AttributeOr<List>(attributes, "pads", {});
  const bool padded = std::any_of(pads.begin(), pads.end(), [](auto pad) { return pad != 0; });
  const List kernel_shape = AttributeOr<List>(attributes, "kernel_shape", {});
  return X.size() >= 3 && X.size() <= 5 && W.size() == X.size() &&
         std::all_of(W.begin() + 2, W.end(), [](auto dim) { return dim >= 1; }) &&
         (kernel_shape.empty() || kernel_shape == List(W.begin() + 2, W.end())) &&
         !(padded && PadsAreOverridden(attributes));
}

std::optional<Convolution>
MakeConvolution(const Attributes& attributes, const Shape& X, const Shape& W, bool transposed) {
  if (!AttributesFit(attributes, X, W)) {
    return std::nullopt;
  }
  Convolution conv;
  conv.rank = static_cast<int>(X.size()) - 2;
  conv.batch = X[0];
  conv.group = AttributeOr<std::int64_t>(attributes, "group", 1);
  conv.result_channels = W[0];
  conv.image_channels = W[1] * conv.group;
  if ((transposed ? conv.result_channels : conv.image_channels) != X[1] ||
      conv.result_channels % conv.group != 0) {
    return std::nullopt;
  }
  for (int i = 0; i < conv.rank; ++i) {
    const AxisAttributes given = AttributesOfAxis(attributes, i, conv.rank);
    Axis& axis = conv.axes[3 - conv.rank + i];
    axis.stride = given.stride;
    axis.dilation = given.dilation;
    axis.kernel = W[2 + i];
    (transposed ? axis.result : axis.image) = X[2 + i];
    if (!(transposed ? ResolveTransposed(given, axis) : ResolveForward(given, axis))) {
      return std::nullopt;
    }
  }
  return conv;
}

/// Calls visit(result, image, filter) for each position along one axis where the filter meets the
/// image.
template <typename Visit>
void ForEachTapOfAxis(const Axis& axis, Visit visit) {
  for (std::int64_t result = 0; result < axis.result; ++result) {
    for (std::int64_t tap = 0; tap < axis.kernel; ++tap) {
      const std::int64_t image = result * axis.stride + tap * axis.dilation - axis.pad_begin;
      if (image >= 0 && image < axis.image) {
        visit(result, image, tap);
      }
    }
  }
}

/// Calls visit(result, image, filter) with the spatial offsets of each meeting.
template <typename Visit>
void ForEachSpatialTap(const std::array<Axis, 3>& axes, Visit visit) {
  ForEachTapOfAxis(axes[0], [&](auto r0, auto i0, auto k0) {
    ForEachTapOfAxis(axes[1], [&](auto r1, auto i1, auto k1) {
      ForEachTapOfAxis(axes[2], [&](auto r2, auto i2, auto k2) {
        visit(
            (r0 * axes[1].result + r1) * axes[2].result + r2,
            (i0 * axes[1].image + i1) * axes[2].image + i2,
            (k0 * axes[1].kernel + k1) * axes[2].kernel + k2);
      });
    });
  });
}

std::int64_t Positions(const Convolution& conv, std::int64_t Axis::*length) {
  std::int64_t count = 1;
  for (const Axis& axis : conv.axes) {
    count *= axis.*length;
  }
  return count;
}

/// Calls visit(result, image, filter) with the offsets of the three elements that meet, for every
/// product of a convolution: result[n, m, o] += image[n, c, o * stride + k * dilation - pad] *
/// filter[m, c, k].
template <typename Visit>
void ForEachProduct(const Convolution& conv, Visit visit) {
  const std::int64_t image_size = Positions(conv, &Axis::image);
  const std::int64_t result_size = Positions(conv, &Axis::result);
  const std::int64_t filter_size = Positions(conv, &Axis::kernel);
  const std::int64_t image_group = conv.image_channels / conv.group;
  const std::int64_t result_group = conv.result_channels / conv.group;
  for (std::int64_t n = 0; n < conv.batch; ++n) {
    for (std::int64_t m = 0; m < conv.result_channels; ++m) {
      for (std::int64_t c = 0; c < image_group; ++c) {
        const std::int64_t channel = m / result_group * image_group + c;
        const std::int64_t result_start = (n * conv.result_channels + m) * result_size;
        const std::int64_t image_start = (n * conv.image_channels + channel) * image_size;
        const std::int64_t filter_start = (m * image_group + c) * filter_size;
        ForEachSpatialTap(conv.axes, [&](auto result, auto image, auto filter) {
          visit(result_start + result, image_start + image, filter_start + filter);
        });
      }
    }
  }
}

/// The sums of products of a tensor's elements. As many roundings as a sum has terms are those of
/// its additions and of its result.
CountingSums Sums(const Shape& dims) {
  return {dims, /*roundings=*/0};
}

CountingNumber Product(double a, double b) {
  return Given(a) * Given(b);
}

/// Calls visit(element, channel) for each element of a (N, C, D...) tensor.
template <typename Visit>
void ForEachElement(const Shape& dims, Visit visit) {
  const std::int64_t channels = dims[1];
  const std::int64_t positions = Count(Shape(dims.begin() + 2, dims.end()));
  for (std::int64_t element = 0; element < Count(dims); ++element) {
    visit(element, element / positions % channels);
  }
}

/// One of the four ops. In a transposed one X is the convolution's result and Y its image.
class ConvolutionOracle final : public Oracle {
 public:
  ConvolutionOracle(bool transposed, bool gradient)
      : transposed_(transposed), gradient_(gradient) {}

  [[nodiscard]] std::optional<Shapes> OutputShapes(
      const Shapes& inputs,
      const Attributes& attributes) const override {
    const auto conv = MakeConvolution(attributes, inputs.at("X"), inputs.at("W"), transposed_);
    if (!conv) {
      return std::nullopt;
    }
    const Shape Y = OutputDims(*conv);
    const Shape bias{Y[1]};
    if (gradient_) {
      return inputs.at("dY") == Y
                 ? std::optional(
                       Shapes{{"dX", inputs.at("X")}, {"dW", inputs.at("W")}, {"dB", bias}})
                 : std::nullopt;
    }
    const auto given = inputs.find("B");
    return given == inputs.end() || given->second == bias ? std::optional(Shapes{{"Y", Y}})
                                                          : std::nullopt;
  }

  [[nodiscard]] ExpectedOutputs Run(const Tensors& inputs, const Attributes& attributes)
      const override {
    const Tensor& X = inputs.at("X");
    const Tensor& W = inputs.at("W");
    const auto conv = MakeConvolution(attributes, X.dims, W.dims, transposed_);
    if (!conv) {
      throw std::invalid_argument("the oracle was given inputs that do not fit together");
    }
    if (gradient_) {
      return RunGradient(*conv, inputs.at("dY"), X, W);
    }
    const auto B = inputs.find("B");
    return RunForward(*conv, X, W, B == inputs.end() ? nullptr : &B->second);
  }

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

  /// Small integers, then fewer of them that are not zero, so that sums need fewer bits.
  [[nodiscard]] std::optional<ExactData> MakeExactData(
      const Shapes& inputs,
      const Attributes& /*attributes*/,
      int level,
      Random& random) const override {
    struct Integers {
      std::int64_t largest;
      double density;
    };
    static const std::vector<Integers> kLevels = {
        {63, 1}, {15, 1},     {7, 1},      {3, 1},      {2, 1},
        {1, 1},  {1, 1. / 2}, {1, 1. / 4}, {1, 1. / 8}, {1, 1. / 16}};
    if (level >= static_cast<int>(kLevels.size())) {
      return std::nullopt;
    }
    const auto [largest, density] = kLevels[level];
    ExactData data;
    for (const auto& [name, dims] : inputs) {
      data.inputs[name] = MakeTensor(dims, [&, largest = largest, density = density] {
        const std::int64_t sign = random.Chance(0.5) ? 1 : -1;
        return random.Chance(density) ? sign * random.Integer(1, largest) : 0;
      });
    }
    return data;
  }

 private:
  [[nodiscard]] Shape OutputDims(const Convolution& conv) const {
    return transposed_ ? conv.Dims(conv.image_channels, &Axis::image)
                       : conv.Dims(conv.result_channels, &Axis::result);
  }

  [[nodiscard]] ExpectedOutputs
  RunForward(const Convolution& conv, const Tensor& X, const Tensor& W, const Tensor* B) const {
    CountingSums Y = Sums(OutputDims(conv));
    ForEachProduct(conv, [&](auto result, auto image, auto filter) {
      const auto from = transposed_ ? result : image;
      const auto to = transposed_ ? image : result;
      Y.Add(to, Product(X.values[from], W.values[filter]));
    });
    if (B == nullptr) {
      return {{"Y", Y.Get()}};
    }
    ForEachElement(OutputDims(conv), [&](auto element, auto channel) {
      Y.Add(element, Given(B->values[channel]));
    });
    Expected expected = Y.Get();
    expected.interim.resize(expected.value.values.size());
    ForEachElement(OutputDims(conv), [&](auto element, auto channel) {
      expected.interim[element] =
          std::abs(expected.value.values[element]) + std::abs(B->values[channel]);
    });
    return {{"Y", expected}};
  }

  [[nodiscard]] ExpectedOutputs
  RunGradient(const Convolution& conv, const Tensor& dY, const Tensor& X, const Tensor& W) const {
    CountingSums dX = Sums(X.dims);
    CountingSums dW = Sums(W.dims);
    CountingSums dB = Sums({dY.dims[1]});
    ForEachProduct(conv, [&](auto result, auto image, auto filter) {
      const auto x = transposed_ ? result : image;
      const auto y = transposed_ ? image : result;
      dX.Add(x, Product(dY.values[y], W.values[filter]));
      dW.Add(filter, Product(dY.values[y], X.values[x]));
    });
    ForEachElement(
        dY.dims, [&](auto element, auto channel) { dB.Add(channel, Given(dY.values[element])); });
    return {{"dX", dX.Get()}, {"dW", dW.Get()}, {"dB", dB.Get()}};
  }

  bool transposed_;
  bool gradient_;
};

}  // namespace

const Oracle& Conv() {
  static const ConvolutionOracle kOracle(/*transposed=*/false, /*gradient=*/false);
  return kOracle;
}

const Oracle& ConvGrad() {
  static const ConvolutionOracle kOracle(/*transposed=*/false, /*gradient=*/true);
  return kOracle;
}

const Oracle& ConvTranspose() {
  static const ConvolutionOracle kOracle(/*transposed=*/true, /*gradient=*/false);
  return kOracle;
}

const Oracle& ConvTransposeGrad() {
  static const ConvolutionOracle kOracle(/*transposed=*/true, /*gradient=*/true);
  return kOracle;
}

}  // namespace gradsmith::reference::conv
