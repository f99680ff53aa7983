// Compiled alone: its namespaces see what each other declares.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "conv/cuda/first_layers.h"
#include "conv/cuda/one_pass.h"
#include "conv/cuda/sharing_plan.h"
#include "gradsmith/cache.h"
#include "runtime/cuda/conv_layer.h"
#include "runtime/cuda/primitive_call.h"
#include "support/turns.h"

/// Gradients of first layers: how they are launched in one pass over dY, or the filter's alone,
/// without a GPU, and what the latter computes, run by name.
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

/// PlanOf returns the plan of a layer in NHWC.
std::optional<FirstLayers> PlanOf(const Layer& layer, int compute_capability = 90) {
  return PlanFirstLayers(
      compute_capability, TaskOf(Primitive::kBackwardData, layer),
      TaskOf(Primitive::kBackwardFilter, layer));
}

/// An image for each of 128 blocks, whose rows fill seven tiles.
TEST(FirstLayers, SharesTheFirstLayerOfResNet) {
  const std::optional<FirstLayers> plan = PlanOf({});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->blocks, 128);
  EXPECT_EQ(plan->arguments.strip, 112);
  EXPECT_EQ(plan->arguments.segment, 112);
  EXPECT_EQ(plan->workspace(), std::size_t{128} * 64 * 7 * 7 * 3 * sizeof(float));
}

/// A pair of pixels meets positions before and behind its own, as far as taps and pads reach.
TEST(FirstLayers, KnowsWhatPixelsMeet) {
  struct Reach {
    std::int64_t taps;
    std::int64_t pad;
    int begin;
    int window;
  };
  for (const Reach reach :
       {Reach{7, 3, -1, 4}, Reach{5, 0, -2, 3}, Reach{5, 2, -1, 3}, Reach{4, 1, -1, 3},
        Reach{3, 1, 0, 2}, Reach{3, 0, -1, 2}, Reach{2, 0, 0, 2}, Reach{2, 1, 0, 2}}) {
    const std::optional<FirstLayers> plan = PlanOf({.taps = reach.taps, .pad = reach.pad});
    ASSERT_TRUE(plan) << reach.taps << ", " << reach.pad;
    EXPECT_EQ(plan->arguments.begin[0], reach.begin) << reach.taps << ", " << reach.pad;
    EXPECT_EQ(plan->arguments.begin[1], reach.begin);
    EXPECT_EQ(first_layers::kConfigAt[plan->config].window, reach.window);
    EXPECT_EQ(first_layers::kConfigAt[plan->config].channels, 64);
  }
}

/// So that blocks end soonest: few images are cut into segments of rows, wide ones into strips.
TEST(FirstLayers, CutsImagesWhereThereAreFew) {
  const std::optional<FirstLayers> one = PlanOf({.batch = 1});
  ASSERT_TRUE(one);
  EXPECT_EQ(one->arguments.segment, first_layers::kRows);
  EXPECT_EQ(one->blocks, 28);
  const std::optional<FirstLayers> wide = PlanOf({.batch = 2, .x = {8, 500}});
  ASSERT_TRUE(wide);
  EXPECT_EQ(wide->arguments.strip, 96);
  EXPECT_EQ(wide->arguments.works, 6);
  const std::optional<FirstLayers> many = PlanOf({.batch = 1000});
  ASSERT_TRUE(many);
  EXPECT_EQ(many->blocks, 132);
  // Of three taps two warps have each row, and take turns.
  EXPECT_EQ(PlanOf({.taps = 3, .pad = 1})->arguments.turns, 2);
}

TEST(FirstLayers, HasRoomForItsForms) {
  constexpr int kSharedOfHopper = 227 << 10;
  for (const first_layers::KernelConfig& config : first_layers::kConfigAt) {
    EXPECT_LE(first_layers::SharedBytes(config), kSharedOfHopper);
  }
  EXPECT_EQ(first_layers::kConfigAt[PlanOf({.y_channels = 32})->config].channels, 32);
  EXPECT_EQ(first_layers::kConfigAt[PlanOf({.y_channels = 40})->config].channels, 64);
}

/// From 2^20 elements of dY on it comes first without a search.
TEST(FirstLayers, ComesFirstWhereTensorsAreLarge) {
  for (const std::int64_t batch : {1, 2}) {
    const Layer layer = {.batch = batch};
    const OnePass one_pass = OnePassOf(
        90, TaskOf(Primitive::kBackwardData, layer), TaskOf(Primitive::kBackwardFilter, layer));
    EXPECT_EQ(one_pass.id, kFirstLayers);
    EXPECT_EQ(one_pass.is_promising, batch == 2);
  }
}

TEST(FirstLayers, LeavesTheRestToOthers) {
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
  EXPECT_FALSE(PlanFirstLayers(90, filter, filter));
  EXPECT_FALSE(PlanFirstLayers(90, data, data));
  Task first = data;
  first.problem.x_strides = ContiguousStrides(DimsOf(data.problem, kX));
  EXPECT_FALSE(PlanFirstLayers(90, first, filter));
  Task misaligned = filter;
  misaligned.alignment.at(kY) = 8;
  EXPECT_FALSE(PlanFirstLayers(90, data, misaligned));
}

/// The filter's gradient alone.
std::optional<FirstLayers> FilterPlanOf(const Layer& layer, int compute_capability = 90) {
  return PlanFirstLayersFilter(compute_capability, TaskOf(Primitive::kBackwardFilter, layer));
}

/// Half an image for each of two blocks of 128 multiprocessors.
TEST(FirstLayersFilter, SharesTheFirstLayerOfResNet) {
  const std::optional<FirstLayers> plan = FilterPlanOf({});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->blocks, 256);
  EXPECT_EQ(plan->tiles, 1);
  EXPECT_EQ(plan->arguments.segment, 56);
  EXPECT_EQ(plan->arguments.turns, 1);
  EXPECT_EQ(plan->arguments.begin[0], 0);
  EXPECT_EQ(plan->arguments.begin[1], 0);
  EXPECT_EQ(plan->workspace(), std::size_t{256} * 64 * 7 * 7 * 3 * sizeof(float));
}

/// Positions are those of y, whatever x has beside them.
TEST(FirstLayersFilter, GoesThroughY) {
  const std::optional<FirstLayers> plan =
      FilterPlanOf({.batch = 1, .x = {20, 64}, .taps = 5, .pad = 0});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->arguments.positions[0], 8);
  EXPECT_EQ(plan->arguments.positions[1], 30);
  EXPECT_EQ(plan->arguments.strip, 32);
  EXPECT_EQ(plan->blocks, 4);
}

/// More channels than a block has are for others, which are as many fewer for each.
TEST(FirstLayersFilter, CutsChannelsIntoTiles) {
  const std::optional<FirstLayers> plan =
      FilterPlanOf({.batch = 1000, .y_channels = 136, .taps = 4, .pad = 1});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->tiles, 3);
  EXPECT_EQ(plan->blocks, 132);
  EXPECT_EQ(plan->workspace(), std::size_t{132} * 136 * 4 * 4 * 3 * sizeof(float));
}

/// The multiprocessors are those of Hopper.
TEST(FirstLayersFilter, HasRoomForItsForms) {
  constexpr int kSharedOfMultiprocessor = 228 << 10;
  constexpr int kSharedOfEachBlock = 1 << 10;
  constexpr int kThreadsOfMultiprocessor = 2048;
  for (const first_layers::FilterKernelConfig& config : first_layers::kFilterConfigAt) {
    EXPECT_LE(
        config.blocks * (first_layers::SharedBytes(config) + kSharedOfEachBlock),
        kSharedOfMultiprocessor);
    EXPECT_LE(config.blocks * first_layers::kFilterThreads, kThreadsOfMultiprocessor);
  }
  for (const std::int64_t channels : {8, 32, 40, 64, 72}) {
    for (std::int64_t taps = first_layers::kLeastTaps; taps <= first_layers::kMostTaps; ++taps) {
      for (const std::int64_t step : {1, 2}) {
        const std::optional<FirstLayers> plan = FilterPlanOf(
            {.batch = 16, .y_channels = channels, .taps = taps, .pad = taps / 2, .step = step});
        ASSERT_TRUE(plan) << channels << ", " << taps << ", " << step;
        const first_layers::FilterKernelConfig config = first_layers::kFilterConfigAt[plan->config];
        EXPECT_EQ(config.step, step);
        EXPECT_EQ(config.channels, channels <= 32 ? 32 : 64);
        EXPECT_EQ(config.pairs, taps <= 4 ? 2 : 4);
        EXPECT_EQ(plan->arguments.turns, 8 / taps);
      }
    }
  }
}

TEST(FirstLayersFilter, LeavesTheRestToOthers) {
  ASSERT_TRUE(FilterPlanOf({}));
  EXPECT_TRUE(FilterPlanOf({.type = DataType::kBFloat16}));
  EXPECT_FALSE(FilterPlanOf({.type = DataType::kFloat}));
  EXPECT_TRUE(FilterPlanOf({}, 100));
  for (const int of_less_memory : {75, 80, 89, 120, 121}) {
    EXPECT_FALSE(FilterPlanOf({}, of_less_memory));
  }
  EXPECT_TRUE(FilterPlanOf({.x_channels = 1}));
  EXPECT_FALSE(FilterPlanOf({.x_channels = 4}));
  EXPECT_FALSE(FilterPlanOf({.y_channels = 60}));
  EXPECT_TRUE(FilterPlanOf({.y_channels = 72}));
  EXPECT_FALSE(FilterPlanOf({.x_channels = 2, .group = 2}));
  EXPECT_TRUE(FilterPlanOf({.batch = 16, .step = 1}));
  EXPECT_FALSE(FilterPlanOf({.step = 3}));
  Task uneven = TaskOf(Primitive::kBackwardFilter, Layer());
  uneven.problem.axes[0] = LayerAxis(112, 7, 1, 1, 3);
  EXPECT_FALSE(PlanFirstLayersFilter(90, uneven));
  EXPECT_FALSE(FilterPlanOf({.taps = 3, .pad = 2, .dilation = 2}));
  EXPECT_FALSE(FilterPlanOf({.taps = 8}));
  EXPECT_FALSE(FilterPlanOf({.taps = 1, .pad = 0}));
  EXPECT_FALSE(FilterPlanOf({.batch = 0}));
  EXPECT_FALSE(FilterPlanOf({.batch = 1 << 13}));
  EXPECT_TRUE(FilterPlanOf({.taps = 2, .pad = 3}));
  // A grid has no more tiles of channels.
  Layer wide = {
      .batch = 1, .y_channels = std::int64_t{65535} * 64, .x = {2, 2}, .taps = 2, .pad = 0};
  EXPECT_TRUE(FilterPlanOf(wide));
  wide.y_channels += 8;
  EXPECT_FALSE(FilterPlanOf(wide));
  EXPECT_FALSE(PlanFirstLayersFilter(90, TaskOf(Primitive::kBackwardData, Layer())));
  EXPECT_FALSE(PlanFirstLayersFilter(90, TaskOf(Primitive::kForward, Layer())));
  Task first = TaskOf(Primitive::kBackwardFilter, Layer());
  first.problem.x_strides = ContiguousStrides(DimsOf(first.problem, kX));
  EXPECT_FALSE(PlanFirstLayersFilter(90, first));
  Task misaligned = TaskOf(Primitive::kBackwardFilter, Layer());
  misaligned.alignment.at(kX) = 8;
  EXPECT_FALSE(PlanFirstLayersFilter(90, misaligned));
}

}  // namespace
}  // namespace gradsmith::conv

namespace gradsmith::cuda {
namespace {

constexpr std::array<DataType, 2> kTypes = {DataType::kMLFloat16, DataType::kBFloat16};

ConvShape ByTwo(
    std::string name,
    Sizes x,
    std::int64_t y_channels,
    std::array<std::int64_t, 2> taps,
    IntList pads) {
  return ConvBySteps(2, std::move(name), std::move(x), y_channels, taps, std::move(pads));
}

ConvShape ByOne(
    std::string name,
    Sizes x,
    std::int64_t y_channels,
    std::array<std::int64_t, 2> taps,
    IntList pads) {
  return ConvBySteps(1, std::move(name), std::move(x), y_channels, taps, std::move(pads));
}

/// Each configuration, with all its channels of y and with some; warps that take each number of
/// turns; tiles that are full and that are not, one and several in a row; strips, segments, steps
/// that are not full.
std::vector<ConvShape> FilterShapes() {
  return {
      ByTwo("a position", {1, 1, 2, 2}, 8, {2, 2}, {0, 0, 0, 0}),
      ByTwo("7x7 to 64", {2, 3, 37, 52}, 64, {7, 7}, {3, 3, 3, 3}),
      ByTwo("5x5 to 32", {3, 3, 40, 70}, 32, {5, 5}, {1, 3, 0, 2}),
      ByTwo("5x5 to 40, rows that no tap reaches", {1, 1, 20, 17}, 40, {5, 5}, {0, 0, 0, 0}),
      ByTwo("6x6 to 24", {2, 2, 31, 45}, 24, {6, 6}, {2, 2, 2, 2}),
      ByTwo("3x3 to 40", {2, 3, 36, 130}, 40, {3, 3}, {1, 1, 1, 1}),
      ByTwo("4x4 to 64", {2, 3, 32, 32}, 64, {4, 4}, {1, 1, 1, 1}),
      ByTwo("4x4 to 128, tiles", {70, 3, 16, 16}, 128, {4, 4}, {1, 1, 1, 1}),
      ByTwo("5x3 to 136, tiles that are not full", {3, 2, 24, 30}, 136, {5, 3}, {2, 1, 2, 1}),
      ByTwo("7x2 to 8, pads that differ, strips", {1, 2, 9, 235}, 8, {7, 2}, {2, 1, 4, 0}),
      ByTwo("2x7 to 8, strips", {2, 3, 14, 460}, 8, {2, 7}, {0, 3, 0, 3}),
      ByTwo("2x2 to 8, pads beyond taps", {1, 3, 8, 8}, 8, {2, 2}, {3, 3, 3, 3}),
      ByOne("a pixel", {1, 1, 2, 2}, 8, {2, 2}, {0, 0, 0, 0}),
      ByOne("3x3 to 64", {2, 3, 19, 37}, 64, {3, 3}, {1, 1, 1, 1}),
      ByOne("3x3 to 32, strips", {1, 3, 10, 230}, 32, {3, 3}, {1, 1, 1, 1}),
      ByOne("4x4 to 40, pads that differ", {2, 2, 15, 113}, 40, {4, 4}, {1, 2, 2, 1}),
      ByOne("5x5 to 32", {3, 1, 28, 28}, 32, {5, 5}, {2, 2, 2, 2}),
      ByOne("6x7 to 24", {2, 3, 17, 20}, 24, {6, 7}, {2, 3, 3, 3}),
      ByOne("7x7 to 64", {2, 3, 21, 40}, 64, {7, 7}, {3, 3, 3, 3}),
      ByOne("7x5 to 136, tiles", {2, 3, 12, 33}, 136, {7, 5}, {3, 2, 3, 2}),
  };
}

/// Works for which there are not blocks enough: each configuration, with turns, tiles of channels
/// and strips.
std::vector<ConvShape> ShapesOfManyWorks() {
  return {
      ByOne("3x3 to 16", {600, 3, 6, 7}, 16, {3, 3}, {1, 1, 1, 1}),
      ByOne("7x7 to 32", {500, 3, 6, 7}, 32, {7, 7}, {3, 3, 3, 3}),
      ByOne("3x3 to 64", {500, 3, 6, 7}, 64, {3, 3}, {1, 1, 1, 1}),
      ByOne("7x7 to 64", {300, 3, 6, 7}, 64, {7, 7}, {3, 3, 3, 3}),
      ByOne("4x3 to 136, tiles", {150, 3, 6, 7}, 136, {4, 3}, {1, 1, 1, 1}),
      ByTwo("3x3 to 16", {450, 3, 11, 11}, 16, {3, 3}, {1, 1, 1, 1}),
      ByTwo("7x7 to 32", {300, 3, 11, 11}, 32, {7, 7}, {3, 3, 3, 3}),
      ByTwo("4x4 to 128, tiles", {220, 3, 12, 11}, 128, {4, 4}, {1, 1, 1, 1}),
      ByTwo("7x7 to 64", {300, 1, 20, 6}, 64, {7, 7}, {3, 3, 3, 3}),
      ByTwo("2x7 to 8, strips", {150, 1, 6, 300}, 8, {2, 7}, {0, 3, 0, 3}),
  };
}

/// The same, each of a step alone.
std::vector<ConvShape> ShapesOfManySteps() {
  return {
      ByOne("3x3 to 8", {600, 3, 2, 7}, 8, {3, 3}, {1, 1, 1, 1}),
      ByTwo("3x3 to 64", {450, 3, 4, 11}, 64, {3, 3}, {1, 1, 1, 1}),
  };
}

std::optional<conv::FirstLayers> PlanOf(const ConvShape& shape) {
  std::vector<conv::Axis> axes;
  for (int i = 0; i < 2; ++i) {
    axes.push_back(
        {.x = shape.x[2 + i],
         .w = shape.w[2 + i],
         .y = shape.YDims()[2 + i],
         .stride = shape.strides[i],
         .dilation = 1,
         .pad_begin = shape.pads[i],
         .pad_end = shape.pads[2 + i]});
  }
  return conv::PlanFirstLayersFilter(
      90, conv::NhwcTask(
              conv::Primitive::kBackwardFilter, DataType::kMLFloat16, shape.x[0],
              {shape.x[1], shape.w[0], 1}, axes));
}

TEST(FirstLayersFilter, HasMoreWorksThanBlocksWhereThatIsTested) {
  std::set<int> configs;
  bool have_turns = false;
  bool have_tiles = false;
  bool have_strips = false;
  for (const ConvShape& shape : ShapesOfManyWorks()) {
    SCOPED_TRACE(shape.name);
    const std::optional<conv::FirstLayers> plan = PlanOf(shape);
    ASSERT_TRUE(plan);
    EXPECT_GT(plan->arguments.works, plan->blocks);
    EXPECT_GT(plan->arguments.segment, conv::first_layers::kFilterRows);
    configs.insert(plan->config);
    have_turns = have_turns || plan->arguments.turns > 1;
    have_tiles = have_tiles || plan->tiles > 1;
    have_strips = have_strips || plan->arguments.strip < plan->arguments.positions[1];
  }
  EXPECT_EQ(configs.size(), conv::first_layers::kFilterConfigs);
  EXPECT_TRUE(have_turns && have_tiles && have_strips);
  for (const ConvShape& shape : ShapesOfManySteps()) {
    SCOPED_TRACE(shape.name);
    const std::optional<conv::FirstLayers> plan = PlanOf(shape);
    ASSERT_TRUE(plan);
    EXPECT_GT(plan->arguments.works, plan->blocks);
    EXPECT_EQ(plan->arguments.segment, conv::first_layers::kFilterRows);
  }
}

class CudaConvFirstLayersFilter : public CudaTest {};

/// Sums of integers are exact in float, whatever their order.
TEST_F(CudaConvFirstLayersFilter, IsARoundedExactSum) {
  Random random("first layers filter");
  const Context context(OnGpu());
  Turns turns(2);  // of two types, which share their code
  for (const ConvShape& shape : FilterShapes()) {
    turns.Next();  // each shape begins with the other type
    for (const DataType type : kTypes) {
      if (!turns.Next()) {
        continue;
      }
      const PrimitiveCall call =
          MakeCall(ConvPrimitive::kBackwardFilter, shape, type, Layout::kChannelsLast, random);
      SCOPED_TRACE(call.op.Describe());
      ASSERT_NO_FATAL_FAILURE(RunOnIntegers(call, context, conv::kFirstLayers, random));
    }
  }
}

/// What a work leaves in shared memory is not taken for the next one's.
TEST_F(CudaConvFirstLayersFilter, BlocksGoFromWorkToWork) {
  Random random("first layers filter of many works");
  const Context context(OnGpu());
  std::vector<ConvShape> shapes = ShapesOfManyWorks();
  std::ranges::move(ShapesOfManySteps(), std::back_inserter(shapes));
  for (const ConvShape& shape : shapes) {
    const PrimitiveCall call = MakeCall(
        ConvPrimitive::kBackwardFilter, shape, DataType::kMLFloat16, Layout::kChannelsLast, random);
    SCOPED_TRACE(call.op.Describe());
    ASSERT_NO_FATAL_FAILURE(RunOnIntegers(call, context, conv::kFirstLayers, random));
  }
}

TEST_F(CudaConvFirstLayersFilter, ComputesTheGradientOfNumbers) {
  Random random("first layers filter of numbers");
  const Context context(OnGpu());
  for (const DataType type : kTypes) {
    const PrimitiveCall call = MakeCall(
        ConvPrimitive::kBackwardFilter, ByTwo("numbers", {3, 3, 37, 52}, 72, {7, 7}, {3, 3, 3, 3}),
        type, Layout::kChannelsLast, random);
    SCOPED_TRACE(call.op.Describe());
    ASSERT_NO_FATAL_FAILURE(RunAndCompare(call, context, conv::kFirstLayers));
  }
}

TEST_F(CudaConvFirstLayersFilter, AddsToWhatIsThere) {
  Random random("first layers filter accumulate");
  const Context context(OnGpu());
  for (const DataType type : kTypes) {
    const PrimitiveCall call = MakeCall(
        ConvPrimitive::kBackwardFilter, ByTwo("adds", {2, 3, 13, 22}, 136, {5, 5}, {2, 2, 2, 2}),
        type, Layout::kChannelsLast, random);
    SCOPED_TRACE(call.op.Describe());
    ASSERT_NO_FATAL_FAILURE(RunAddingIntegers(call, context, conv::kFirstLayers, 1, random));
  }
}

/// Listed once; before all others, and as the choice where nothing is timed, where it pays.
TEST_F(CudaConvFirstLayersFilter, ComesFirstWhereItPays) {
  Random random("first layers filter listed");
  const Context context(OnGpu());
  Turns turns(3);  // of three that come first
  const auto expect_listed = [&](const ConvShape& shape, bool comes_first) {
    const PrimitiveCall call = MakeCall(
        ConvPrimitive::kBackwardFilter, shape, DataType::kMLFloat16, Layout::kChannelsLast, random);
    SCOPED_TRACE(call.op.Describe());
    Result<ConvAlgorithms> algorithms = call.Prepare(context);
    ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
    const Result<std::vector<ConvAlgorithm>> list = algorithms->List();
    ASSERT_TRUE(list.ok()) << list.status().message();
    const auto is_it = [](const ConvAlgorithm& algorithm) {
      return algorithm.name.find(conv::kFirstLayers) != std::string::npos;
    };
    ASSERT_EQ(std::ranges::count_if(*list, is_it), 1);
    const ConvAlgorithm& listed = *std::ranges::find_if(*list, is_it);
    EXPECT_EQ(listed.name, conv::kFirstLayers);
    EXPECT_TRUE(listed.deterministic);
    EXPECT_FALSE(listed.tf32);
    EXPECT_EQ(list->front().name == conv::kFirstLayers, comes_first);
    if (comes_first && turns.Next()) {
      const Result<ConvAlgorithm> best =
          algorithms->Best(SearchMode::kHeuristic, WorkspaceLimit::None());
      ASSERT_TRUE(best.ok()) << best.status().message();
      EXPECT_EQ(best->name, conv::kFirstLayers);
    }
  };
  expect_listed(ByTwo("large", {8, 3, 96, 96}, 64, {3, 3}, {1, 1, 1, 1}), true);
  expect_listed(ByTwo("small", {2, 3, 96, 96}, 64, {3, 3}, {1, 1, 1, 1}), false);
  expect_listed(ByTwo("in tiles", {8, 3, 96, 96}, 128, {3, 3}, {1, 1, 1, 1}), true);
  expect_listed(ByOne("by single steps", {4, 3, 96, 96}, 64, {3, 3}, {1, 1, 1, 1}), true);
  expect_listed(ByOne("small, by single steps", {1, 3, 96, 96}, 64, {3, 3}, {1, 1, 1, 1}), false);
}

/// A row of them from each block, whatever the tiles of channels.
TEST_F(CudaConvFirstLayersFilter, LeavesPartialSumsOfDy) {
  for (const std::int64_t channels : {64, 136}) {
    const conv::Task task =
        TaskOf(conv::Primitive::kBackwardFilter, conv::Layer{.y_channels = channels});
    const std::optional<conv::FirstLayers> first_layers = conv::PlanFirstLayersFilter(90, task);
    ASSERT_TRUE(first_layers);
    const Result<std::unique_ptr<internal::Plan>> plan =
        conv::MakeFirstLayersFilterPlan(0, task, *first_layers);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    const auto& sharing = dynamic_cast<const conv::SharingPlan&>(**plan);
    EXPECT_EQ(sharing.PartialSumRows(conv::kY), first_layers->blocks);
    EXPECT_EQ(sharing.PartialSumRows(conv::kX), 0);
    EXPECT_TRUE(sharing.AddsUpSums());
  }
}

/// The bias gradient comes from the sums that the filter's gradient leaves: what training asks of a
/// network's first layer, and the same of channels in tiles.
TEST_F(CudaConvFirstLayersFilter, SumsChannelsInPassing) {
  Random random("first layers filter bias");
  const Context context(OnGpu());
  for (const DataType type : kTypes) {
    ASSERT_TRUE(ClearCache().ok());
    OpCall call = MakeConvGrad(
        ByTwo("in tiles", {9, 3, 16, 16}, 136, {4, 4}, {1, 1, 1, 1}), type, Layout::kChannelsLast,
        random);
    call.outputs[0] = nullptr;
    ASSERT_TRUE(call.Run(context).ok());
    ASSERT_NO_FATAL_FAILURE(ChooseForFilters(conv::kFirstLayers));
    ASSERT_NO_FATAL_FAILURE(RunByChoice(call, context, conv::kFirstLayers, 2));
  }
  for (const DataType type : kTypes) {
    OpCall call = MakeConvGrad(
        ByTwo("first layer", {8, 3, 96, 96}, 64, {3, 3}, {1, 1, 1, 1}), type, Layout::kChannelsLast,
        random);
    call.outputs[0] = nullptr;
    ASSERT_NO_FATAL_FAILURE(RunByChoice(call, context, conv::kFirstLayers, 2));
  }
}

}  // namespace
}  // namespace gradsmith::cuda
