#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conv/cuda/sharing_plan.h"
#include "conv/cuda/wide_layers.h"
#include "gradsmith/cache.h"
#include "runtime/cuda/conv_layer.h"
#include "runtime/cuda/primitive_call.h"

/// The filter's gradient of wide layers in TF32: how it is launched, without a GPU, and what it
/// computes, run by name.
namespace gradsmith::conv {
namespace {

struct Layer {
  Primitive primitive = Primitive::kBackwardFilter;
  std::int64_t batch = 32;
  std::int64_t x_channels = 512;
  std::int64_t y_channels = 512;
  std::vector<std::int64_t> x = {28, 28};
  std::int64_t taps = 3;
  std::int64_t step = 1;
  std::int64_t dilation = 1;
  std::int64_t pad = 1;
  std::int64_t group = 1;
  DataType type = DataType::kFloat;
};

Task MakeTask(const Layer& layer) {
  return TaskOf(layer.primitive, layer);
}

std::optional<WideLayers> PlanOf(const Layer& layer, int compute_capability = 90) {
  return PlanWideLayers(compute_capability, MakeTask(layer));
}

/// 48 tiles of two units and 128 channels: blocks have 2.75 of a tile's 784 steps each.
TEST(WideLayers, SharesALayer) {
  const std::optional<WideLayers> plan = PlanOf({});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->run, 4);
  EXPECT_EQ(plan->arguments.units, 8 * 3);
  EXPECT_EQ(plan->arguments.pairs, 12);
  EXPECT_EQ(plan->arguments.y_tiles, 4);
  EXPECT_EQ(plan->arguments.steps, 784);
  EXPECT_EQ(plan->arguments.blocks, 132);
  EXPECT_EQ(plan->arguments.pieces, 4);
  // The first row may have a run, the second is whole: 4 and 28 pixels, each with a run more.
  EXPECT_EQ(plan->arguments.places, 40);
  EXPECT_DOUBLE_EQ(plan->share, 1);
  const std::size_t pieces = std::size_t{4} * 512 * 512 * 9 * sizeof(float);
  const std::size_t turned = std::size_t{32} * 28 * 28 * 512 * sizeof(float);
  EXPECT_EQ(plan->bytes_of_pieces(), pieces);
  EXPECT_EQ(plan->workspace(), pieces + turned + wide_layers::kZeros * sizeof(float));
}

/// Rows of 14 pixels are seven runs of two, and those of 7, filled up, two of four.
TEST(WideLayers, FillsRowsUpToRuns) {
  const std::optional<WideLayers> even = PlanOf({.x = {14, 14}});
  ASSERT_TRUE(even);
  EXPECT_EQ(even->run, 2);
  EXPECT_DOUBLE_EQ(even->share, 1);
  const std::optional<WideLayers> odd = PlanOf({.x = {7, 7}});
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->run, 4);
  EXPECT_DOUBLE_EQ(odd->share, 7.0 / 8);
  // 15 units of 16, 320 channels of 384.
  EXPECT_DOUBLE_EQ(
      PlanOf({.batch = 8, .x_channels = 320, .y_channels = 320, .x = {64, 64}})->share,
      15.0 / 16 * 320 / 384);
  // Two of three taps, and channels of one unit of two and half a tile.
  EXPECT_DOUBLE_EQ(
      PlanOf({.x_channels = 64, .y_channels = 64, .taps = 2, .pad = 0})->share,
      2.0 / 3 * 0.5 * (27.0 * 27 * 32) / (28.0 * 27 * 32));
}

/// What the tests below need blocks for: several tiles of one, and several blocks of a tile.
TEST(WideLayers, CutsTilesInPieces) {
  const std::optional<WideLayers> blocks =
      PlanOf({.batch = 8, .x_channels = 64, .y_channels = 8, .x = {16, 20}});
  ASSERT_TRUE(blocks);
  EXPECT_EQ(blocks->arguments.pairs, 2);
  EXPECT_GT(blocks->arguments.pieces, 2);
  const std::optional<WideLayers> tiles =
      PlanOf({.batch = 2, .x_channels = 832, .y_channels = 4, .x = {4, 6}, .taps = 7, .pad = 3});
  ASSERT_TRUE(tiles);
  EXPECT_EQ(tiles->arguments.units, 13 * 3 * 7);
  EXPECT_LT(tiles->arguments.blocks, tiles->arguments.pairs);
  EXPECT_EQ(tiles->arguments.pieces, 2);
  // Every stage is used again, and blocks that turn dY have several steps.
  const std::optional<WideLayers> steps = PlanWideLayers(
      90, NhwcTask(
              Primitive::kBackwardFilter, DataType::kFloat, 1, {.x = 4, .y = 8},
              {LayerAxis(134, 1, 1), LayerAxis(256, 3, 1, 1, 1)}));
  ASSERT_TRUE(steps);
  EXPECT_GT(steps->arguments.all_steps, wide_layers::kStages * steps->arguments.blocks);
  EXPECT_GT(steps->arguments.steps, steps->arguments.turn_rows);
}

TEST(WideLayers, HasRoomForItsForms) {
  constexpr int kMostOfBlock = 227 * 1024;
  constexpr int kRegisters = 65536;
  for (const int run : wide_layers::kRunAt) {
    EXPECT_LE(wide_layers::SharedBytesOf(run), kMostOfBlock);
  }
  EXPECT_LE(
      wide_layers::kWarpgroup * (wide_layers::kConsumers * wide_layers::kConsumerRegisters +
                                 wide_layers::kCopierRegisters),
      kRegisters);
}

TEST(WideLayers, LeavesTheRestToOthers) {
  ASSERT_TRUE(PlanOf({}));
  for (const int others : {75, 80, 89, 100, 120}) {
    EXPECT_FALSE(PlanOf({}, others));
  }
  EXPECT_FALSE(PlanOf({.primitive = Primitive::kForward}));
  EXPECT_FALSE(PlanOf({.primitive = Primitive::kBackwardData}));
  for (const DataType type : {DataType::kDouble, DataType::kMLFloat16, DataType::kBFloat16}) {
    EXPECT_FALSE(PlanOf({.type = type}));
  }
  EXPECT_FALSE(PlanOf({.group = 2}));
  EXPECT_FALSE(PlanOf({.x_channels = 510}));
  EXPECT_FALSE(PlanOf({.y_channels = 510}));
  EXPECT_TRUE(PlanOf({.x = {28}}));
  EXPECT_FALSE(PlanOf({.x = {28, 28, 28}}));
  EXPECT_FALSE(PlanOf({.step = 2}));
  EXPECT_FALSE(PlanOf({.dilation = 2, .pad = 2}));
  EXPECT_FALSE(PlanOf({.batch = 0}));
  // Rows so short that a step has more of them than there are places for.
  EXPECT_TRUE(PlanOf({.x = {4, 4}}));
  EXPECT_FALSE(PlanOf({.x = {28, 2}}));
  Task first = MakeTask({});
  first.problem.x_strides = ContiguousStrides(DimsOf(first.problem, kX));
  EXPECT_FALSE(PlanWideLayers(90, first));
  // Offsets in an image.
  EXPECT_TRUE(PlanOf({.batch = 2, .x_channels = 1280, .y_channels = 1280, .x = {1024, 1024}}));
  EXPECT_FALSE(PlanOf({.batch = 1, .x_channels = 8192, .y_channels = 4, .x = {33, 9000}}));
}

}  // namespace
}  // namespace gradsmith::conv

namespace gradsmith::cuda {
namespace {

/// Results may be off by this much of their norm.
constexpr double kTolerance = 1e-3;

ConvShape Layer(std::string name, Sizes x, std::int64_t y_channels, std::int64_t taps = 3) {
  Sizes w = {y_channels, x[1], taps, taps};
  const std::int64_t pad = taps / 2;
  return {
      .name = std::move(name), .x = std::move(x), .w = std::move(w), .pads = {pad, pad, pad, pad}};
}

ConvShape With(ConvShape shape, IntList pads, IntList dilations) {
  shape.pads = std::move(pads);
  shape.dilations = std::move(dilations);
  return shape;
}

/// Rows of runs of four and of two, full and not, shorter and longer than a step; channels and
/// units that fill tiles and that do not; tiles in pieces and several of a block; taps in one group
/// and in two, taps and pixels that meet nothing.
std::vector<ConvShape> Shapes() {
  return {
      Layer("few channels", {1, 4, 5, 5}, 4),
      Layer("a tile", {1, 128, 4, 32}, 128),
      Layer("rows of 28", {1, 20, 9, 28}, 72),
      Layer("rows of 14", {3, 68, 14, 14}, 36),
      Layer("rows of 7", {4, 8, 7, 7}, 12),
      Layer("rows of 4", {5, 8, 4, 4}, 12),
      Layer("rows of 6", {2, 8, 5, 6}, 8),
      Layer("long rows", {1, 4, 5, 70}, 8),
      Layer("units of two rows of the filter", {2, 192, 5, 6}, 136),
      Layer("a tile in pieces", {8, 64, 16, 20}, 8),
      Layer("tiles for a block", {2, 832, 4, 6}, 4, 7),
      Layer("5 by 5", {2, 8, 11, 13}, 4, 5),
      Layer("7 by 7", {1, 4, 9, 20}, 8, 7),
      {.name = "stages again", .x = {1, 4, 134, 256}, .w = {8, 4, 1, 3}, .pads = {0, 1, 0, 1}},
      {.name = "1 by 3", .x = {2, 4, 9, 20}, .w = {8, 4, 1, 3}, .pads = {0, 1, 0, 1}},
      {.name = "3 by 1", .x = {2, 4, 9, 20}, .w = {8, 4, 3, 1}, .pads = {1, 0, 1, 0}},
      {.name = "2 by 4", .x = {2, 4, 9, 20}, .w = {8, 4, 2, 4}, .pads = {0, 2, 1, 1}},
      Layer("a tap", {2, 8, 5, 9}, 12, 1),
      {.name = "lines", .x = {3, 68, 21}, .w = {12, 68, 9}, .pads = {4, 4}},
      {.name = "causal lines", .x = {2, 4, 34}, .w = {8, 4, 3}, .pads = {2, 0}},
      With(Layer("dilated down", {2, 28, 12, 16}, 20), {2, 1, 2, 1}, {2, 1}),
      With(Layer("more pads than taps", {1, 4, 5, 6}, 4), {4, 3, 5, 4}, {1, 1}),
      With(Layer("rows and columns cut off", {2, 4, 12, 13}, 4), {0, 0, 0, 0}, {1, 1}),
  };
}

class CudaConvWideLayers : public CudaTest {};

TEST_F(CudaConvWideLayers, AreExactOnIntegers) {
  Random random("wide layers");
  const Context context(WithTf32());
  for (const ConvShape& shape : Shapes()) {
    const PrimitiveCall call = MakeCall(
        ConvPrimitive::kBackwardFilter, shape, DataType::kFloat, Layout::kChannelsLast, random);
    SCOPED_TRACE(shape.name + ": " + call.op.Describe());
    ASSERT_NO_FATAL_FAILURE(RunOnIntegers(call, context, conv::kWideLayers, random));
  }
}

TEST_F(CudaConvWideLayers, ComputeTheGradientOfNumbers) {
  Random random("wide layers of numbers");
  const Context context(WithTf32());
  const ConvShape shape = Layer("numbers", {2, 40, 14, 14}, 72);
  for (const auto& [layout, form] :
       {std::pair(Layout::kChannelsLast, ""), std::pair(Layout::kContiguous, "nhwc ")}) {
    const PrimitiveCall call =
        MakeCall(ConvPrimitive::kBackwardFilter, shape, DataType::kFloat, layout, random);
    SCOPED_TRACE(call.op.Describe());
    Result<ConvAlgorithms> algorithms = call.Prepare(context);
    ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
    ASSERT_NO_FATAL_FAILURE(RunAndCompare(
        *algorithms, call, context, form + std::string(conv::kWideLayers), kTolerance));
  }
}

TEST_F(CudaConvWideLayers, RoundBothFactors) {
  Random random("wide layers round");
  const Context context(WithTf32());
  const PrimitiveCall call = MakeCall(
      ConvPrimitive::kBackwardFilter, Layer("rounded", {2, 8, 6, 6}, 8), DataType::kFloat,
      Layout::kChannelsLast, random);
  ASSERT_NO_FATAL_FAILURE(RunOnWhatIsRounded(call, call.x, call.y, context, conv::kWideLayers));
  ASSERT_NO_FATAL_FAILURE(RunOnWhatIsRounded(call, call.y, call.x, context, conv::kWideLayers));
}

TEST_F(CudaConvWideLayers, AddToWhatIsThere) {
  Random random("wide layers accumulate");
  const Context context(WithTf32());
  const PrimitiveCall call = MakeCall(
      ConvPrimitive::kBackwardFilter, Layer("accumulated", {3, 12, 9, 9}, 12), DataType::kFloat,
      Layout::kChannelsLast, random);
  ASSERT_NO_FATAL_FAILURE(RunAddingIntegers(call, context, conv::kWideLayers, 2, random));
}

TEST_F(CudaConvWideLayers, AreInTf32OnlyWhereThatIsAllowed) {
  Random random("wide layers only in TF32");
  const PrimitiveCall call = MakeCall(
      ConvPrimitive::kBackwardFilter, Layer("listed", {2, 64, 9, 9}, 64), DataType::kFloat,
      Layout::kChannelsLast, random);
  ASSERT_NO_FATAL_FAILURE(ExpectInTf32Only(call, conv::kWideLayers));
}

/// In channels first, too, cuDNN's engines come after it where it pays.
TEST_F(CudaConvWideLayers, ComeFirstWhereTheyPay) {
  Random random("wide layers first");
  const Context context(WithTf32());
  for (const auto& [layout, name] :
       {std::pair(Layout::kChannelsLast, "own/wide-layers"),
        std::pair(Layout::kContiguous, "nhwc own/wide-layers")}) {
    const PrimitiveCall call = MakeCall(
        ConvPrimitive::kBackwardFilter, Layer("first", {4, 256, 28, 28}, 256), DataType::kFloat,
        layout, random);
    Result<ConvAlgorithms> algorithms = call.Prepare(context);
    ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
    const Result<std::vector<ConvAlgorithm>> list = algorithms->List();
    ASSERT_TRUE(list.ok()) << list.status().message();
    EXPECT_EQ(list->front().name, name);
  }
}

/// A row of them from each block of a tile of channels.
TEST_F(CudaConvWideLayers, LeavePartialSumsOfDy) {
  const conv::Axis axis = conv::LayerAxis(14, 3, 1, 1, 1);
  const conv::Task task = conv::NhwcTask(
      conv::Primitive::kBackwardFilter, DataType::kFloat, 4, {.x = 128, .y = 136}, {axis, axis});
  const std::optional<conv::WideLayers> wide = conv::PlanWideLayers(90, task);
  ASSERT_TRUE(wide);
  const Result<std::unique_ptr<internal::Plan>> plan = conv::MakeWideLayersPlan(0, task, *wide);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const auto& sharing = dynamic_cast<const conv::SharingPlan&>(**plan);
  EXPECT_EQ(sharing.PartialSumRows(conv::kY), wide->arguments.turn_rows);
  EXPECT_EQ(sharing.PartialSumRows(conv::kX), 0);
  EXPECT_TRUE(sharing.AddsUpSums());
}

/// With dW, in one call: what dY is read for.
TEST_F(CudaConvWideLayers, SumTheChannelsOfDyToo) {
  Random random("wide layers and sums");
  const Context context(WithTf32());
  ASSERT_TRUE(ClearCache().ok());
  OpCall call = MakeConvGrad(
      Layer("sums", {3, 12, 5, 9}, 136), DataType::kFloat, Layout::kChannelsLast, random);
  call.outputs[0] = nullptr;
  ASSERT_TRUE(call.Run(context).ok());
  ASSERT_NO_FATAL_FAILURE(ChooseForFilters(conv::kWideLayers));
  ASSERT_NO_FATAL_FAILURE(RunByChoice(call, context, conv::kWideLayers, 2, kTolerance));
}

}  // namespace
}  // namespace gradsmith::cuda
