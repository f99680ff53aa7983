#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/decision_cache.h"
#include "gradsmith/cache.h"
#include "runtime/cuda/op_problems.h"

/// Gradients that are computed in one pass over dY.
namespace gradsmith::cuda {
namespace {

using internal::DecisionCache;
using internal::StoredDecision;

/// The choice for two gradients together, where one is remembered.
std::optional<StoredDecision> Together() {
  for (const StoredDecision& stored : DecisionCache::Named(std::nullopt).Entries()) {
    if (stored.problem.find(" and backward-filter") != std::string::npos) {
      return stored;
    }
  }
  return std::nullopt;
}

/// A convolution, and what computes its gradients in one pass.
struct Problem {
  ConvShape shape;
  std::string id;
};

Problem ByPointwise(ConvShape shape) {
  return {std::move(shape), "in one pass: own/pointwise"};
}

/// ByDepthwiseTiles returns a problem of 2 images.
Problem ByDepthwiseTiles(
    std::int64_t channels,
    std::int64_t height,
    std::int64_t width,
    std::int64_t side) {
  const std::int64_t pad = side / 2;
  return {
      {.name = "depthwise",
       .x = {2, channels, height, width},
       .w = {channels, 1, side, side},
       .pads = {pad, pad, pad, pad},
       .group = channels},
      "in one pass: own/depthwise-tiles"};
}

/// By steps of two; `pads` are those at the begin of both axes, and those at the end.
Problem ByFirstLayers(
    std::string name,
    Sizes x,
    std::int64_t y_channels,
    std::array<std::int64_t, 2> taps,
    IntList pads) {
  return {
      ConvBySteps(2, std::move(name), std::move(x), y_channels, taps, std::move(pads)),
      "in one pass: own/first-layers"};
}

/// 3x3 with a pad of one around.
Problem ByGrouped(std::string name, Sizes x, std::int64_t group_channels) {
  const std::int64_t channels = x[1];
  return {
      {.name = std::move(name),
       .x = std::move(x),
       .w = {channels, group_channels, 3, 3},
       .pads = {1, 1, 1, 1},
       .group = channels / group_channels},
      "in one pass: own/grouped"};
}

/// How two gradients go together is remembered, and few kernels are tried before it is.
ContextOptions QuicklyChosen() {
  ContextOptions options = OnGpu();
  options.first_choice_seconds = 1e-6;
  return options;
}

void Choose(const std::string& id) {
  std::optional<StoredDecision> together = Together();
  ASSERT_TRUE(together) << RecentChoices(8);
  together->decision.id = id;
  DecisionCache::Named(std::nullopt).Add({*together});
}

/// Enqueued in the first run, recorded in the second, and launched as recorded in the third.
void RunOften(const OpCall& call, const Context& context, int runs) {
  for (int run = 0; run < runs; ++run) {
    SCOPED_TRACE(call.Describe() + ", run " + std::to_string(run));
    call.ResetOutputs();
    const Status status = call.Run(context);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_TRUE(Synchronize(context).ok());
    call.ExpectResults("in one pass");
  }
}

/// Channels of every configuration, also where they fill neither it nor a multiple of 16; tiles
/// that are not full, and several for a block.
std::vector<Problem> ProblemsOfAllConfigs() {
  return {
      ByPointwise({.name = "8 to 8", .x = {1, 8, 3, 5}, .w = {8, 8, 1, 1}}),
      ByPointwise({.name = "64 to 64", .x = {2, 64, 16, 8}, .w = {64, 64, 1, 1}}),
      ByPointwise({.name = "24 to 40, 1-d", .x = {3, 24, 131}, .w = {40, 24, 1}}),
      ByPointwise({.name = "40 to 136", .x = {2, 40, 7, 13}, .w = {136, 40, 1, 1}}),
      ByPointwise({.name = "64 to 256", .x = {1, 64, 17, 9}, .w = {256, 64, 1, 1}}),
      ByPointwise({.name = "128 to 104, 3-d", .x = {2, 128, 3, 5, 7}, .w = {104, 128, 1, 1, 1}}),
      ByPointwise({.name = "248 to 56", .x = {2, 248, 9, 11}, .w = {56, 248, 1, 1}}),
      ByPointwise({.name = "136 to 8", .x = {1, 136, 11, 19}, .w = {8, 136, 1, 1}}),
      ByPointwise({.name = "tiles for a block", .x = {1, 8, 190, 190}, .w = {16, 8, 1, 1}}),
      ByFirstLayers("7x7 to 64, tiles in a row", {2, 3, 37, 52}, 64, {7, 7}, {3, 3, 3, 3}),
      ByFirstLayers("7x7 to 64, seven steps", {70, 1, 52, 3}, 64, {7, 7}, {3, 3, 3, 3}),
      ByFirstLayers("5x5 to 32, five steps", {90, 1, 40, 3}, 32, {5, 5}, {1, 3, 0, 2}),
      ByFirstLayers(
          "5x5 to 40, rows that no tap reaches", {1, 1, 20, 17}, 40, {5, 5}, {0, 0, 0, 0}),
      ByFirstLayers("3x3 to 40, five steps", {100, 3, 36, 3}, 40, {3, 3}, {1, 1, 1, 1}),
      ByFirstLayers("7x2 to 8, pads that differ, strips", {1, 2, 9, 235}, 8, {7, 2}, {2, 1, 4, 0}),
      ByFirstLayers("works for a block", {140, 1, 2, 3}, 8, {2, 2}, {0, 0, 0, 0}),
      ByGrouped("fours, a slab and a part of one", {2, 80, 13, 9}, 4),
      ByGrouped("twos, images in a block", {9, 32, 3, 4}, 2),
      ByGrouped("eights, strips", {1, 48, 3, 110}, 8),
      ByGrouped("sixteens, slabs", {2, 80, 7, 10}, 16),
      ByDepthwiseTiles(8, 3, 5, 3),
      ByDepthwiseTiles(40, 28, 17, 3),
      ByDepthwiseTiles(32, 30, 35, 5),
      ByDepthwiseTiles(72, 14, 14, 7),
      ByDepthwiseTiles(16, 4, 4, 7),
      ByDepthwiseTiles(8, 150, 150, 3)};
}

class CudaConvOnePass : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    ASSERT_TRUE(ClearCache().ok());
    SetWarningHandler([&](const std::string& sentence) { warnings_ += sentence + "\n"; });
  }
  void TearDown() override {
    SetWarningHandler(nullptr);
    EXPECT_EQ(warnings_, "");
  }

  std::string warnings_;
};

TEST_F(CudaConvOnePass, EveryFormComputesTheSame) {
  Random random("cuda one pass");
  const Context context(QuicklyChosen());
  int number = 0;
  for (const auto& [shape, id] : ProblemsOfAllConfigs()) {
    // Where a call takes seconds, types and outputs that share a kernel's code take turns.
    const bool is_thorough = !IsEmulated() || number++ % 8 == 0;
    for (const DataType type : {DataType::kMLFloat16, DataType::kBFloat16, DataType::kFloat}) {
      const bool is_depthwise = shape.group > 1 && shape.group == shape.x[1];
      if (type == DataType::kFloat && !is_depthwise) {
        continue;  // in 16 bits alone
      }
      for (const bool with_bias : {true, false}) {
        const bool is_first = with_bias && type == DataType::kMLFloat16;
        if (!is_thorough && !is_first) {
          continue;
        }
        if (!with_bias && type != DataType::kMLFloat16) {
          continue;  // the same kernels, in every type
        }
        ASSERT_TRUE(ClearCache().ok());
        OpCall call = MakeConvGrad(shape, type, Layout::kChannelsLast, random);
        if (!with_bias) {
          call.outputs[2] = nullptr;
        }
        ASSERT_TRUE(call.Run(context.ForPreparing()).ok());
        ASSERT_NO_FATAL_FAILURE(Choose(id));
        ASSERT_NO_FATAL_FAILURE(RunOften(call, context, is_thorough ? 3 : 1));
        ASSERT_TRUE(Together());
        EXPECT_EQ(Together()->decision.id, id) << "forgotten";
      }
    }
  }
}

/// Integers, so that every sum is exact, are added to what is there.
TEST_F(CudaConvOnePass, AddsToWhatIsThere) {
  Random random("cuda one pass accumulate");
  const Context context(QuicklyChosen());
  const std::vector<Problem> problems = {
      ByPointwise({.name = "1x1", .x = {1, 40, 9, 15}, .w = {72, 40, 1, 1}}),
      ByFirstLayers("rows of whole pairs", {2, 3, 13, 22}, 40, {7, 7}, {3, 3, 3, 3}),
      ByFirstLayers("rows of single elements", {2, 3, 13, 21}, 40, {5, 3}, {2, 1, 2, 1}),
      ByGrouped("fours", {2, 32, 9, 7}, 4),
      ByGrouped("sixteens", {2, 32, 5, 9}, 16),
      ByDepthwiseTiles(40, 9, 7, 3)};
  Turns turns(2);  // of two types, which share their code
  for (const auto& [shape, id] : problems) {
    turns.Next();  // each problem begins with the other type
    for (const DataType type : {DataType::kMLFloat16, DataType::kBFloat16}) {
      if (!turns.Next()) {
        continue;
      }
      ASSERT_TRUE(ClearCache().ok());
      OpCall call = MakeConvGrad(shape, type, Layout::kChannelsLast, random);
      call.FillInputsWithIntegers(random, -1, 1);
      for (const TensorPointer& output : call.outputs) {
        output->Fill([&] { return static_cast<double>(random.Integer(-8, 8)); });
      }
      const std::vector<std::vector<double>> gradients = call.Expected();
      ASSERT_TRUE(call.Run(context, true).ok());
      ASSERT_NO_FATAL_FAILURE(Choose(id));
      for (int run = 0; run < 3; ++run) {
        call.ResetOutputs();
        ASSERT_TRUE(call.Run(context, true).ok());
        ASSERT_TRUE(Synchronize(context).ok());
        for (std::size_t i = 0; i < call.outputs.size(); ++i) {
          const std::vector<double> before = call.outputs[i]->HostValues();
          const std::vector<double> after = call.outputs[i]->GpuValues();
          for (std::size_t j = 0; j < after.size(); ++j) {
            ASSERT_EQ(after[j], before[j] + gradients[i][j]) << "output " << i << ", element " << j;
          }
          EXPECT_TRUE(call.outputs[i]->SurroundingsIntact());
        }
      }
      EXPECT_EQ(Together()->decision.id, id) << "forgotten";
    }
  }
}

/// Of dX, a large number, one, and one that is there: as two roundings would take none of the ones.
TEST_F(CudaConvOnePass, WhatIsAddedToIsRoundedOnce) {
  Random random("cuda one pass round once");
  const Context context(QuicklyChosen());
  // Of one tap all channels of y are summed, of groups two channels, of depthwise two pixels.
  const std::vector<Problem> problems = {
      ByPointwise({.name = "a pixel", .x = {1, 8, 1, 1}, .w = {8, 8, 1, 1}}),
      ByFirstLayers("a position", {1, 1, 2, 2}, 8, {2, 2}, {0, 0, 0, 0}),
      ByGrouped("a pixel of twos", {1, 16, 1, 1}, 2), ByDepthwiseTiles(8, 1, 2, 3)};
  for (const auto& [shape, id] : problems) {
    for (const DataType type : {DataType::kMLFloat16, DataType::kBFloat16}) {
      ASSERT_TRUE(ClearCache().ok());
      const double large =
          type == DataType::kMLFloat16 ? 2048 : 256;  // the next one is by 2 larger
      const bool has_groups = shape.group > 1;
      OpCall call = MakeConvGrad(shape, type, Layout::kChannelsLast, random);
      int element = 0;  // in the order of dims: channel by channel, of each its pixels
      call.inputs[0]->Fill([&] {
        const int place = has_groups ? element % 2 : element;
        ++element;
        return place == 0 ? large : (place == 1 ? 1.0 : 0.0);
      });
      call.inputs[2]->Fill([] { return 1.0; });
      call.outputs[0]->Fill([] { return 1.0; });
      ASSERT_TRUE(call.Run(context, true).ok());
      ASSERT_NO_FATAL_FAILURE(Choose(id));
      call.ResetOutputs();
      ASSERT_TRUE(call.Run(context, true).ok());
      ASSERT_TRUE(Synchronize(context).ok());
      for (const double value : call.outputs[0]->GpuValues()) {
        EXPECT_EQ(value, large + 2) << id;
      }
      EXPECT_EQ(Together()->decision.id, id) << "forgotten";
    }
  }
}

/// Without a search it is what large tensors get, and a call that wants one gradient does not.
TEST_F(CudaConvOnePass, IsTheFirstChoiceOfLargeTensors) {
  Random random("cuda one pass first choice");
  const Context context(OnGpu());
  struct Sized {
    Problem problem;
    bool is_large;
  };
  const std::vector<Sized> problems = {
      {ByPointwise({.name = "1x1", .x = {2, 16, 96, 96}, .w = {8, 16, 1, 1}}), true},
      {ByPointwise({.name = "1x1", .x = {2, 16, 12, 12}, .w = {8, 16, 1, 1}}), false},
      {ByDepthwiseTiles(64, 192, 192, 3), true},
      {ByDepthwiseTiles(64, 12, 12, 3), false}};
  for (const auto& [problem, is_large] : problems) {
    const bool takes_a_minute = is_large && problem.shape.group > 1;
    if (takes_a_minute && IsEmulated()) {
      continue;
    }
    ASSERT_TRUE(ClearCache().ok());
    OpCall call = MakeConvGrad(problem.shape, DataType::kMLFloat16, Layout::kChannelsLast, random);
    ASSERT_NO_FATAL_FAILURE(RunOften(call, context, 3));
    ASSERT_EQ(Together().has_value(), is_large) << RecentChoices(8);
    if (is_large) {
      EXPECT_EQ(Together()->decision.id, problem.id);
      EXPECT_EQ(Together()->decision.mode, SearchMode::kHeuristic);
    }
    ASSERT_TRUE(ClearCache().ok());
    call.outputs[0] = nullptr;
    ASSERT_NO_FATAL_FAILURE(RunOften(call, context, 3));
    EXPECT_FALSE(Together()) << RecentChoices(8);
  }
}

}  // namespace
}  // namespace gradsmith::cuda
