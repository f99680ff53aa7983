#include "reference/batch_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

/// Literals worked out by hand: the oracle has no other judge.
namespace gradsmith::reference::batch_norm {
namespace {

using Values = std::vector<double>;

/// Two channels, (N, C, D) = (2, 2, 2): 1, 3, 5, 7 and 0, 0, 0, 4.
const Tensor kX{{2, 2, 2}, {1, 3, 0, 0, 5, 7, 0, 4}};

Tensors ForwardInputs() {
  return {
      {"X", kX},
      {"scale", {{2}, {3, 2}}},
      {"B", {{2}, {1, 10}}},
      {"running_mean", {{2}, {2, 3}}},
      {"running_var", {{2}, {1, 5}}}};
}

TEST(OracleBatchNormTest, Forward) {
  const ExpectedOutputs outputs =
      BatchNormalization().Run(ForwardInputs(), {{"epsilon", 4.}, {"momentum", 0.5}});
  // Channel 0: mean 4, variance 5, so 1 / sqrt(9). Channel 1: mean 1, variance 3, so 1 / sqrt(7).
  EXPECT_EQ(outputs.at("saved_mean").value.values, (Values{4, 1}));
  EXPECT_EQ(
      outputs.at("saved_inv_std").value.values,
      (Values{1. / 3, static_cast<double>(1 / std::sqrt(7.0L))}));
  const double low = 10 - 2 / std::sqrt(7);
  const Values Y{-2, 0, low, low, 2, 4, low, 10 + 6 / std::sqrt(7)};
  for (std::size_t i = 0; i < Y.size(); ++i) {
    EXPECT_DOUBLE_EQ(outputs.at("Y").value.values[i], Y[i]) << i;
  }
  EXPECT_EQ(outputs.at("running_mean").value.values, (Values{3, 2}));
  EXPECT_EQ(outputs.at("running_var").value.values, (Values{0.5 + 10. / 3, 4.5}));
}

TEST(OracleBatchNormTest, ForwardOfOneElement) {
  Tensors inputs = ForwardInputs();
  inputs["X"] = {{1, 2}, {7, -7}};
  const ExpectedOutputs outputs =
      BatchNormalization().Run(inputs, {{"epsilon", 0.25}, {"momentum", 0.5}});
  EXPECT_EQ(outputs.at("Y").value.values, (Values{1, 10}));
  EXPECT_EQ(outputs.at("saved_inv_std").value.values, (Values{2, 2}));
  EXPECT_EQ(outputs.at("running_var").value.values, (Values{0.5, 2.5}));
}

TEST(OracleBatchNormTest, ForwardOfAnEmptyBatch) {
  Tensors inputs = ForwardInputs();
  inputs["X"] = {{0, 2, 3}, {}};
  const ExpectedOutputs outputs = BatchNormalization().Run(inputs, {{"epsilon", 0.25}});
  EXPECT_EQ(outputs.at("Y").value.values, Values{});
  EXPECT_EQ(outputs.at("saved_mean").value.values, (Values{0, 0}));
  EXPECT_EQ(outputs.at("saved_inv_std").value.values, (Values{2, 2}));
  EXPECT_EQ(outputs.at("running_mean").value.values, (Values{2, 3}));
  EXPECT_EQ(outputs.at("running_var").value.values, (Values{1, 5}));
}

TEST(OracleBatchNormTest, Gradients) {
  const Tensors inputs{
      {"dY", {{2, 2, 2}, {1, 2, 1, 1, 3, 4, 1, 1}}},
      {"X", kX},
      {"scale", {{2}, {2, 1}}},
      {"saved_mean", {{2}, {4, 1}}},
      {"saved_inv_std", {{2}, {0.5, 2}}}};
  const ExpectedOutputs outputs = BatchNormalizationGrad().Run(inputs, {});
  // Channel 0: xhat = -1.5, -0.5, 0.5, 1.5. Channel 1: xhat = -2, -2, -2, 6, whose sum is 0.
  EXPECT_EQ(outputs.at("dBias").value.values, (Values{10, 4}));
  EXPECT_EQ(outputs.at("dScale").value.values, (Values{5, 0}));
  EXPECT_EQ(outputs.at("dX").value.values, (Values{0.375, 0.125, 0, 0, -0.125, -0.375, 0, 0}));
}

TEST(OracleBatchNormTest, GradientsOfAnEmptyBatch) {
  const Tensors inputs{
      {"dY", {{0, 1}, {}}},
      {"X", {{0, 1}, {}}},
      {"scale", {{1}, {2}}},
      {"saved_mean", {{1}, {4}}},
      {"saved_inv_std", {{1}, {0.5}}}};
  const ExpectedOutputs outputs = BatchNormalizationGrad().Run(inputs, {});
  EXPECT_EQ(outputs.at("dX").value.values, Values{});
  EXPECT_EQ(outputs.at("dBias").value.values, (Values{0}));
  EXPECT_EQ(outputs.at("dScale").value.values, (Values{0}));
}

TEST(OracleBatchNormTest, RefusesInputsThatDoNotFit) {
  Shapes inputs = ShapesOf(ForwardInputs());
  EXPECT_TRUE(BatchNormalization().OutputShapes(inputs, {}));
  inputs["B"] = {3};
  EXPECT_FALSE(BatchNormalization().OutputShapes(inputs, {}));
  inputs["B"] = {2};
  inputs["X"] = {2};
  EXPECT_FALSE(BatchNormalization().OutputShapes(inputs, {}));
  EXPECT_FALSE(BatchNormalizationGrad().OutputShapes({{"X", {2, 2}}, {"dY", {2, 2, 1}}}, {}));
}

TEST(OracleBatchNormTest, ExactDataHasAnExactInverseStd) {
  const Oracle& oracle = BatchNormalization();
  Random random("ExactDataHasAnExactInverseStd");
  Shapes shapes = ShapesOf(ForwardInputs());
  shapes["X"] = {4, 2, 4};
  for (const double epsilon : {0.25, 1., 3.}) {
    const Attributes attributes{{"epsilon", epsilon}, {"momentum", 0.5}};
    const ExactData data =
        oracle.MakeExactData(shapes, attributes, 0, random).value_or(ExactData());
    EXPECT_FALSE(data.inexact.contains("Y")) << epsilon;
    const ExpectedOutputs outputs = oracle.Run(data.inputs, attributes);
    for (const double value : outputs.at("saved_inv_std").value.values) {
      int exponent = 0;
      EXPECT_EQ(std::frexp(value, &exponent), 0.5) << epsilon;
    }
  }
}

TEST(OracleBatchNormTest, SaysWhatCannotBeExact) {
  Random random("SaysWhatCannotBeExact");
  Shapes shapes = ShapesOf(ForwardInputs());
  shapes["X"] = {3, 2, 5};
  const ExactData data =
      BatchNormalization().MakeExactData(shapes, {}, 0, random).value_or(ExactData());
  EXPECT_EQ(data.inexact.at("Y"), "N * prod(D) is not a power of two");
}

TEST(OracleBatchNormTest, RandomGradientsComeWithTheStatisticsOfX) {
  Random random("RandomGradientsComeWithTheStatisticsOfX");
  const Shapes shapes{
      {"dY", {2, 3, 4}},
      {"X", {2, 3, 4}},
      {"scale", {3}},
      {"saved_mean", {3}},
      {"saved_inv_std", {3}}};
  const Tensors data = BatchNormalizationGrad().MakeRandomData(shapes, {{"epsilon", 0.5}}, random);
  const ExpectedOutputs forward = BatchNormalization().Run(
      {{"X", data.at("X")}, {"scale", data.at("scale")}, {"B", data.at("scale")}},
      {{"epsilon", 0.5}});
  EXPECT_EQ(forward.at("saved_mean").value.values, data.at("saved_mean").values);
  EXPECT_EQ(forward.at("saved_inv_std").value.values, data.at("saved_inv_std").values);
}

}  // namespace
}  // namespace gradsmith::reference::batch_norm
