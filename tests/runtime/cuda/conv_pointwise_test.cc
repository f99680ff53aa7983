#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "conv/cuda/pointwise.h"
#include "runtime/cuda/conv_layer.h"

/// How gradients of convolutions of one tap are launched in one pass over dY; needs no GPU.
namespace gradsmith::conv {
namespace {

struct Layer {
  std::int64_t x_channels = 64;
  std::int64_t y_channels = 256;
  std::int64_t side = 56;
  std::int64_t taps = 1;
  std::int64_t step = 1;
  std::int64_t group = 1;
  DataType type = DataType::kMLFloat16;
};

/// MakeTask returns a layer's task in NHWC.
Task MakeTask(Primitive primitive, const Layer& layer) {
  const Axis axis = LayerAxis(layer.side, layer.taps, layer.step);
  return NhwcTask(
      primitive, layer.type, 2, {layer.x_channels, layer.y_channels, layer.group}, {axis, axis});
}

std::optional<Pointwise> PlanOf(const Layer& layer, int compute_capability = 90) {
  return PlanPointwise(
      compute_capability, MakeTask(Primitive::kBackwardData, layer),
      MakeTask(Primitive::kBackwardFilter, layer));
}

TEST(Pointwise, HasRoomForItsChannels) {
  for (const std::int64_t x : {8, 24, 64, 72, 128, 136, 256, 264}) {
    for (const std::int64_t y : {8, 40, 64, 72, 128, 136, 256, 264}) {
      const std::optional<Pointwise> plan = PlanOf({.x_channels = x, .y_channels = y});
      const bool expected =
          (x <= 64 && y <= 256) || (x <= 128 && y <= 128) || (x <= 256 && y <= 64);
      ASSERT_EQ(plan.has_value(), expected) << x << " and " << y;
      if (!plan) {
        continue;
      }
      const pointwise::KernelConfig& config = pointwise::kConfigAt[plan->config];
      EXPECT_LE(x, config.x_channels);
      EXPECT_LE(y, config.y_channels);
      EXPECT_EQ(plan->config == 0, x <= 64 && y <= 64) << "the least config that is enough";
      constexpr int kSharedOfHopper = 227 << 10;
      EXPECT_LE(config.blocks * pointwise::SharedBytes(config), kSharedOfHopper);
      EXPECT_EQ(plan->workspace(), static_cast<std::size_t>(plan->blocks * x * y) * sizeof(float));
    }
  }
}

/// Of 2 images of 56x56 positions there are 49 tiles of 128; of 300x300 more than run at once.
TEST(Pointwise, HasABlockForEachTileUpToWhatRunsAtOnce) {
  EXPECT_EQ(PlanOf({})->blocks, 49);
  EXPECT_FALSE(PlanOf({})->fills_device());
  EXPECT_EQ(PlanOf({.side = 300})->blocks, 132);
  EXPECT_TRUE(PlanOf({.side = 300})->fills_device());
  EXPECT_EQ(PlanOf({.y_channels = 64, .side = 300})->blocks, 264);
  // Warps that share the channels of x leave a row of sums each: of 40 channels both, of 32 one.
  EXPECT_EQ(PlanOf({.x_channels = 40})->sum_rows(), 98);
  EXPECT_EQ(PlanOf({.x_channels = 32})->sum_rows(), 49);
}

TEST(Pointwise, LeavesTheRestToOthers) {
  ASSERT_TRUE(PlanOf({}));
  EXPECT_TRUE(PlanOf({.type = DataType::kBFloat16}));
  EXPECT_FALSE(PlanOf({.type = DataType::kFloat}));
  EXPECT_FALSE(PlanOf({.type = DataType::kDouble}));
  EXPECT_TRUE(PlanOf({}, 100));
  for (const int of_less_memory : {75, 80, 89, 120, 121}) {
    EXPECT_FALSE(PlanOf({}, of_less_memory));
  }
  EXPECT_FALSE(PlanOf({.x_channels = 60}));
  EXPECT_FALSE(PlanOf({.y_channels = 60}));
  EXPECT_FALSE(PlanOf({.taps = 3}));
  EXPECT_FALSE(PlanOf({.step = 2}));
  EXPECT_FALSE(PlanOf({.x_channels = 64, .y_channels = 64, .group = 2}));
  const Task data = MakeTask(Primitive::kBackwardData, {});
  const Task filter = MakeTask(Primitive::kBackwardFilter, {});
  EXPECT_FALSE(PlanPointwise(90, filter, data));
  Task padded = data;
  padded.problem.axes[1].pad_begin = 1;
  EXPECT_FALSE(PlanPointwise(90, padded, filter));
  Task first = data;
  first.problem.x_strides = ContiguousStrides(DimsOf(data.problem, kX));
  EXPECT_FALSE(PlanPointwise(90, first, filter));
  Task misaligned = filter;
  misaligned.alignment.at(kX) = 8;
  EXPECT_FALSE(PlanPointwise(90, data, misaligned));
}

}  // namespace
}  // namespace gradsmith::conv
