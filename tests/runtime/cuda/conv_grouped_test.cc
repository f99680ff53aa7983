#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "conv/cuda/grouped.h"
#include "conv/cuda/one_pass.h"
#include "runtime/cuda/conv_layer.h"

/// How gradients of convolutions of narrow groups are launched in one pass over dY; needs no GPU.
namespace gradsmith::conv {
namespace {

struct Layer {
  std::int64_t batch = 128;
  std::int64_t channels = 128;
  std::int64_t group = 32;
  std::int64_t height = 56;
  std::int64_t width = 56;
  std::int64_t taps = 3;
  std::int64_t step = 1;
  std::int64_t dilation = 1;
  std::int64_t pad = 1;
  DataType type = DataType::kMLFloat16;
};

/// MakeTask returns a layer's task in NHWC.
Task MakeTask(Primitive primitive, const Layer& layer) {
  std::vector<Axis> axes;
  for (const std::int64_t x : {layer.height, layer.width}) {
    axes.push_back(LayerAxis(x, layer.taps, layer.step, layer.dilation, layer.pad));
  }
  return NhwcTask(
      primitive, layer.type, layer.batch, {layer.channels, layer.channels, layer.group}, axes);
}

std::optional<Grouped> PlanOf(const Layer& layer, int compute_capability = 90) {
  return PlanGrouped(
      compute_capability, MakeTask(Primitive::kBackwardData, layer),
      MakeTask(Primitive::kBackwardFilter, layer));
}

/// Three blocks on each of 132 multiprocessors, for two slabs of channels.
TEST(Grouped, HasAsManyBlocksAsRunAtOnce) {
  const std::optional<Grouped> plan = PlanOf({});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->slabs, 2);
  EXPECT_EQ(plan->blocks, 198);
  EXPECT_EQ(plan->workspace(), std::size_t{198} * 128 * 4 * 9 * sizeof(float));
  EXPECT_EQ(plan->arguments.strips, 1);
  EXPECT_EQ(plan->arguments.all_bands, 128 * 28);
  // A band is of two rows, and a block has four bands at least.
  EXPECT_EQ(PlanOf({.batch = 3, .height = 5, .width = 6})->blocks, 3);
  EXPECT_EQ(PlanOf({.batch = 1, .height = 1, .width = 1})->blocks, 1);
  EXPECT_EQ(PlanOf({.channels = 64 * 500, .group = 64 * 125})->blocks, 1);
}

TEST(Grouped, CutsRowsIntoStripsThatAreAlike) {
  constexpr int kSharedOfHopper = 227 << 10;
  struct Cut {
    std::int64_t width;
    int strips;
    int eights;
  };
  for (const Cut cut :
       {Cut{1, 1, 1}, Cut{56, 1, 7}, Cut{57, 2, 4}, Cut{112, 2, 7}, Cut{131, 3, 6}}) {
    const std::optional<Grouped> plan = PlanOf({.width = cut.width});
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->arguments.strips, cut.strips) << cut.width;
    EXPECT_EQ(plan->arguments.eights, cut.eights) << cut.width;
    EXPECT_LE(3 * grouped::SharedBytes(plan->arguments.eights), kSharedOfHopper);
  }
}

TEST(Grouped, TakesGroupsThatFillASlice) {
  for (const std::int64_t group_channels : {1, 2, 3, 4, 8, 16, 32}) {
    const std::optional<Grouped> plan = PlanOf({.channels = 96, .group = 96 / group_channels});
    const bool expected = group_channels > 1 && 16 % group_channels == 0;
    ASSERT_EQ(plan.has_value(), expected) << group_channels;
    if (plan) {
      EXPECT_EQ(plan->is_narrow(), group_channels <= 8);
    }
  }
  EXPECT_TRUE(PlanOf({.channels = 16, .group = 4}));
  EXPECT_FALSE(PlanOf({.channels = 24, .group = 6}));
  EXPECT_FALSE(PlanOf({.channels = 16, .group = 1}));
}

/// From 4 million elements of dY on it comes first without a search.
TEST(Grouped, ComesFirstWhereTensorsAreLarge) {
  for (const std::int64_t batch : {10, 11}) {
    const Layer layer = {.batch = batch};
    const OnePass one_pass = OnePassOf(
        90, MakeTask(Primitive::kBackwardData, layer), MakeTask(Primitive::kBackwardFilter, layer));
    EXPECT_EQ(one_pass.id, kGrouped);
    EXPECT_EQ(one_pass.is_promising, batch == 11);
  }
}

TEST(Grouped, LeavesTheRestToOthers) {
  ASSERT_TRUE(PlanOf({}));
  EXPECT_TRUE(PlanOf({.type = DataType::kBFloat16}));
  EXPECT_FALSE(PlanOf({.type = DataType::kFloat}));
  EXPECT_FALSE(PlanOf({.type = DataType::kDouble}));
  EXPECT_TRUE(PlanOf({}, 100));
  for (const int of_less_memory : {75, 80, 89, 120, 121}) {
    EXPECT_FALSE(PlanOf({}, of_less_memory));
  }
  EXPECT_FALSE(PlanOf({.taps = 5, .pad = 2}));
  EXPECT_FALSE(PlanOf({.step = 2}));
  EXPECT_FALSE(PlanOf({.dilation = 2, .pad = 2}));
  EXPECT_FALSE(PlanOf({.pad = 0}));
  EXPECT_FALSE(PlanOf({.batch = 0}));
  EXPECT_FALSE(PlanOf({.batch = 1 << 13}));
  const Task data = MakeTask(Primitive::kBackwardData, {});
  const Task filter = MakeTask(Primitive::kBackwardFilter, {});
  EXPECT_FALSE(PlanGrouped(90, filter, data));
  Task wider = data;
  wider.problem.y_channels = 256;
  EXPECT_FALSE(PlanGrouped(90, wider, filter));
  Task shifted = data;
  shifted.problem.axes[1].pad_begin = 2;
  EXPECT_FALSE(PlanGrouped(90, shifted, filter));
  Task first = data;
  first.problem.x_strides = ContiguousStrides(DimsOf(data.problem, kX));
  EXPECT_FALSE(PlanGrouped(90, first, filter));
  Task misaligned = filter;
  misaligned.alignment.at(kX) = 8;
  EXPECT_FALSE(PlanGrouped(90, data, misaligned));
}

}  // namespace
}  // namespace gradsmith::conv
