#include "reference/conv.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

/// Literals worked out by hand: the oracle has no other judge.
namespace gradsmith::reference::conv {
namespace {

using List = std::vector<std::int64_t>;
using Values = std::vector<double>;

Tensor Line(const Values& values) {
  return {{1, 1, static_cast<std::int64_t>(values.size())}, values};
}

Values RunConv(const Tensor& X, const Tensor& W, const Attributes& attributes) {
  return Conv().Run({{"X", X}, {"W", W}}, attributes).at("Y").value.values;
}

Values RunTransposed(const Attributes& attributes) {
  const Tensors inputs{{"X", Line({1, 2})}, {"W", Line({1, 10, 100})}};
  return ConvTranspose().Run(inputs, attributes).at("Y").value.values;
}

TEST(OracleConvTest, SlidesTheFilter) {
  EXPECT_EQ(RunConv(Line({1, 2, 3, 4}), Line({1, 10}), {}), (Values{21, 32, 43}));
  EXPECT_EQ(RunConv(Line({1, 2, 3, 4}), Line({1, 10}), {{"dilations", List{2}}}), (Values{31, 42}));
  EXPECT_EQ(
      RunConv(Line({1, 2, 3, 4}), Line({1, 10}), {{"strides", List{2}}, {"pads", List{1, 0}}}),
      (Values{10, 32}));
}

TEST(OracleConvTest, AddsTheBias) {
  const Tensors inputs{{"X", Line({1, 2, 3})}, {"W", Line({1, 10})}, {"B", {{1}, {100}}}};
  const Expected Y = Conv().Run(inputs, {{"pads", List{0, 1}}}).at("Y");
  EXPECT_EQ(Y.value.values, (Values{121, 132, 103}));
  EXPECT_EQ(Y.terms, (Values{3, 3, 2}));
}

TEST(OracleConvTest, NoOutputMayBeInexact) {
  for (const Oracle* oracle : {&Conv(), &ConvGrad(), &ConvTranspose(), &ConvTransposeGrad()}) {
    EXPECT_TRUE(oracle->InexactOutputs().empty());
  }
}

TEST(OracleConvTest, BoundsAreSumsOfMagnitudes) {
  const Expected Y = Conv().Run({{"X", Line({1, -2, 3})}, {"W", Line({1, 10})}}, {}).at("Y");
  EXPECT_EQ(Y.value.values, (Values{-19, 28}));
  EXPECT_EQ(Y.bound, (Values{21, 32}));
  EXPECT_EQ(Y.error, (Values{3 * 21, 3 * 32}));
}

TEST(OracleConvTest, SplitsChannelsIntoGroups) {
  const Tensor X{{1, 2, 1, 2}, {1, 2, 3, 4}};
  EXPECT_EQ(RunConv(X, {{1, 2, 1, 1}, {10, 100}}, {}), (Values{310, 420}));
  EXPECT_EQ(
      RunConv(X, {{2, 1, 1, 1}, {10, 100}}, {{"group", std::int64_t{2}}}),
      (Values{10, 20, 300, 400}));
}

TEST(OracleConvTest, KeepsAxesAndBatchApart) {
  const Tensor X{{2, 1, 2, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
  EXPECT_EQ(RunConv(X, {{1, 1, 2, 1}, {1, 10}}, {}), (Values{41, 52, 63, 107, 118, 129}));
  EXPECT_EQ(RunConv(X, {{1, 1, 1, 2}, {1, 10}}, {}), (Values{21, 32, 54, 65, 87, 98, 120, 131}));
}

TEST(OracleConvTest, PadsByItself) {
  const auto run = [](const std::string& auto_pad) {
    return RunConv(Line({1, 2, 3, 4}), Line({1, 10}), {{"auto_pad", auto_pad}});
  };
  EXPECT_EQ(run("SAME_UPPER"), (Values{21, 32, 43, 4}));
  EXPECT_EQ(run("SAME_LOWER"), (Values{10, 21, 32, 43}));
  EXPECT_EQ(run("VALID"), (Values{21, 32, 43}));
}

TEST(OracleConvTest, Gradients) {
  const Tensors inputs{{"dY", Line({3, 5})}, {"X", Line({1, 2, 3, 4})}, {"W", Line({1, 10})}};
  const ExpectedOutputs outputs =
      ConvGrad().Run(inputs, {{"strides", List{2}}, {"pads", List{1, 0}}});
  EXPECT_EQ(outputs.at("dX").value.values, (Values{30, 5, 50, 0}));
  EXPECT_EQ(outputs.at("dX").terms, (Values{1, 1, 1, 0}));
  EXPECT_EQ(outputs.at("dW").value.values, (Values{10, 18}));
  EXPECT_EQ(outputs.at("dB").value.values, (Values{8}));
}

TEST(OracleConvTest, GroupedGradients) {
  const Tensors inputs{
      {"dY", {{1, 2, 1}, {2, 3}}},
      {"X", {{1, 4, 1}, {1, 2, 3, 4}}},
      {"W", {{2, 2, 1}, {5, 6, 7, 8}}}};
  const ExpectedOutputs outputs = ConvGrad().Run(inputs, {{"group", std::int64_t{2}}});
  EXPECT_EQ(outputs.at("dX").value.values, (Values{10, 12, 21, 24}));
  EXPECT_EQ(outputs.at("dW").value.values, (Values{2, 4, 9, 12}));
  EXPECT_EQ(outputs.at("dB").value.values, (Values{2, 3}));
}

TEST(OracleConvTest, Transposed) {
  EXPECT_EQ(RunTransposed({}), (Values{1, 12, 120, 200}));
  EXPECT_EQ(RunTransposed({{"strides", List{2}}}), (Values{1, 10, 102, 20, 200}));
  EXPECT_EQ(RunTransposed({{"strides", List{2}}, {"pads", List{1, 1}}}), (Values{10, 102, 20}));
  EXPECT_EQ(
      RunTransposed({{"strides", List{2}}, {"output_padding", List{1}}}),
      (Values{1, 10, 102, 20, 200, 0}));
}

TEST(OracleConvTest, TransposedToAShape) {
  const auto run = [](std::int64_t length, const std::string& auto_pad) {
    return RunTransposed(
        {{"strides", List{2}}, {"output_shape", List{length}}, {"auto_pad", auto_pad}});
  };
  EXPECT_EQ(run(4, "NOTSET"), (Values{10, 102, 20, 200}));
  EXPECT_EQ(run(4, "SAME_LOWER"), (Values{10, 102, 20, 200}));
  EXPECT_EQ(run(4, "SAME_UPPER"), (Values{1, 10, 102, 20}));
  EXPECT_EQ(run(7, "NOTSET"), (Values{1, 10, 102, 20, 200, 0, 0}));
  EXPECT_EQ(
      RunTransposed({{"strides", List{2}}, {"auto_pad", std::string("SAME_UPPER")}}),
      (Values{1, 10, 102, 20}));
}

TEST(OracleConvTest, TransposedGradients) {
  const Tensors inputs{
      {"dY", Line({1, 2, 3, 4, 5})}, {"X", Line({1, 2})}, {"W", Line({1, 10, 100})}};
  const ExpectedOutputs outputs = ConvTransposeGrad().Run(inputs, {{"strides", List{2}}});
  EXPECT_EQ(outputs.at("dX").value.values, (Values{321, 543}));
  EXPECT_EQ(outputs.at("dW").value.values, (Values{7, 10, 13}));
  EXPECT_EQ(outputs.at("dB").value.values, (Values{15}));
}

/// Y's dims, or nothing.
std::optional<Shape>
ShapeOfY(const Oracle& oracle, const Shape& X, const Shape& W, const Attributes& attributes) {
  const std::optional<Shapes> shapes = oracle.OutputShapes({{"X", X}, {"W", W}}, attributes);
  return shapes ? std::optional(shapes->at("Y")) : std::nullopt;
}

TEST(OracleConvTest, ShapesOfY) {
  EXPECT_EQ(ShapeOfY(Conv(), {2, 3, 9, 11}, {4, 3, 3, 2}, {}), (Shape{2, 4, 7, 10}));
  EXPECT_EQ(ShapeOfY(Conv(), {2, 3, 0}, {4, 3, 2}, {}), (Shape{2, 4, 0}));
  EXPECT_EQ(ShapeOfY(Conv(), {0, 0, 3}, {4, 0, 2}, {}), (Shape{0, 4, 2}));
  EXPECT_EQ(
      ShapeOfY(ConvTranspose(), {2, 4, 3}, {4, 5, 2}, {{"group", std::int64_t{2}}}),
      (Shape{2, 10, 4}));
  EXPECT_EQ(ShapeOfY(ConvTranspose(), {2, 4, 0}, {4, 5, 2}, {}), (Shape{2, 5, 0}));
}

TEST(OracleConvTest, NoShapesWhereInputsDoNotFit) {
  const Attributes pads{{"pads", List{1, 0}}};
  Attributes same = pads;
  same["auto_pad"] = std::string("SAME_UPPER");
  EXPECT_EQ(ShapeOfY(Conv(), {2, 3, 9}, {4, 2, 3}, {}), std::nullopt);
  EXPECT_EQ(ShapeOfY(Conv(), {2, 3, 9}, {4, 3, 3, 3}, {}), std::nullopt);
  EXPECT_EQ(ShapeOfY(Conv(), {2, 3, 9}, {4, 3, 0}, {}), std::nullopt);
  EXPECT_EQ(ShapeOfY(Conv(), {2, 3, 2}, {4, 3, 3}, {}), std::nullopt);
  EXPECT_NE(ShapeOfY(Conv(), {2, 3, 2}, {4, 3, 3}, pads), std::nullopt);
  EXPECT_EQ(ShapeOfY(Conv(), {2, 3, 9}, {4, 3, 3}, same), std::nullopt);
  EXPECT_EQ(ShapeOfY(Conv(), {2, 4, 9}, {3, 2, 3}, {{"group", std::int64_t{2}}}), std::nullopt);
  EXPECT_EQ(ShapeOfY(Conv(), {2, 3, 9}, {4, 3, 3}, {{"kernel_shape", List{2}}}), std::nullopt);
  EXPECT_EQ(
      ShapeOfY(ConvTranspose(), {2, 3, 9}, {3, 4, 3}, {{"output_padding", List{1}}}), std::nullopt);
  EXPECT_EQ(ShapeOfY(ConvTranspose(), {2, 3, 1}, {3, 4, 1}, {{"pads", List{1, 1}}}), std::nullopt);
}

TEST(OracleConvTest, ExactDataNeedsFewerBitsWithEachLevel) {
  Random random("ExactDataNeedsFewerBitsWithEachLevel");
  double previous = 1e9;
  for (int level = 0;; ++level) {
    const auto data = Conv().MakeExactData({{"X", {10000}}}, {}, level, random);
    if (!data) {
      EXPECT_GT(level, 3);
      break;
    }
    double sum = 0;
    for (const double value : data->inputs.at("X").values) {
      EXPECT_EQ(value, static_cast<int>(value));
      sum += value * value;
    }
    EXPECT_LT(sum, previous);
    previous = sum;
  }
}

}  // namespace
}  // namespace gradsmith::reference::conv
