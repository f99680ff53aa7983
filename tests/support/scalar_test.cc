#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/checks.h"
#include "support/elements.h"

/// Every check of the harness on an op whose tensors may be scalars: Y = 2 * X, dims [*D].
namespace gradsmith::support {
namespace {

constexpr SymbolSpec kSymbols[] = {{.name = "D", .is_list = true, .max_length = 2}};
constexpr DimSpec kShape[] = {{.symbol = 0}};
constexpr TensorSpec kInputs[] = {
    {.name = "X", .type_parameter = 0, .shape = kShape, .shape_text = "[*D]"}};
constexpr TensorSpec kOutputs[] = {
    {.name = "Y", .type_parameter = 0, .shape = kShape, .shape_text = "[*D]"}};
constexpr std::string_view kTypeParameters[] = {"T"};
constexpr DataType kTypes[] = {DataType::kFloat};
constexpr std::int32_t kEntryLine = 1;

struct NoAttributes {};

constexpr OpSchema kSchema = {
    .domain = "test",
    .name = "Double",
    .kernel = "fake::Double",
    .source_file = "fake.yaml",
    .type_parameters = kTypeParameters,
    .symbols = kSymbols,
    .inputs = kInputs,
    .outputs = kOutputs,
    .make_attributes = []() -> std::shared_ptr<void> { return std::make_shared<NoAttributes>(); },
};

Status Run(
    const Context& context,
    const void* /*attributes*/,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  if (context.preparing()) {
    return {};
  }
  const auto list = [](const IntList& dims) {
    return std::vector<std::int64_t>(dims.begin(), dims.end());
  };
  std::vector<float> values;
  ForEachOffset(list(inputs[0].dims), list(inputs[0].strides), [&](std::int64_t offset) {
    values.push_back(2 * static_cast<const float*>(inputs[0].data)[offset]);
  });
  auto value = values.begin();
  ForEachOffset(list(outputs[0].dims), list(outputs[0].strides), [&](std::int64_t offset) {
    static_cast<float*>(outputs[0].data)[offset] = *value++;
  });
  return {};
}

constexpr Row kRows[] = {
    {.op = &kSchema, .name = "float", .types = kTypes, .run = &Run, .entry_line = &kEntryLine}};

class DoubleOracle final : public reference::Oracle {
 public:
  [[nodiscard]] std::optional<reference::Shapes> OutputShapes(
      const reference::Shapes& inputs,
      const reference::Attributes& /*attributes*/) const override {
    const reference::Shape& X = inputs.at("X");
    return X.size() > 2 ? std::nullopt : std::optional(reference::Shapes{{"Y", X}});
  }
  [[nodiscard]] reference::ExpectedOutputs Run(
      const reference::Tensors& inputs,
      const reference::Attributes& /*attributes*/) const override {
    reference::Expected Y;
    Y.value.dims = inputs.at("X").dims;
    for (const double x : inputs.at("X").values) {
      Y.value.values.push_back(2 * x);
      Y.terms.push_back(1);
      Y.bound.push_back(2 * std::abs(x));
      Y.error.push_back(2 * std::abs(x));
    }
    return {{"Y", Y}};
  }
  [[nodiscard]] reference::Tensors MakeRandomData(
      const reference::Shapes& inputs,
      const reference::Attributes& /*attributes*/,
      reference::Random& random) const override {
    return {{"X", reference::MakeTensor(inputs.at("X"), [&] { return random.Real(-1, 1); })}};
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
    data.inputs["X"] = reference::MakeTensor(inputs.at("X"), [&] { return random.Integer(1, 9); });
    return data;
  }
};

Status CallTyped(const TypedCall& call) {
  return Call(kRows[0], call.context, call.attributes, call.inputs, call.outputs);
}

Result<std::vector<Dims>> Infer(const TypedShapes& call) {
  return std::vector<Dims>{call.required[0]};
}

TEST(Scalar, EveryCheckIsMadeOfIt) {
  static constexpr std::span<const Row> kTable[] = {kRows};
  Registry registry;
  ASSERT_TRUE(registry.Add(kTable).ok());
  const DoubleOracle oracle;
  const NoAttributes attributes;
  for (const Layout layout :
       {Layout::kContiguous, Layout::kChannelsLast, Layout::kStrided, Layout::kBroadcast}) {
    const Case scalar = {
        .name = "scalar",
        .layout = layout,
        .inputs = {{"X", {}}},
        .outputs = {{"Y", {}}},
        .typed_attributes = &attributes};
    const Case* const cases[] = {&scalar};
    const TypedRow rows[] = {{"float", &CallTyped}};
    const Backend backends[] = {Backend::kCpu};
    const OpTests tests = {
        .op = "Double",
        .oracle = &oracle,
        .backends = backends,
        .rows = rows,
        .infer_shapes = &Infer,
        .cases = cases};
    const Subject subject = {&registry, kRows, &tests, &CallTyped};
    for (const Kind& kind : CaseKinds()) {
      if (kind.applies(kRows[0], tests, scalar)) {
        const Report report = kind.check(subject, scalar, "seed");
        EXPECT_EQ(report.failures, std::vector<std::string>()) << kind.name;
      }
    }
  }
}

}  // namespace
}  // namespace gradsmith::support
