#include "core/broadcast.h"

#include <gtest/gtest.h>

#include "gradsmith/ops.h"

namespace gradsmith::internal {
namespace {

TEST(Broadcast, DimsAreAlignedAtTheLast) {
  const Result<Dims> both_ways = BroadcastDims({{2, 1, 4}, {3, 1}});
  ASSERT_TRUE(both_ways.ok());
  EXPECT_EQ(*both_ways, (Dims{2, 3, 4}));
  EXPECT_EQ(*BroadcastDims({{}, {5}, {1, 1, 1}}), (Dims{1, 1, 5}));
  EXPECT_EQ(*BroadcastDims({{1}, {0}}), Dims{0});
  EXPECT_EQ(*BroadcastDims({{0}, {1}}), Dims{0});
  EXPECT_EQ(*BroadcastDims({{}, {}}), Dims{});
}

TEST(Broadcast, DimsThatDoNotFitAreNamed) {
  const Result<Dims> dims = BroadcastDims({{3, 1, 2}, {2, 1}, {4, 2}});
  ASSERT_FALSE(dims.ok());
  EXPECT_EQ(
      dims.status().message(),
      "dimension 1 would be both 2 and 4; expected equal dims, or 1, counted from the last");
  EXPECT_FALSE(BroadcastDims({{0}, {2}}).ok());
  EXPECT_EQ(
      BroadcastDims({{2}, {4, 3}}).status().message(),
      "dimension 1 would be both 2 and 3; expected equal dims, or 1, counted from the last");
}

TEST(Broadcast, OperatorsSayWhatDoesNotFit) {
  EXPECT_EQ(
      InferShapes(MulAttributes(), MulInputDims{.A = {2, 3}, .B = {4}}).status().message(),
      "Mul: broadcast(P, Q) with P = [2, 3] from A, Q = [4] from B: dimension 1 would be both 3 "
      "and 4; expected equal dims, or 1, counted from the last");
  const MulGradInputDims one_way = {.dY = {2, 3}, .A = {2, 1}, .B = {1}};
  EXPECT_EQ(
      InferShapes(MulGradAttributes(), one_way).status().message(),
      "MulGrad: dY has D = [2, 3]; expected [2, 1] by broadcast(P, Q), P = [2, 1] from A, Q = [1] "
      "from B");
}

TEST(Broadcast, OneWay) {
  EXPECT_TRUE(BroadcastsTo({3, 1}, {2, 3, 4}));
  EXPECT_FALSE(BroadcastsTo({2, 3, 4}, {3, 4}));
  EXPECT_FALSE(BroadcastsTo({1, 3, 4}, {3, 4}));
  EXPECT_FALSE(BroadcastsTo({3}, {1}));
}

}  // namespace
}  // namespace gradsmith::internal
