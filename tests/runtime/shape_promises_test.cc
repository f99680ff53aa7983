#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/validate.h"
#include "gradsmith/kernel.h"

/// What a schema says of dims holds whoever sets them: an input, one that holds a shape, an
/// attribute, or the output that the caller passes.
namespace gradsmith {
namespace {

struct StretchAttributes {
  IntList size = {};
  IntList steps = {};
  std::int64_t group = 1;
  std::int64_t channels = 4;
};

std::shared_ptr<void> MakeStretchAttributes() {
  return std::make_shared<StretchAttributes>();
}

enum : std::int8_t { kSize, kSteps, kGroup, kChannels };
enum : std::int16_t { kS, kD, kC };

constexpr std::array<AttributeSpec, 4> kAttributes = {{
    {.name = "size",
     .kind = AttributeKind::kInts,
     .offset = offsetof(StretchAttributes, size),
     .maximum = 9},
    {.name = "steps",
     .kind = AttributeKind::kInts,
     .offset = offsetof(StretchAttributes, steps),
     .maximum = 9,
     .length_of = kD},
    {.name = "group", .offset = offsetof(StretchAttributes, group), .minimum = 1, .maximum = 9},
    {.name = "channels",
     .offset = offsetof(StretchAttributes, channels),
     .minimum = 1,
     .maximum = 9},
}};

/// Y is X, broadcast, for each channel. `channels` gives their number, or the output does where
/// `given_by` is -1.
constexpr std::array<SymbolSpec, 3> SymbolsOf(std::int8_t given_by) {
  return {{
      {.name = "S", .is_list = true, .broadcast_to = kD},
      {.name = "D", .is_list = true, .max_length = 7, .given_by = kSize, .from_outputs = true},
      {.name = "C", .given_by = given_by, .from_outputs = true, .multiple_of = kGroup},
  }};
}
constexpr std::array<SymbolSpec, 3> kSymbols = SymbolsOf(kChannels);
constexpr std::array<SymbolSpec, 3> kSymbolsOfOutput = SymbolsOf(-1);

/// A rule that relies on what is promised of the attributes.
Result<Dims> SumOfSteps(const void* attributes, std::span<const Dims> /*symbols*/) {
  const auto& given = *static_cast<const StretchAttributes*>(attributes);
  std::int64_t sum = 0;
  for (int i = 0; i < given.size.size(); ++i) {
    if (i >= given.steps.size()) {
      return Internal("the rule reads past the steps");
    }
    sum += given.steps[i];
  }
  return Dims{sum};
}
constexpr std::array<SymbolSpec, 3> kSymbolsOfRule = {{
    kSymbols[kS],
    kSymbols[kD],
    {.name = "C", .rule = &SumOfSteps, .rule_name = "SumOfSteps(S)"},
}};

constexpr std::array<DimSpec, 1> kShapeOfX = {DimSpec{.symbol = kS}};
constexpr std::array<DimSpec, 2> kShapeOfY = {DimSpec{.symbol = kC}, DimSpec{.symbol = kD}};
constexpr std::array<TensorSpec, 2> kInputs = {{
    {.name = "X", .shape = kShapeOfX, .shape_text = "[*S]"},
    {.name = "shape",
     .fixed_type = DataType::kInt64,
     .optional = true,
     .shape_of = "Y",
     .shape = kShapeOfY,
     .shape_text = "[C, *D]"},
}};
constexpr std::array<TensorSpec, 1> kOutputs = {
    {{.name = "Y", .shape = kShapeOfY, .shape_text = "[C, *D]"}}};

constexpr OpSchema OpOf(std::span<const SymbolSpec> symbols) {
  return {
      .name = "Stretch",
      .source_file = "test.yaml",
      .symbols = symbols,
      .inputs = kInputs,
      .outputs = kOutputs,
      .attributes = kAttributes,
      .make_attributes = &MakeStretchAttributes,
  };
}
constexpr OpSchema kOp = OpOf(kSymbols);
constexpr OpSchema kOpOfOutput = OpOf(kSymbolsOfOutput);
constexpr OpSchema kOpOfRule = OpOf(kSymbolsOfRule);

constexpr std::int32_t kLine = 7;

Row RowOf(const OpSchema& op) {
  return {
      .op = &op,
      .name = "float",
      .run = [](const Context&, const void*, std::span<const ConstTensorRef>,
                std::span<const TensorRef>) { return Status(); },
      .entry_line = &kLine};
}

struct StretchCall {
  const OpSchema& op = kOp;
  StretchAttributes attributes = {};
  Dims X = {};
  /// What the input `shape` holds, where it is there.
  std::optional<Dims> held = {};
  Dims Y = {};

  /// What a typed function, the dynamic door and InferShapes say alike: nothing where the call is
  /// right.
  [[nodiscard]] std::string Error() const {
    std::vector<float> numbers(1000);
    const Dims dims = held.value_or(Dims());
    const std::vector<std::int64_t> shape(dims.begin(), dims.end());
    std::vector<ConstTensorRef> inputs = {ConstTensorRef(DataType::kFloat, numbers.data(), X)};
    if (held) {
      inputs.emplace_back(DataType::kInt64, shape.data(), Dims{dims.size()});
    }
    const std::vector<TensorRef> outputs = {TensorRef(DataType::kFloat, &numbers[500], Y)};
    const std::vector<ConstTensorRef> passed = {outputs[0]};
    const Row row = RowOf(op);

    const Status typed = Call(row, Context(), &attributes, inputs, outputs);
    const std::array<Attribute, 4> named = {{
        {"size", attributes.size},
        {"steps", attributes.steps},
        {"group", attributes.group},
        {"channels", attributes.channels},
    }};
    const Kernel kernel = *Kernel::Create(row, named);
    EXPECT_EQ(kernel.Run(Context(), inputs, outputs).message(), typed.message());
    EXPECT_EQ(kernel.InferShapes(inputs, passed).status().message(), typed.message());
    const std::string prefix = "Stretch[float] on cpu (test.yaml:7): ";
    if (typed.ok()) {
      return "";
    }
    EXPECT_EQ(typed.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(typed.message().substr(0, prefix.size()), prefix);
    return typed.message().substr(prefix.size());
  }
};

constexpr const char* kDoesNotBroadcast =
    "; expected each of its dims 1 or equal to that of D, counted from the last";

TEST(ShapePromises, ListsBroadcastToWhatAnAttributeGives) {
  const auto error = [](const Dims& X, const IntList& size) {
    Dims Y = {4};
    for (const std::int64_t dim : size) {
      Y.push_back(dim);
    }
    return StretchCall{.attributes = {.size = size}, .X = X, .Y = Y}.Error();
  };
  EXPECT_EQ(error({3, 1}, {3, 5}), "");
  EXPECT_EQ(error({5}, {3, 5}), "");
  EXPECT_EQ(
      error({3, 1}, {7, 5}),
      std::string("S = [3, 1] from X does not broadcast to D = [7, 5] from size") +
          kDoesNotBroadcast);
  EXPECT_EQ(
      error({3, 5}, {4}),
      std::string("S = [3, 5] from X does not broadcast to D = [4] from size") + kDoesNotBroadcast);
}

TEST(ShapePromises, ListsBroadcastToThoseOfTheOutput) {
  EXPECT_EQ((StretchCall{.X = {3, 1}, .Y = {4, 2, 3, 5}}.Error()), "");
  EXPECT_EQ(
      (StretchCall{.X = {3, 1}, .Y = {4, 7, 5}}.Error()),
      std::string("S = [3, 1] from X does not broadcast to D = [7, 5] from Y") + kDoesNotBroadcast);
}

TEST(ShapePromises, ListsBroadcastToWhatAnInputHolds) {
  EXPECT_EQ((StretchCall{.X = {3, 1}, .held = Dims{4, 3, 5}, .Y = {4, 3, 5}}.Error()), "");
  EXPECT_EQ(
      (StretchCall{.X = {3, 1}, .held = Dims{4, 7, 5}, .Y = {4, 7, 5}}.Error()),
      std::string("S = [3, 1] from X does not broadcast to D = [7, 5] from shape") +
          kDoesNotBroadcast);
}

TEST(ShapePromises, MultiplesAreThoseOfWhatAnAttributeGives) {
  EXPECT_EQ((StretchCall{.attributes = {.group = 2}, .Y = {4}}.Error()), "");
  EXPECT_EQ(
      (StretchCall{.attributes = {.group = 3}, .Y = {4}}.Error()),
      "C = 4 from channels does not fit; expected a multiple of group = 3");
}

TEST(ShapePromises, MultiplesAreThoseOfTheOutput) {
  EXPECT_EQ((StretchCall{.op = kOpOfOutput, .attributes = {.group = 3}, .Y = {6}}.Error()), "");
  EXPECT_EQ(
      (StretchCall{.op = kOpOfOutput, .attributes = {.group = 3}, .Y = {4}}.Error()),
      "C = 4 from Y does not fit; expected a multiple of group = 3");
  const StretchAttributes sized = {.size = {5}, .group = 3};  // all else is bound before
  EXPECT_EQ(
      (StretchCall{.op = kOpOfOutput, .attributes = sized, .Y = {4, 5}}.Error()),
      "C = 4 from Y does not fit; expected a multiple of group = 3");
  EXPECT_EQ(
      (StretchCall{.op = kOpOfOutput, .attributes = {.group = 3}, .held = Dims{4}, .Y = {4}}
           .Error()),
      "C = 4 from shape does not fit; expected a multiple of group = 3");
}

TEST(ShapePromises, ListAttributesHaveTheLengthOfWhatAnAttributeOrTheOutputGives) {
  const StretchAttributes two = {.steps = {1, 2}};
  EXPECT_EQ((StretchCall{.attributes = two, .Y = {4, 5, 6}}.Error()), "");
  EXPECT_EQ(
      (StretchCall{.attributes = two, .Y = {4, 5}}.Error()),
      "attribute steps is [1, 2], 2 values; expected 1: one for each dim of D (D = [5] from Y)");
  EXPECT_EQ(
      (StretchCall{.attributes = {.size = {5, 6}, .steps = {1}}, .Y = {4, 5, 6}}.Error()),
      "attribute steps is [1], 1 value; expected 2: one for each dim of D (D = [5, 6] from size)");
}

TEST(ShapePromises, RulesMayRelyOnThem) {
  const auto error = [](const IntList& steps) {
    const StretchAttributes attributes = {.size = {5, 6}, .steps = steps};
    return StretchCall{.op = kOpOfRule, .attributes = attributes, .Y = {3, 5, 6}}.Error();
  };
  EXPECT_EQ(error({1, 2}), "");
  EXPECT_EQ(
      error({3}),
      "attribute steps is [3], 1 value; expected 2: one for each dim of D (D = [5, 6] from size)");
}

TEST(ShapePromises, AnAttributeAgreesWithAnInputThatHoldsTheShape) {
  const auto error = [](const IntList& size, std::int64_t channels) {
    const StretchAttributes attributes = {.size = size, .channels = channels};
    return StretchCall{.attributes = attributes, .held = Dims{4, 3, 5}, .Y = {4, 3, 5}}.Error();
  };
  EXPECT_EQ(error({3, 5}, 4), "");
  EXPECT_EQ(error({3, 6}, 4), "attribute size is [3, 6]; expected D = [3, 5] from shape");
  EXPECT_EQ(error({3}, 4), "attribute size is [3]; expected 2 dims: those of D");
  EXPECT_EQ(error({3, 5}, 8), "C = 4 from shape; expected 8, as attribute channels is");
}

TEST(ShapePromises, ShapesAreNotInferredFromAttributesThatBreakThem) {
  const ConstTensorRef X(DataType::kFloat, nullptr, {3, 1});
  const auto infer = [&](const StretchAttributes& attributes) {
    return internal::InferShapes(kOp, &attributes, std::span(&X, 1));
  };
  EXPECT_EQ(infer({.size = {3, 5}}).value(), (std::vector<Dims>{{4, 3, 5}}));
  EXPECT_EQ(
      infer({.size = {7, 5}}).status().message(),
      std::string("S = [3, 1] from X does not broadcast to D = [7, 5] from size") +
          kDoesNotBroadcast);
  EXPECT_EQ(
      infer({.size = {3, 5}, .group = 3}).status().message(),
      "C = 4 from channels does not fit; expected a multiple of group = 3");
}

}  // namespace
}  // namespace gradsmith
