#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "conv/cuda/images.h"
#include "conv/cuda/one_pass.h"
#include "runtime/cuda/conv_layer.h"

/// How gradients of first layers are launched in one pass over dY; needs no GPU.
namespace gradsmith::conv {
namespace {

struct Layer {
  std::int64_t batch = 128;
  std::int64_t x_channels = 3;
  std::int64_t y_channels = 64;
  std::int64_t group = 1;
  std::array<std::int64_t, 2> x = {224, 224};
  std::int64_t taps = 7;
  std::int64_t pad = 3;
  std::int64_t step = 2;
  std::int64_t dilation = 1;
  DataType type = DataType::kMLFloat16;
};

/// In NHWC.
std::optional<Images> PlanOf(const Layer& layer, int compute_capability = 90) {
  return PlanImages(
      compute_capability, TaskOf(Primitive::kBackwardData, layer),
      TaskOf(Primitive::kBackwardFilter, layer));
}

/// An image for each of 128 blocks, whose rows fill seven tiles.
TEST(Images, SharesTheFirstLayerOfResNet) {
  const std::optional<Images> plan = PlanOf({});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->blocks, 128);
  EXPECT_EQ(plan->arguments.strip, 112);
  EXPECT_EQ(plan->arguments.segment, 112);
  EXPECT_EQ(plan->workspace(), std::size_t{128} * 64 * 7 * 7 * 3 * sizeof(float));
}

/// A pair of pixels meets positions before and behind its own, as far as taps and pads reach.
TEST(Images, KnowsWhatPixelsMeet) {
  struct Reach {
    std::int64_t taps;
    std::int64_t pad;
    int begin;
    int window;
  };
  for (const Reach reach :
       {Reach{7, 3, -1, 4}, Reach{5, 0, -2, 3}, Reach{5, 2, -1, 3}, Reach{4, 1, -1, 3},
        Reach{3, 1, 0, 2}, Reach{3, 0, -1, 2}, Reach{2, 0, 0, 2}, Reach{2, 1, 0, 2}}) {
    const std::optional<Images> plan = PlanOf({.taps = reach.taps, .pad = reach.pad});
    ASSERT_TRUE(plan) << reach.taps << ", " << reach.pad;
    EXPECT_EQ(plan->arguments.begin[0], reach.begin) << reach.taps << ", " << reach.pad;
    EXPECT_EQ(plan->arguments.begin[1], reach.begin);
    EXPECT_EQ(images::kFormAt[plan->form].window, reach.window);
    EXPECT_EQ(images::kFormAt[plan->form].channels, 64);
  }
}

/// So that blocks end soonest: few images are cut into segments of rows, wide ones into strips.
TEST(Images, CutsImagesWhereThereAreFew) {
  const std::optional<Images> one = PlanOf({.batch = 1});
  ASSERT_TRUE(one);
  EXPECT_EQ(one->arguments.segment, images::kRows);
  EXPECT_EQ(one->blocks, 28);
  const std::optional<Images> wide = PlanOf({.batch = 2, .x = {8, 500}});
  ASSERT_TRUE(wide);
  EXPECT_EQ(wide->arguments.strip, 96);
  EXPECT_EQ(wide->arguments.works, 6);
  const std::optional<Images> many = PlanOf({.batch = 1000});
  ASSERT_TRUE(many);
  EXPECT_EQ(many->blocks, 132);
  // Of three taps two warps have each row, and take turns.
  EXPECT_EQ(PlanOf({.taps = 3, .pad = 1})->arguments.turns, 2);
}

TEST(Images, HasRoomForItsForms) {
  constexpr int kSharedOfHopper = 227 << 10;
  for (const images::Form& form : images::kFormAt) {
    EXPECT_LE(images::SharedBytes(form), kSharedOfHopper);
  }
  EXPECT_EQ(images::kFormAt[PlanOf({.y_channels = 32})->form].channels, 32);
  EXPECT_EQ(images::kFormAt[PlanOf({.y_channels = 40})->form].channels, 64);
}

/// Of 2^20 elements of dY or more, without a search.
TEST(Images, ComesFirstWhereTensorsAreLarge) {
  for (const std::int64_t batch : {1, 2}) {
    const Layer layer = {.batch = batch};
    const OnePass one_pass = OnePassOf(
        90, TaskOf(Primitive::kBackwardData, layer), TaskOf(Primitive::kBackwardFilter, layer));
    EXPECT_EQ(one_pass.id, kImages);
    EXPECT_EQ(one_pass.is_promising, batch == 2);
  }
}

TEST(Images, LeavesTheRestToOthers) {
  ASSERT_TRUE(PlanOf({}));
  EXPECT_TRUE(PlanOf({.type = DataType::kBFloat16}));
  EXPECT_FALSE(PlanOf({.type = DataType::kFloat}));
  EXPECT_TRUE(PlanOf({}, 100));
  for (const int of_less_memory : {75, 80, 89, 120, 121}) {
    EXPECT_FALSE(PlanOf({}, of_less_memory));
  }
  EXPECT_TRUE(PlanOf({.x_channels = 1}));
  EXPECT_FALSE(PlanOf({.x_channels = 4}));
  EXPECT_FALSE(PlanOf({.y_channels = 60}));
  EXPECT_FALSE(PlanOf({.y_channels = 72}));
  EXPECT_FALSE(PlanOf({.x_channels = 2, .group = 2}));
  EXPECT_FALSE(PlanOf({.step = 1}));
  EXPECT_FALSE(PlanOf({.step = 3}));
  EXPECT_FALSE(PlanOf({.taps = 3, .pad = 2, .dilation = 2}));
  EXPECT_FALSE(PlanOf({.taps = 8}));
  EXPECT_FALSE(PlanOf({.taps = 1, .pad = 0}));
  EXPECT_FALSE(PlanOf({.batch = 0}));
  EXPECT_FALSE(PlanOf({.batch = 1 << 13}));
  EXPECT_FALSE(PlanOf({.batch = 1, .x = {4, std::int64_t{1} << 26}, .taps = 2, .pad = 0}));
  // A position's own row is not among those that its pixels meet.
  EXPECT_FALSE(PlanOf({.taps = 2, .pad = 3}));
  const Task data = TaskOf(Primitive::kBackwardData, Layer());
  const Task filter = TaskOf(Primitive::kBackwardFilter, Layer());
  EXPECT_FALSE(PlanImages(90, filter, data));
  Task first = data;
  first.problem.x_strides = ContiguousStrides(DimsOf(data.problem, kX));
  EXPECT_FALSE(PlanImages(90, first, filter));
  Task misaligned = filter;
  misaligned.alignment.at(kY) = 8;
  EXPECT_FALSE(PlanImages(90, data, misaligned));
}

}  // namespace
}  // namespace gradsmith::conv
