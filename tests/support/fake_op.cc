#include "support/fake_op.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "support/elements.h"

namespace gradsmith::support::fake {

namespace {

enum class Mode : std::uint8_t { KEEP, NEGATE };

struct FakeAttributes {
  std::int64_t factor = 1;
  double weight = 0.5;
  IntList steps = {};
  Mode mode = Mode::KEEP;
};

constexpr std::string_view kModes[] = {"KEEP", "NEGATE"};

constexpr AttributeSpec kAttributes[] = {
    {.name = "factor",
     .kind = AttributeKind::kInt,
     .offset = offsetof(FakeAttributes, factor),
     .minimum = 1,
     .maximum = 4},
    {.name = "weight",
     .kind = AttributeKind::kFloat,
     .offset = offsetof(FakeAttributes, weight),
     .minimum = 0,
     .maximum = 1},
    {.name = "steps",
     .kind = AttributeKind::kInts,
     .offset = offsetof(FakeAttributes, steps),
     .minimum = 1,
     .maximum = std::numeric_limits<double>::infinity(),
     .length_of = 2},
    {.name = "mode",
     .kind = AttributeKind::kEnum,
     .offset = offsetof(FakeAttributes, mode),
     .choices = kModes},
};

/// The spatial dims of Y are those of X, by a rule so that rules are tested too.
Result<Dims> SameDims(const void* /*attributes*/, std::span<const Dims> symbols) {
  return symbols[2];
}

constexpr SymbolSpec kSymbols[] = {
    {.name = "N"},
    {.name = "C"},
    {.name = "D", .is_list = true, .max_length = 3},
    {.name = "O",
     .is_list = true,
     .length_of = 2,
     .rule = &SameDims,
     .rule_name = "fake::SameDims(D)"},
};

constexpr DimSpec kShapeOfX[] = {{.symbol = 0}, {.symbol = 1}, {.symbol = 2}};
constexpr DimSpec kShapeOfY[] = {{.symbol = 0}, {.symbol = 1}, {.symbol = 3}};
constexpr DimSpec kShapeOfW[] = {{.symbol = 1}};

constexpr TensorSpec kX = {
    .name = "X",
    .type_parameter = 0,
    .shape = kShapeOfX,
    .shape_text = "[N, C, *D]"};
constexpr TensorSpec kW = {
    .name = "W",
    .type_parameter = 0,
    .shape = kShapeOfW,
    .shape_text = "[C]"};

/// Names of tensors, of which there may be none.
using Names = std::span<const std::string_view>;
constexpr std::string_view kOfX[] = {"X"};
constexpr std::string_view kOfW[] = {"W"};
constexpr std::string_view kOfB[] = {"B"};
constexpr std::string_view kOfY[] = {"Y"};

constexpr TensorSpec PerChannel(std::string_view name, Names gradient_of) {
  TensorSpec spec = kW;
  spec.name = name;
  spec.optional = true;
  spec.gradient_of = gradient_of;
  return spec;
}

constexpr TensorSpec Total(std::int8_t in_place_of) {
  TensorSpec spec = kW;
  spec.name = "total";
  spec.optional = in_place_of >= 0;
  spec.in_place_of = in_place_of;
  return spec;
}

constexpr TensorSpec Output(std::string_view name, Names gradient_of) {
  return {
      .name = name,
      .type_parameter = 0,
      .shape = kShapeOfY,
      .shape_text = "[N, C, *O]",
      .gradient_of = gradient_of};
}

constexpr TensorSpec GradientOfX() {
  TensorSpec spec = kX;
  spec.name = "dX";
  spec.optional = true;
  spec.gradient_of = kOfX;
  return spec;
}

constexpr TensorSpec kScaleInputs[] = {kX, kW, Total(-1), PerChannel("B", {})};
constexpr TensorSpec kScaleOutputs[] = {Output("Y", {}), Total(2)};
constexpr TensorSpec kGradInputs[] = {Output("dY", kOfY), kX, kW};
constexpr TensorSpec kGradOutputs[] = {
    GradientOfX(), PerChannel("dW", kOfW), PerChannel("dB", kOfB)};

constexpr std::string_view kTypeParameters[] = {"T"};

std::shared_ptr<void> MakeAttributes() {
  return std::make_shared<FakeAttributes>();
}

constexpr OpSchema kScaleSchema = {
    .domain = "test",
    .name = "Scale",
    .kernel = "fake::Scale",
    .source_file = "fake.yaml",
    .type_parameters = kTypeParameters,
    .symbols = kSymbols,
    .inputs = kScaleInputs,
    .outputs = kScaleOutputs,
    .attributes = kAttributes,
    .make_attributes = &MakeAttributes,
};

constexpr OpSchema kGradSchema = {
    .domain = "test",
    .name = "ScaleGrad",
    .gradient_of = "Scale",
    .kernel = "fake::ScaleGrad",
    .source_file = "fake.yaml",
    .type_parameters = kTypeParameters,
    .symbols = kSymbols,
    .inputs = kGradInputs,
    .outputs = kGradOutputs,
    .attributes = kAttributes,
    .make_attributes = &MakeAttributes,
};

template <RowIndex kRow>
Status RunRow(
    const Context& context,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  return Run(kRow, context, attributes, inputs, outputs);
}

constexpr DataType kFloat[] = {DataType::kFloat};
constexpr DataType kDouble[] = {DataType::kDouble};
constexpr std::int32_t kEntryLines[] = {3, 9};

constexpr Row kRows[] = {
    {.op = &kScaleSchema,
     .name = "float",
     .types = kFloat,
     .run = &RunRow<kScaleFloat>,
     .entry_line = &kEntryLines[0],
     .line_offset = 1},
    {.op = &kScaleSchema,
     .name = "double",
     .types = kDouble,
     .run = &RunRow<kScaleDouble>,
     .entry_line = &kEntryLines[0],
     .line_offset = 2},
    {.op = &kGradSchema,
     .name = "float",
     .types = kFloat,
     .run = &RunRow<kScaleGradFloat>,
     .entry_line = &kEntryLines[1],
     .line_offset = 1},
    {.op = &kGradSchema,
     .name = "double",
     .types = kDouble,
     .run = &RunRow<kScaleGradDouble>,
     .entry_line = &kEntryLines[1],
     .line_offset = 2},
};

std::vector<std::int64_t> ToVector(const IntList& list) {
  return {list.begin(), list.end()};
}

std::vector<double> Read(const ConstTensorRef& tensor) {
  std::vector<double> values;
  const auto* data = static_cast<const std::byte*>(tensor.data);
  const std::size_t size = SizeOf(tensor.type);
  ForEachOffset(ToVector(tensor.dims), ToVector(tensor.strides), [&](std::int64_t offset) {
    values.push_back(Decode(tensor.type, data + static_cast<std::size_t>(offset) * size));
  });
  return values;
}

void Write(const TensorRef& tensor, const std::vector<double>& values) {
  auto* data = static_cast<std::byte*>(tensor.data);
  const std::size_t size = SizeOf(tensor.type);
  auto value = values.begin();
  ForEachOffset(ToVector(tensor.dims), ToVector(tensor.strides), [&](std::int64_t offset) {
    Encode(tensor.type, *value++, data + static_cast<std::size_t>(offset) * size);
  });
}

/// Both ops in double, for the kernel and for the oracle: what is tested here is neither.
class FakeOracle final : public reference::Oracle {
 public:
  explicit FakeOracle(bool gradient) : gradient_(gradient) {}

  [[nodiscard]] std::optional<reference::Shapes> OutputShapes(
      const reference::Shapes& inputs,
      const reference::Attributes& /*attributes*/) const override {
    const reference::Shape& X = inputs.at("X");
    if (X.size() < 2 || X.size() > 5) {
      return std::nullopt;
    }
    const reference::Shape per_channel{X[1]};
    for (const auto& [name, dims] : inputs) {
      if (dims != (name == "X" || name == "dY" ? X : per_channel)) {
        return std::nullopt;
      }
    }
    return gradient_ ? reference::Shapes{{"dX", X}, {"dW", per_channel}, {"dB", per_channel}}
                     : reference::Shapes{{"Y", X}, {"total", per_channel}};
  }

  [[nodiscard]] reference::ExpectedOutputs Run(
      const reference::Tensors& inputs,
      const reference::Attributes& attributes) const override {
    reference::ExpectedOutputs outputs;
    const auto shapes = OutputShapes(reference::ShapesOf(inputs), attributes);
    if (!shapes) {
      throw std::invalid_argument("the oracle was given inputs that do not fit together");
    }
    for (const auto& [name, dims] : *shapes) {
      const std::vector<double> zeros(static_cast<std::size_t>(reference::Count(dims)));
      outputs[name] = {{dims, zeros}, zeros, zeros, zeros};
    }
    const auto factor = static_cast<double>(std::get<std::int64_t>(attributes.at("factor")));
    const reference::Tensor& X = inputs.at("X");
    const std::int64_t channels = X.dims[1];
    const std::int64_t positions =
        reference::Count(reference::Shape(X.dims.begin() + 2, X.dims.end()));
    for (std::size_t i = 0; i < X.values.size(); ++i) {
      const auto c = static_cast<std::size_t>(static_cast<std::int64_t>(i) / positions % channels);
      if (gradient_) {
        AddGradients(inputs, factor, i, c, outputs);
      } else {
        Add(outputs["Y"], i, X.values[i] * inputs.at("W").values[c] * factor);
        Add(outputs["Y"], i, inputs.contains("B") ? inputs.at("B").values[c] : 0);
        Add(outputs["total"], c, X.values[i]);
      }
    }
    for (std::size_t c = 0; !gradient_ && c < static_cast<std::size_t>(channels); ++c) {
      Add(outputs["total"], c, inputs.at("total").values[c]);
    }
    return outputs;
  }

  [[nodiscard]] reference::Tensors MakeRandomData(
      const reference::Shapes& inputs,
      const reference::Attributes& /*attributes*/,
      reference::Random& random) const override {
    reference::Tensors data;
    for (const auto& [name, dims] : inputs) {
      data[name] = reference::MakeTensor(dims, [&] { return random.Real(-1, 1); });
    }
    return data;
  }

  [[nodiscard]] std::optional<reference::ExactData> MakeExactData(
      const reference::Shapes& inputs,
      const reference::Attributes& /*attributes*/,
      int level,
      reference::Random& random) const override {
    if (level > 0) {
      return std::nullopt;
    }
    reference::ExactData data;
    for (const auto& [name, dims] : inputs) {
      data.inputs[name] = reference::MakeTensor(dims, [&] { return random.Integer(1, 9); });
    }
    return data;
  }

 private:
  static void Add(reference::Expected& sum, std::size_t i, double term) {
    sum.value.values[i] += term;
    sum.terms[i] += 1;
    sum.bound[i] += term < 0 ? -term : term;
    sum.error[i] = (sum.terms[i] + 2) * sum.bound[i];
  }

  static void AddGradients(
      const reference::Tensors& inputs,
      double factor,
      std::size_t i,
      std::size_t c,
      reference::ExpectedOutputs& outputs) {
    const double dy = inputs.at("dY").values[i];
    Add(outputs["dX"], i, dy * inputs.at("W").values[c] * factor);
    Add(outputs["dW"], c, dy * inputs.at("X").values[i] * factor);
    Add(outputs["dB"], c, dy);
  }

  bool gradient_;
};

const FakeOracle kScaleOracle(/*gradient=*/false);
const FakeOracle kGradOracle(/*gradient=*/true);

const FakeAttributes kDefaultAttributes = {};
const FakeAttributes kFactorAttributes = {.factor = 3};
const Attribute kDefaults[] = {
    {"factor", 1},
    {"weight", 0.5},
    {"steps", IntList{}},
    {"mode", "KEEP"}};

Case MakeCase(bool gradient, const std::string& name, Layout layout, const reference::Shape& X) {
  const reference::Shape per_channel{X[1]};
  Case problem{.name = name, .layout = layout, .typed_attributes = &kDefaultAttributes};
  if (gradient) {
    problem.inputs = {{"dY", X}, {"X", X}, {"W", per_channel}};
    problem.outputs = {{"dX", X}, {"dW", per_channel}, {"dB", per_channel}};
  } else {
    problem.inputs = {{"X", X}, {"W", per_channel}, {"total", per_channel}, {"B", per_channel}};
    problem.outputs = {{"Y", X}, {"total", per_channel}};
  }
  if (name == "factor") {
    problem.attributes = {{"factor", 3}, {"steps", IntList{2, 2}}};
    problem.typed_attributes = &kFactorAttributes;
  }
  return problem;
}

std::vector<Case> MakeCases(bool gradient) {
  return {
      MakeCase(gradient, "plain", Layout::kContiguous, {2, 3, 4}),
      MakeCase(gradient, "factor", Layout::kContiguous, {2, 3, 4, 2}),
      MakeCase(gradient, "channels_last", Layout::kChannelsLast, {2, 3, 4, 2}),
      MakeCase(gradient, "strided", Layout::kStrided, {2, 3, 4}),
      MakeCase(gradient, "broadcast", Layout::kBroadcast, {2, 3, 4}),
      MakeCase(gradient, "no_axis", Layout::kContiguous, {4, 3}),
      MakeCase(gradient, "empty", Layout::kContiguous, {0, 3, 4}),
  };
}

template <RowIndex kRow>
Status CallTyped(const TypedCall& call) {
  return Call(kRows[kRow], call.context, call.attributes, call.inputs, call.outputs);
}

const TypedRow kScaleRows[] = {
    {"float", &CallTyped<kScaleFloat>},
    {"double", &CallTyped<kScaleDouble>},
};
const TypedRow kGradRows[] = {
    {"float", &CallTyped<kScaleGradFloat>},
    {"double", &CallTyped<kScaleGradDouble>},
};

Result<std::vector<Dims>> InferTypedScale(const TypedShapes& call) {
  return std::vector<Dims>{call.required[0], call.required[1]};
}

Result<std::vector<Dims>> InferTypedGrad(const TypedShapes& call) {
  return std::vector<Dims>{call.required[1], call.required[2], call.required[2]};
}

constexpr Backend kBackends[] = {Backend::kCpu};

}  // namespace

std::span<const Row> Rows() {
  return kRows;
}

const Registry& FakeRegistry() {
  static const Registry kRegistry = [] {
    static constexpr std::span<const Row> kTable[] = {kRows};
    Registry registry;
    if (const Status status = registry.Add(kTable); !status.ok()) {
      throw std::logic_error(status.message());
    }
    return registry;
  }();
  return kRegistry;
}

const OpTests& TestsOf(RowIndex row) {
  static const auto kPointers = [](const std::vector<Case>& cases) {
    std::vector<const Case*> pointers(cases.size());
    std::transform(
        cases.begin(), cases.end(), pointers.begin(), [](const Case& problem) { return &problem; });
    return pointers;
  };
  static const std::vector<Case> kScaleCases = MakeCases(/*gradient=*/false);
  static const std::vector<Case> kGradCases = MakeCases(/*gradient=*/true);
  static const std::vector<const Case*> kScaleCasePointers = kPointers(kScaleCases);
  static const std::vector<const Case*> kGradCasePointers = kPointers(kGradCases);
  static const OpTests kScaleTests = {
      .op = "Scale",
      .oracle = &kScaleOracle,
      .defaults = kDefaults,
      .backends = kBackends,
      .rows = kScaleRows,
      .infer_shapes = &InferTypedScale,
      .cases = kScaleCasePointers,
  };
  static const OpTests kGradTests = {
      .op = "ScaleGrad",
      .oracle = &kGradOracle,
      .defaults = kDefaults,
      .backends = kBackends,
      .rows = kGradRows,
      .infer_shapes = &InferTypedGrad,
      .cases = kGradCasePointers,
  };
  return row <= kScaleDouble ? kScaleTests : kGradTests;
}

Status Run(
    RowIndex row,
    const Context& /*context*/,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  const OpSchema& op = *kRows[row].op;
  reference::Tensors tensors;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].present) {
      tensors[std::string(op.inputs[i].name)] = {ToVector(inputs[i].dims), Read(inputs[i])};
    }
  }
  const auto& given = *static_cast<const FakeAttributes*>(attributes);
  const reference::ExpectedOutputs results =
      TestsOf(row).oracle->Run(tensors, {{"factor", given.factor}});
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].present) {
      Write(outputs[i], results.find(op.outputs[i].name)->second.value.values);
    }
  }
  return {};
}

}  // namespace gradsmith::support::fake
