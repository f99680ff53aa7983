#include "reference/formula.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace gradsmith::reference {
namespace {

/// y = where(x > 0, alpha * x, exp(x)), and the sum of x * s over what s is broadcast to.
const FormulaNode kNodes[] = {
    {.operation = "input", .name = "x"},
    {.operation = "number", .number = 0},
    {.operation = "greater", .arguments = {0, 1}},
    {.operation = "attribute", .name = "alpha"},
    {.operation = "multiply", .arguments = {3, 0}},
    {.operation = "exp", .arguments = {0}},
    {.operation = "where", .arguments = {2, 4, 5}},
    {.operation = "input", .name = "s"},
    {.operation = "multiply", .arguments = {0, 7}},
};

FormulaOracle Oracle() {
  return FormulaOracle({
      .nodes = kNodes,
      .outputs = {{.name = "y", .node = 6}, {.name = "t", .node = 8, .sum_like = "s"}},
      .broadcast = {"s"},
  });
}

TEST(FormulaOracle, ComputesSelectsAndSums) {
  const Tensors inputs = {
      {"x", {{2, 3}, {1, -2, 3, -4, 5, -6}}},
      {"s", {{3}, {10, 100, 1000}}},
  };
  const ExpectedOutputs outputs = Oracle().Run(inputs, {{"alpha", 0.5}});
  const Expected& y = outputs.find("y")->second;
  EXPECT_EQ(y.value.dims, (Shape{2, 3}));
  EXPECT_EQ(
      y.value.values,
      (std::vector<double>{0.5, std::exp(-2.0), 1.5, std::exp(-4.0), 2.5, std::exp(-6.0)}));
  // Counted in halves, and rounded once; an exponential is off by a few units in the last place.
  EXPECT_EQ(y.bound[2], 3);
  EXPECT_EQ(y.error[2], 1.5);
  EXPECT_GT(y.error[1], 2 * y.value.values[1]);
  const Expected& t = outputs.find("t")->second;
  EXPECT_EQ(t.value.values, (std::vector<double>{10 - 40, -200 + 500, 3000 - 6000}));
  EXPECT_EQ(t.terms, (std::vector<double>{2, 2, 2}));
  EXPECT_EQ(t.bound[0], 50);
}

TEST(FormulaOracle, ReadsTheBitOfAPlace) {
  constexpr FormulaNode kBit[] = {{.operation = "bit", .name = "mask"}};
  const FormulaOracle oracle({
      .nodes = kBit,
      .outputs = {{.name = "y", .node = 0}},
      .bits = {"mask"},
  });
  const Tensors inputs = {
      {"mask", {{2}, {2147483649, 2}}},
      {"x", {{17, 2}, std::vector<double>(34)}},
  };
  std::vector<double> expected(34);
  expected[0] = expected[31] = expected[33] = 1;
  EXPECT_EQ(oracle.Run(inputs, {}).find("y")->second.value.values, expected);
}

TEST(FormulaOracle, KnowsWhichValueAnEnumHas) {
  const FormulaNode node = {.operation = "chosen", .name = "reduction", .value = "sum"};
  EXPECT_EQ(LeafOf(node, {{"reduction", std::string("sum")}}, 0).value, 1);
  EXPECT_EQ(LeafOf(node, {{"reduction", std::string("mean")}}, 0).value, 0);
}

TEST(FormulaOracle, WhatIsNotSelectedDoesNoHarm) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensors inputs = {{"x", {{1, 1}, {infinity}}}, {"s", {{1}, {1}}}};
  const ExpectedOutputs outputs = Oracle().Run(inputs, {{"alpha", 2.0}});
  EXPECT_EQ(outputs.find("y")->second.value.values[0], infinity);
}

TEST(FormulaOracle, KnowsWhatFitsTogetherAndWhatIsExact) {
  const FormulaOracle oracle = Oracle();
  EXPECT_FALSE(oracle.OutputShapes({{"x", {2, 3}}, {"s", {2}}}, {}));
  EXPECT_FALSE(oracle.OutputShapes({{"x", {1, 3}}, {"s", {2, 3}}}, {}));
  EXPECT_TRUE(oracle.OutputShapes({{"x", {2, 3}}, {"s", {2, 1}}}, {}));
  EXPECT_EQ(oracle.InexactOutputs(), (std::set<std::string>{"y"}));
}

TEST(FormulaOracle, InputsThatAreJoinedBroadcastToEachOther) {
  const FormulaOracle oracle({
      .nodes = kNodes,
      .outputs = {{.name = "t", .node = 8}, {.name = "u", .node = 8, .sum_like = "x"}},
      .broadcast = {"x", "s"},
      .joined = {"x", "s"},
  });
  const Tensors inputs = {{"x", {{1, 3}, {1, 2, 3}}}, {"s", {{2, 1}, {10, 100}}}};
  const ExpectedOutputs outputs = oracle.Run(inputs, {{"alpha", 1.0}});
  EXPECT_EQ(
      outputs.find("t")->second.value.values, (std::vector<double>{10, 20, 30, 100, 200, 300}));
  EXPECT_EQ(outputs.find("u")->second.value.values, (std::vector<double>{110, 220, 330}));
  EXPECT_EQ(oracle.OutputShapes({{"x", {1}}, {"s", {0}}}, {})->find("t")->second, Shape{0});
  EXPECT_FALSE(oracle.OutputShapes({{"x", {3}}, {"s", {2}}}, {}));
}

TEST(FormulaOracle, DataKeepAwayFromWhereFormulasBend) {
  Random random("bend");
  const Tensors data =
      Oracle().MakeRandomData({{"x", {4, 50}}, {"s", {50}}}, {{"alpha", 0.5}}, random);
  for (const double x : data.find("x")->second.values) {
    EXPECT_GE(std::abs(x), 0.125);
  }
}

}  // namespace
}  // namespace gradsmith::reference
