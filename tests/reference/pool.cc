#include "reference/pool.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "reference/counting_sum.h"

namespace gradsmith::reference::pool {

namespace {

using List = std::vector<std::int64_t>;

List ListOr(const Attributes& attributes, const std::string& name, const List& absent) {
  const auto list = AttributeOr<List>(attributes, name, {});
  return list.empty() ? absent : list;
}

/// The positions of each window along an axis, in the input and out of it. One that is empty holds
/// what counts for nothing.
struct AxisWindows {
  std::vector<List> positions;
  std::int64_t padded_begin = 0;
  std::int64_t padded_end = 0;
};

/// The attributes along one axis.
struct AxisRule {
  std::int64_t input;
  std::int64_t size;
  std::int64_t stride;
  std::int64_t dilation;
  std::int64_t pad_begin;
  std::int64_t pad_end;
  std::string auto_pad;
  bool ceil_mode;
};

/// Lays windows one after the other for as long as there may be another.
AxisWindows Lay(AxisRule rule) {
  const std::int64_t span = ((rule.size - 1) * rule.dilation) + 1;
  const bool is_same = rule.auto_pad == "SAME_UPPER" || rule.auto_pad == "SAME_LOWER";
  const std::int64_t most = (rule.input + rule.stride - 1) / rule.stride;
  if (is_same) {
    const std::int64_t pads =
        std::max<std::int64_t>(((most - 1) * rule.stride) + span - rule.input, 0);
    rule.pad_begin = rule.auto_pad == "SAME_UPPER" ? pads / 2 : pads - (pads / 2);
    rule.pad_end = pads - rule.pad_begin;
  }
  const bool rounds_up = rule.ceil_mode && rule.auto_pad == "NOTSET";
  const std::int64_t end = rule.input + rule.pad_end;
  AxisWindows windows{{}, -rule.pad_begin, end};
  for (std::int64_t begin = -rule.pad_begin;; begin += rule.stride) {
    const bool fits = begin + span <= end;
    const bool is_next = begin - rule.stride + span < end && begin < rule.input;
    const bool is_within = rounds_up ? is_next : fits;
    if (!(is_same ? std::ssize(windows.positions) < most : is_within)) {
      return windows;
    }
    List positions;
    for (std::int64_t tap = 0; tap < rule.size; ++tap) {
      positions.push_back(begin + (tap * rule.dilation));
    }
    windows.positions.push_back(positions);
  }
}

/// A window of a channel: which of its elements it holds, in order, and how many a mean counts.
struct Window {
  std::vector<std::size_t> elements;
  double count = 1;
};

/// All windows of a channel, in the order of the output.
struct Windows {
  Shape input;
  Shape output;
  std::vector<Window> all;
};

std::int64_t Positions(const Shape& dims) {
  return Count(dims);
}

/// The index-th of all combinations, the last axis fastest.
Shape IndexAt(const Shape& dims, std::int64_t index) {
  Shape at(dims.size());
  for (std::size_t axis = dims.size(); axis-- > 0;) {
    at[axis] = index % dims[axis];
    index /= dims[axis];
  }
  return at;
}

/// Nothing where the attributes do not fit a channel of these dims.
std::optional<std::vector<AxisWindows>> LayAll(const Shape& input, const Attributes& attributes) {
  const auto rank = input.size();
  const List ones(rank, 1);
  const List kernel = ListOr(attributes, "kernel_shape", {});
  const List strides = ListOr(attributes, "strides", ones);
  const List dilations = ListOr(attributes, "dilations", ones);
  const List pads = ListOr(attributes, "pads", List(2 * rank, 0));
  const auto auto_pad = AttributeOr<std::string>(attributes, "auto_pad", "NOTSET");
  const bool fits = rank >= 1 && rank <= 3 && kernel.size() == rank && strides.size() == rank &&
                    dilations.size() == rank && pads.size() == 2 * rank &&
                    (auto_pad == "NOTSET" || pads == List(2 * rank, 0));
  if (!fits) {
    return std::nullopt;
  }
  std::vector<AxisWindows> axes;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    axes.push_back(Lay(
        {input[axis], kernel[axis], strides[axis], dilations[axis], pads[axis], pads[rank + axis],
         auto_pad, AttributeOr<bool>(attributes, "ceil_mode", false)}));
    if (axes.back().positions.empty() && input[axis] > 0) {
      return std::nullopt;
    }
  }
  return axes;
}

std::optional<Windows> WindowsOver(const Shape& input, const Attributes& attributes) {
  const auto axes = LayAll(input, attributes);
  if (!axes) {
    return std::nullopt;
  }
  const bool counts_pads = AttributeOr<bool>(attributes, "count_include_pad", false);
  Windows windows{input, {}, {}};
  for (const AxisWindows& axis : *axes) {
    windows.output.push_back(std::ssize(axis.positions));
  }
  for (std::int64_t o = 0; o < Positions(windows.output); ++o) {
    const Shape at = IndexAt(windows.output, o);
    Shape taps;
    for (std::size_t axis = 0; axis < at.size(); ++axis) {
      taps.push_back(std::ssize((*axes)[axis].positions[static_cast<std::size_t>(at[axis])]));
    }
    Window window{{}, 0};
    for (std::int64_t tap = 0; tap < Positions(taps); ++tap) {
      const Shape of_tap = IndexAt(taps, tap);
      bool is_inside = true;
      bool is_padded = true;
      std::int64_t element = 0;
      for (std::size_t axis = 0; axis < at.size(); ++axis) {
        const AxisWindows& laid = (*axes)[axis];
        const std::int64_t position = laid.positions[static_cast<std::size_t>(at[axis])]
                                                    [static_cast<std::size_t>(of_tap[axis])];
        is_inside = is_inside && position >= 0 && position < input[axis];
        is_padded = is_padded && position >= laid.padded_begin && position < laid.padded_end;
        element = (element * input[axis]) + position;
      }
      if (is_inside) {
        window.elements.push_back(static_cast<std::size_t>(element));
      }
      const bool counts = counts_pads ? is_padded : is_inside;
      window.count += counts ? 1 : 0;
    }
    windows.all.push_back(window);
  }
  return windows;
}

Shape Spatial(const Shape& dims) {
  return {dims.begin() + 2, dims.end()};
}

Shape WithSpatial(const Shape& dims, const Shape& spatial) {
  Shape result(dims.begin(), dims.begin() + 2);
  result.insert(result.end(), spatial.begin(), spatial.end());
  return result;
}

/// The element that a window's maximum is: the first of the largest, or the last NaN. Nothing where
/// the window has none.
std::optional<std::size_t> Largest(const Window& window, const double* channel) {
  std::optional<std::size_t> largest;
  for (const std::size_t element : window.elements) {
    if (std::isnan(channel[element]) || !largest || channel[element] > channel[*largest]) {
      largest = element;
    }
  }
  return largest;
}

/// The number of an element among all of X, as Indices has it.
double IndexOf(
    const Windows& windows,
    const Attributes& attributes,
    std::size_t channel,
    std::size_t element) {
  const Shape at = IndexAt(windows.input, static_cast<std::int64_t>(element));
  const bool first_axis_first = AttributeOr<std::int64_t>(attributes, "storage_order", 0) == 1;
  std::int64_t index = 0;
  for (std::size_t i = 0; i < at.size(); ++i) {
    const std::size_t axis = first_axis_first ? at.size() - 1 - i : i;
    index = (index * windows.input[axis]) + at[axis];
  }
  return static_cast<double>(
      (static_cast<std::int64_t>(channel) * Positions(windows.input)) + index);
}

/// A sum for each element of a tensor.
using Sums = std::vector<CountingSum>;

Expected ExpectAll(const Sums& sums, const Shape& dims) {
  Expected expected = Unknown(dims);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    Expect(sums[i], i, expected);
  }
  return expected;
}

Sums SumsFor(const Shape& dims) {
  return Sums(static_cast<std::size_t>(Count(dims)));
}

/// A least common multiple of what windows count, so that integers times it have whole means.
double CommonCount(const Windows& windows) {
  std::int64_t common = 1;
  for (const Window& window : windows.all) {
    common = std::lcm(common, std::max<std::int64_t>(std::llround(window.count), 1));
  }
  return static_cast<double>(common);
}

class PoolOracle : public Oracle {
 public:
  [[nodiscard]] std::optional<Shapes> OutputShapes(
      const Shapes& inputs,
      const Attributes& attributes) const override {
    const auto dims = InputDims(inputs, attributes);
    const auto windows = dims ? WindowsOver(Spatial(*dims), attributes) : std::nullopt;
    if (!windows) {
      return std::nullopt;
    }
    const Shape output = WithSpatial(*dims, windows->output);
    for (const std::string name : {"dY", "Y"}) {
      const auto found = inputs.find(name);
      if (found != inputs.end() && found->second != output) {
        return std::nullopt;
      }
    }
    return Shapes{{"Y", output}, {"Indices", output}, {"dX", *dims}};
  }

 protected:
  /// The dims of X.
  [[nodiscard]] virtual std::optional<Shape> InputDims(
      const Shapes& inputs,
      const Attributes& /*attributes*/) const {
    return inputs.at("X");
  }

  [[nodiscard]] Windows WindowsOf(const Shapes& inputs, const Attributes& attributes) const {
    return *WindowsOver(Spatial(*InputDims(inputs, attributes)), attributes);
  }
};

/// Numbers all of which differ within a channel, so that nothing ties.
Tensor Distinct(const Shape& dims, Random& random) {
  const std::int64_t size = Positions(Spatial(dims));
  std::vector<double> values;
  std::size_t next = 0;
  return MakeTensor(dims, [&] {
    if (next == values.size()) {
      values.clear();
      for (std::int64_t i = 0; i < size; ++i) {
        values.push_back(static_cast<double>(i - 128) / 8);
      }
      random.Shuffle(values);
      next = 0;
    }
    return values[next++];
  });
}

constexpr std::int64_t kLargest[] = {7, 3, 1};
constexpr int kLevels = 3;

class MaxPoolOracle final : public PoolOracle {
 public:
  [[nodiscard]] ExpectedOutputs Run(const Tensors& inputs, const Attributes& attributes)
      const override {
    const Windows windows = WindowsOf(ShapesOf(inputs), attributes);
    const Tensor& X = inputs.at("X");
    const Shape output = WithSpatial(X.dims, windows.output);
    ExpectedOutputs outputs{{"Y", Unknown(output)}, {"Indices", Unknown(output)}};
    const auto size = static_cast<std::size_t>(Positions(windows.input));
    for (std::size_t i = 0; i < outputs["Y"].value.values.size(); ++i) {
      const std::size_t channel = i / windows.all.size();
      const Window& window = windows.all[i % windows.all.size()];
      const double* from = X.values.data() + (channel * size);
      const auto largest = Largest(window, from);
      outputs["Y"].value.values[i] =
          largest ? from[*largest] : -std::numeric_limits<double>::infinity();
      outputs["Indices"].value.values[i] =
          largest ? IndexOf(windows, attributes, channel, *largest) : -1;
      for (const char* name : {"Y", "Indices"}) {
        outputs[name].terms[i] = static_cast<double>(window.elements.size());
        outputs[name].bound[i] = std::abs(outputs[name].value.values[i]);
      }
    }
    return outputs;
  }

  [[nodiscard]] Tensors MakeRandomData(
      const Shapes& inputs,
      const Attributes& /*attributes*/,
      Random& random) const override {
    return {{"X", MakeTensor(inputs.at("X"), [&] { return random.Real(-4, 4); })}};
  }

  [[nodiscard]] std::optional<ExactData> MakeExactData(
      const Shapes& inputs,
      const Attributes& /*attributes*/,
      int level,
      Random& random) const override {
    if (level >= kLevels) {
      return std::nullopt;
    }
    const std::int64_t largest = kLargest[level];
    return ExactData{
        {{"X", MakeTensor(inputs.at("X"), [&] { return random.Integer(-largest, largest); })}}, {}};
  }
};

class AveragePoolOracle final : public PoolOracle {
 public:
  [[nodiscard]] ExpectedOutputs Run(const Tensors& inputs, const Attributes& attributes)
      const override {
    const Windows windows = WindowsOf(ShapesOf(inputs), attributes);
    const Tensor& X = inputs.at("X");
    Expected Y = Unknown(WithSpatial(X.dims, windows.output));
    const auto size = static_cast<std::size_t>(Positions(windows.input));
    for (std::size_t i = 0; i < Y.value.values.size(); ++i) {
      const Window& window = windows.all[i % windows.all.size()];
      CountingSum sum;
      for (const std::size_t element : window.elements) {
        sum.Add(Given(X.values[(i / windows.all.size() * size) + element]));
      }
      const bool is_empty = window.elements.empty();
      Expect(is_empty ? sum.Get() : sum.Get() / Given(window.count), sum.terms(), i, Y);
    }
    return {{"Y", Y}};
  }

  [[nodiscard]] Tensors MakeRandomData(
      const Shapes& inputs,
      const Attributes& /*attributes*/,
      Random& random) const override {
    return {{"X", MakeTensor(inputs.at("X"), [&] { return random.Real(-4, 4); })}};
  }

  [[nodiscard]] std::optional<ExactData> MakeExactData(
      const Shapes& inputs,
      const Attributes& attributes,
      int level,
      Random& random) const override {
    if (level >= kLevels) {
      return std::nullopt;
    }
    const double common = CommonCount(WindowsOf(inputs, attributes));
    const std::int64_t largest = kLargest[level];
    return ExactData{
        {{"X",
          MakeTensor(
              inputs.at("X"),
              [&] { return common * static_cast<double>(random.Integer(-largest, largest)); })}},
        {}};
  }
};

class AveragePoolGradOracle final : public PoolOracle {
 public:
  [[nodiscard]] ExpectedOutputs Run(const Tensors& inputs, const Attributes& attributes)
      const override {
    const Windows windows = WindowsOf(ShapesOf(inputs), attributes);
    const Shape& dims = inputs.at("X").dims;
    Sums sums = SumsFor(dims);
    const std::vector<double>& dY = inputs.at("dY").values;
    const auto size = static_cast<std::size_t>(Positions(windows.input));
    for (std::size_t i = 0; i < dY.size(); ++i) {
      const Window& window = windows.all[i % windows.all.size()];
      for (const std::size_t element : window.elements) {
        sums[(i / windows.all.size() * size) + element].Add(Given(dY[i]) / Given(window.count));
      }
    }
    Expected dX = ExpectAll(sums, dims);
    // Gradients of whole windows are summed before they are divided.
    std::size_t taps = 1;
    for (const Window& window : windows.all) {
      taps = std::max(taps, static_cast<std::size_t>(std::llround(window.count)));
    }
    for (double& bound : dX.bound) {
      bound *= static_cast<double>(taps);
    }
    return {{"dX", dX}};
  }

  [[nodiscard]] Tensors MakeRandomData(
      const Shapes& inputs,
      const Attributes& /*attributes*/,
      Random& random) const override {
    return {
        {"dY", MakeTensor(inputs.at("dY"), [&] { return random.Real(-4, 4); })},
        {"X", MakeTensor(inputs.at("X"), [&] { return random.Real(-4, 4); })}};
  }

  [[nodiscard]] std::optional<ExactData> MakeExactData(
      const Shapes& inputs,
      const Attributes& attributes,
      int level,
      Random& random) const override {
    if (level >= kLevels) {
      return std::nullopt;
    }
    const double common = CommonCount(WindowsOf(inputs, attributes));
    const std::int64_t largest = kLargest[level];
    return ExactData{
        {{"dY",
          MakeTensor(
              inputs.at("dY"),
              [&] { return common * static_cast<double>(random.Integer(-largest, largest)); })},
         {"X", MakeTensor(inputs.at("X"), [&] { return random.Integer(1, 3); })}},
        {}};
  }
};

/// The gradients of MaxPool: where a window's gradient goes differs.
class MaxPoolGradOracle final : public PoolOracle {
 public:
  explicit MaxPoolGradOracle(bool has_indices) : has_indices_(has_indices) {}

  [[nodiscard]] std::optional<Shapes> OutputShapes(
      const Shapes& inputs,
      const Attributes& attributes) const override {
    const auto dims = InputDims(inputs, attributes);
    if (!has_indices_) {
      return PoolOracle::OutputShapes(inputs, attributes);
    }
    // What dX is given need not fit the windows until it is computed.
    return dims ? std::optional(Shapes{{"dX", *dims}}) : std::nullopt;
  }

  [[nodiscard]] ExpectedOutputs Run(const Tensors& inputs, const Attributes& attributes)
      const override {
    const Shapes shapes = ShapesOf(inputs);
    const Windows windows = WindowsOf(shapes, attributes);
    const Shape dims = *InputDims(shapes, attributes);
    Sums sums = SumsFor(dims);
    const std::vector<double>& dY = inputs.at("dY").values;
    const auto size = static_cast<std::size_t>(Positions(windows.input));
    for (std::size_t i = 0; i < dY.size(); ++i) {
      const std::size_t channel = i / windows.all.size();
      const Window& window = windows.all[i % windows.all.size()];
      for (const std::size_t element : window.elements) {
        const bool takes = has_indices_ ? inputs.at("Indices").values[i] ==
                                              IndexOf(windows, attributes, channel, element)
                                        : element == Equal(window, inputs, channel * size, i);
        if (takes) {
          sums[(channel * size) + element].Add(Given(dY[i]));
        }
      }
    }
    return {{"dX", ExpectAll(sums, dims)}};
  }

  [[nodiscard]] Tensors MakeRandomData(
      const Shapes& inputs,
      const Attributes& attributes,
      Random& random) const override {
    Tensors data{{"dY", MakeTensor(inputs.at("dY"), [&] { return random.Real(-4, 4); })}};
    const Tensor X = has_indices_ ? Tensor() : Distinct(inputs.at("X"), random);
    Complete(inputs, attributes, X, random, data);
    return data;
  }

  [[nodiscard]] std::optional<ExactData> MakeExactData(
      const Shapes& inputs,
      const Attributes& attributes,
      int level,
      Random& random) const override {
    if (level >= kLevels) {
      return std::nullopt;
    }
    const std::int64_t largest = kLargest[level];
    const auto draw = [&] { return random.Integer(-largest, largest); };
    ExactData data{{{"dY", MakeTensor(inputs.at("dY"), draw)}}, {}};
    const Tensor X = has_indices_ ? Tensor() : MakeTensor(inputs.at("X"), draw);
    Complete(inputs, attributes, X, random, data.inputs);
    return data;
  }

 protected:
  [[nodiscard]] std::optional<Shape> InputDims(const Shapes& inputs, const Attributes& attributes)
      const override {
    if (!has_indices_) {
      return inputs.at("X");
    }
    const Shape& dY = inputs.at("dY");
    const List given = ListOr(attributes, "x_shape", {});
    const bool fits = given.size() + 2 == dY.size() && inputs.at("Indices") == dY &&
                      std::ranges::all_of(given, [](std::int64_t dim) { return dim >= 0; });
    return fits ? std::optional(WithSpatial(dY, given)) : std::nullopt;
  }

 private:
  /// The element of a window that equals Y: the first, or if that is NaN the last NaN.
  static std::size_t
  Equal(const Window& window, const Tensors& inputs, std::size_t channel_at, std::size_t output) {
    const double y = inputs.at("Y").values[output];
    const double* from = inputs.at("X").values.data() + channel_at;
    std::size_t found = std::numeric_limits<std::size_t>::max();
    for (const std::size_t element : std::ranges::reverse_view(window.elements)) {
      if (std::isnan(y) && std::isnan(from[element])) {
        return element;
      }
      found = from[element] == y ? element : found;
    }
    return found;
  }

  /// Adds what MaxPool gives of X; or indices of elements of each window, and of some others.
  void Complete(
      const Shapes& inputs,
      const Attributes& attributes,
      const Tensor& X,
      Random& random,
      Tensors& data) const {
    if (!has_indices_) {
      data["Y"] = MaxPoolOracle().Run({{"X", X}}, attributes).at("Y").value;
      data["X"] = X;
      return;
    }
    const Windows windows = WindowsOf(inputs, attributes);
    std::size_t output = 0;
    data["Indices"] = MakeTensor(inputs.at("Indices"), [&] {
      const std::size_t channel = output / windows.all.size();
      const Window& window = windows.all[output++ % windows.all.size()];
      if (window.elements.empty() || random.Chance(0.05)) {
        return random.Choice<double>({-1, 0, 1, 17, 0x1p40, -0x1p62});
      }
      return IndexOf(windows, attributes, channel, random.Choice(window.elements));
    });
  }

  bool has_indices_;
};

/// Pooling of one window that is as large as the input.
class GlobalOracle final : public Oracle {
 public:
  explicit GlobalOracle(const Oracle& windowed) : windowed_(windowed) {}

  [[nodiscard]] std::optional<Shapes> OutputShapes(
      const Shapes& inputs,
      const Attributes& /*attributes*/) const override {
    return windowed_.OutputShapes(inputs, WindowOf(inputs));
  }
  [[nodiscard]] ExpectedOutputs Run(const Tensors& inputs, const Attributes& /*attributes*/)
      const override {
    return windowed_.Run(inputs, WindowOf(ShapesOf(inputs)));
  }
  [[nodiscard]] Tensors MakeRandomData(
      const Shapes& inputs,
      const Attributes& /*attributes*/,
      Random& random) const override {
    return windowed_.MakeRandomData(inputs, WindowOf(inputs), random);
  }
  [[nodiscard]] std::optional<ExactData> MakeExactData(
      const Shapes& inputs,
      const Attributes& /*attributes*/,
      int level,
      Random& random) const override {
    return windowed_.MakeExactData(inputs, WindowOf(inputs), level, random);
  }

 private:
  static Attributes WindowOf(const Shapes& inputs) {
    return {{"kernel_shape", Spatial(inputs.at("X"))}};
  }

  const Oracle& windowed_;
};

}  // namespace

const Oracle& MaxPool() {
  static const MaxPoolOracle kOracle;
  return kOracle;
}

const Oracle& MaxPoolGrad() {
  static const MaxPoolGradOracle kOracle(/*has_indices=*/true);
  return kOracle;
}

const Oracle& MaxPoolXYGrad() {
  static const MaxPoolGradOracle kOracle(/*has_indices=*/false);
  return kOracle;
}

const Oracle& AveragePool() {
  static const AveragePoolOracle kOracle;
  return kOracle;
}

const Oracle& AveragePoolGrad() {
  static const AveragePoolGradOracle kOracle;
  return kOracle;
}

const Oracle& GlobalMaxPool() {
  static const GlobalOracle kOracle(MaxPool());
  return kOracle;
}

const Oracle& GlobalMaxPoolGrad() {
  static const GlobalOracle kOracle(MaxPoolXYGrad());
  return kOracle;
}

const Oracle& GlobalAveragePool() {
  static const GlobalOracle kOracle(AveragePool());
  return kOracle;
}

const Oracle& GlobalAveragePoolGrad() {
  static const GlobalOracle kOracle(AveragePoolGrad());
  return kOracle;
}

}  // namespace gradsmith::reference::pool
