#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conv/cuda/warpgroups.h"
#include "runtime/cuda/conv_layer.h"
#include "runtime/cuda/primitive_call.h"

/// The filter's gradient in TF32 by products of warpgroups: how it is launched, without a GPU, and
/// what it computes, run by name.
namespace gradsmith::conv {
namespace {

struct Layer {
  Primitive primitive = Primitive::kBackwardFilter;
  std::int64_t batch = 128;
  std::int64_t x_channels = 256;
  std::int64_t y_channels = 256;
  std::vector<std::int64_t> x = {14, 14};
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

std::optional<Warpgroups> PlanOf(const Layer& layer, int compute_capability = 90) {
  return PlanWarpgroups(compute_capability, MakeTask(layer));
}

/// Sixteen tiles of channels, eight slices of them for 132 multiprocessors.
TEST(Warpgroups, SharesALayer) {
  const std::optional<Warpgroups> plan = PlanOf({});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->config, 0);
  EXPECT_EQ(plan->tiles, 16);
  EXPECT_EQ(plan->groups, 1);
  EXPECT_EQ(plan->arguments.tile_width, 16);
  EXPECT_EQ(plan->arguments.tile_rows, 2);
  EXPECT_EQ(plan->arguments.works, 128);
  EXPECT_EQ(plan->arguments.slices, 8);
  EXPECT_EQ(plan->workspace(), std::size_t{8} * 256 * 256 * 9 * sizeof(float));
  // A tile of 16 by 16 pixels has an image of 14 by 14.
  EXPECT_DOUBLE_EQ(plan->share, 14.0 * 14 / (16 * 16));
}

/// Taps that meet the same positions of x go together: of 4 by 4 taps by steps of two, four times
/// two by two. Two images of 4 by 4 share the rows of a tile.
TEST(Warpgroups, SharesTapsOfSteps) {
  const std::optional<Warpgroups> plan = PlanOf({.x = {8, 8}, .taps = 4, .step = 2});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->config, 1);
  EXPECT_EQ(plan->groups, 4);
  EXPECT_EQ(plan->tiles, 8);
  EXPECT_EQ(plan->arguments.images, 2);
  EXPECT_EQ(plan->arguments.works, 64);
  const warpgroups::Taps first = plan->arguments.rows[0];
  EXPECT_EQ(first.first, 0);
  EXPECT_EQ(first.next, 2);
  EXPECT_EQ(first.count, 2);
  EXPECT_EQ(first.phase, 1);
  EXPECT_EQ(first.q, -1);
  // Two tiles have 32 pixels of two images.
  EXPECT_DOUBLE_EQ(plan->share, 0.5);
}

/// What the tests below call works for a block: what one leaves in the ring the next must not meet.
TEST(Warpgroups, HasSeveralWorksForABlock) {
  for (const Layer& layer :
       {Layer{.batch = 600, .x_channels = 4, .y_channels = 4, .x = {3, 3}},
        Layer{.batch = 140, .x_channels = 4, .y_channels = 4, .x = {5, 70}},
        Layer{
            .batch = 200, .x_channels = 4, .y_channels = 4, .x = {6, 12}, .dilation = 2, .pad = 2},
        Layer{.batch = 400, .x_channels = 4, .y_channels = 4, .x = {8, 8}, .taps = 4, .step = 2}}) {
    const std::optional<Warpgroups> plan = PlanOf(layer);
    ASSERT_TRUE(plan);
    EXPECT_GT(plan->arguments.works, plan->arguments.slices);
  }
}

TEST(Warpgroups, HasRoomForItsForms) {
  constexpr int kMostOfBlock = 227 * 1024;
  constexpr int kRegisters = 65536;
  for (const warpgroups::KernelConfig& config : warpgroups::kConfigAt) {
    EXPECT_LE(warpgroups::SharedBytes(config), kMostOfBlock);
    EXPECT_LE(
        warpgroups::kWarpgroup * (config.columns * warpgroups::ConsumerRegistersOf(config) +
                                  warpgroups::CopierRegistersOf(config)),
        kRegisters);
  }
}

TEST(Warpgroups, LeavesTheRestToOthers) {
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
  EXPECT_FALSE(PlanOf({.x_channels = 6}));
  EXPECT_FALSE(PlanOf({.y_channels = 6}));
  EXPECT_FALSE(PlanOf({.x = {14}}));
  EXPECT_FALSE(PlanOf({.x = {14, 14, 14}}));
  EXPECT_FALSE(PlanOf({.taps = 1, .pad = 0}));
  EXPECT_FALSE(PlanOf({.batch = 0}));
  // Rows that are met too much later, and pixels that are too far away.
  EXPECT_TRUE(PlanOf({.x = {40, 40}, .dilation = 2, .pad = 2}));
  EXPECT_FALSE(PlanOf({.x = {80, 80}, .dilation = 9, .pad = 9}));
  Task first = MakeTask({});
  first.problem.x_strides = ContiguousStrides(DimsOf(first.problem, kX));
  EXPECT_FALSE(PlanWarpgroups(90, first));
  // Offsets of pixels that are not there, which are counted all the same.
  EXPECT_FALSE(PlanOf({.x_channels = 8192, .y_channels = 4, .x = {33, 9000}, .step = 8}));
  // More groups of taps than a launch holds.
  EXPECT_FALSE(PlanOf({.x = {80, 80}, .taps = 25, .pad = 12}));
}

}  // namespace
}  // namespace gradsmith::conv

namespace gradsmith::cuda {
namespace {

/// Results may be off by this much of their norm.
constexpr double kTolerance = 1e-3;

ConvShape Square(std::string name, Sizes x, std::int64_t y_channels, std::int64_t taps = 3) {
  Sizes w = {y_channels, x[1], taps, taps};
  const std::int64_t pad = taps / 2;
  return {
      .name = std::move(name), .x = std::move(x), .w = std::move(w), .pads = {pad, pad, pad, pad}};
}

ConvShape With(ConvShape shape, IntList strides, IntList pads, IntList dilations = {}) {
  shape.strides = std::move(strides);
  shape.pads = std::move(pads);
  shape.dilations = std::move(dilations);
  return shape;
}

/// Tiles of each width, full and not, and of several images; channels that fill tiles and that do
/// not; taps in one group and in many; taps, pixels and rows that meet nothing.
std::vector<ConvShape> Shapes() {
  return {
      Square("few channels", {1, 4, 5, 5}, 4),
      Square("a tile", {2, 64, 9, 32}, 64),
      Square("rows of 16", {3, 20, 14, 14}, 72),
      Square("rows of 8", {2, 68, 7, 7}, 36),
      Square("rows of 4, two images", {5, 8, 4, 4}, 12),
      Square("rows of 4, one image", {1, 8, 3, 2}, 12),
      Square("strips", {1, 4, 5, 70}, 8),
      Square("5 by 5", {2, 8, 11, 13}, 4, 5),
      Square("7 by 7", {1, 4, 9, 20}, 8, 7),
      Square("works for a block", {600, 4, 3, 3}, 4),
      Square("strips for a block", {140, 4, 5, 70}, 4),
      With(Square("dilated works for a block", {200, 4, 6, 12}, 4), {1, 1}, {2, 2, 2, 2}, {2, 2}),
      With(Square("4 by 4 by 2, works for a block", {400, 4, 8, 8}, 4, 4), {2, 2}, {1, 1, 1, 1}),
      {.name = "1 by 7", .x = {2, 4, 9, 20}, .w = {8, 4, 1, 7}, .pads = {0, 3, 0, 3}},
      {.name = "7 by 1", .x = {2, 4, 9, 20}, .w = {8, 4, 7, 1}, .pads = {3, 0, 3, 0}},
      {.name = "2 by 5", .x = {2, 4, 9, 20}, .w = {8, 4, 2, 5}, .pads = {0, 2, 1, 2}},
      With(Square("2 by 2", {2, 8, 9, 21}, 132, 2), {1, 1}, {0, 0, 0, 0}),
      With(Square("4 by 4 by 2", {3, 40, 8, 8}, 132, 4), {2, 2}, {1, 1, 1, 1}),
      With(Square("4 by 4 by 2, wide", {1, 12, 10, 68}, 20, 4), {2, 2}, {1, 1, 1, 1}),
      With(Square("3 by 3 by 2", {2, 12, 15, 29}, 12), {2, 2}, {1, 1, 1, 1}),
      With(Square("3 by 3 by 3 and 2", {2, 4, 15, 29}, 8), {3, 2}, {0, 1, 2, 0}),
      With(Square("steps beyond taps", {2, 4, 15, 29}, 8, 2), {3, 3}, {0, 0, 0, 0}),
      With(Square("dilated", {2, 28, 12, 28}, 20), {1, 1}, {2, 2, 2, 2}, {2, 2}),
      With(Square("dilated by steps", {2, 8, 12, 20}, 4), {2, 2}, {2, 2, 2, 2}, {2, 3}),
      With(Square("more pads than taps", {1, 4, 5, 6}, 4), {1, 1}, {4, 3, 5, 4}),
      With(Square("rows left over", {2, 4, 12, 13}, 4), {2, 2}, {0, 0, 0, 0}),
      With(Square("rows cut off", {2, 4, 12, 13}, 4), {1, 1}, {0, 0, 0, 0}),
  };
}

class CudaConvWarpgroups : public CudaTest {};

TEST_F(CudaConvWarpgroups, AreExactOnIntegers) {
  Random random("warpgroups");
  const Context context(WithTf32());
  for (const ConvShape& shape : Shapes()) {
    const PrimitiveCall call = MakeCall(
        ConvPrimitive::kBackwardFilter, shape, DataType::kFloat, Layout::kChannelsLast, random);
    SCOPED_TRACE(shape.name + ": " + call.op.Describe());
    ASSERT_NO_FATAL_FAILURE(RunOnIntegers(call, context, conv::kWarpgroups, random));
  }
}

TEST_F(CudaConvWarpgroups, ComputeTheGradientOfNumbers) {
  Random random("warpgroups of numbers");
  const Context context(WithTf32());
  for (const ConvShape& shape :
       {Square("numbers", {2, 40, 14, 14}, 72),
        With(Square("by steps", {2, 40, 16, 16}, 72, 4), {2, 2}, {1, 1, 1, 1})}) {
    for (const auto& [layout, form] :
         {std::pair(Layout::kChannelsLast, ""), std::pair(Layout::kContiguous, "nhwc ")}) {
      const PrimitiveCall call =
          MakeCall(ConvPrimitive::kBackwardFilter, shape, DataType::kFloat, layout, random);
      SCOPED_TRACE(call.op.Describe());
      Result<ConvAlgorithms> algorithms = call.Prepare(context);
      ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
      ASSERT_NO_FATAL_FAILURE(RunAndCompare(
          *algorithms, call, context, form + std::string(conv::kWarpgroups), kTolerance));
    }
  }
}

TEST_F(CudaConvWarpgroups, RoundBothFactors) {
  Random random("warpgroups round");
  const Context context(WithTf32());
  const PrimitiveCall call = MakeCall(
      ConvPrimitive::kBackwardFilter, Square("rounded", {2, 8, 6, 6}, 8), DataType::kFloat,
      Layout::kChannelsLast, random);
  ASSERT_NO_FATAL_FAILURE(RunOnWhatIsRounded(call, call.x, call.y, context, conv::kWarpgroups));
  ASSERT_NO_FATAL_FAILURE(RunOnWhatIsRounded(call, call.y, call.x, context, conv::kWarpgroups));
}

TEST_F(CudaConvWarpgroups, AddToWhatIsThere) {
  Random random("warpgroups accumulate");
  const Context context(WithTf32());
  const PrimitiveCall call = MakeCall(
      ConvPrimitive::kBackwardFilter, Square("accumulated", {3, 12, 9, 9}, 12), DataType::kFloat,
      Layout::kChannelsLast, random);
  ASSERT_NO_FATAL_FAILURE(RunAddingIntegers(call, context, conv::kWarpgroups, 2, random));
}

TEST_F(CudaConvWarpgroups, AreInTf32OnlyWhereThatIsAllowed) {
  Random random("warpgroups only in TF32");
  const PrimitiveCall call = MakeCall(
      ConvPrimitive::kBackwardFilter, Square("listed", {2, 64, 9, 9}, 64), DataType::kFloat,
      Layout::kChannelsLast, random);
  ASSERT_NO_FATAL_FAILURE(ExpectInTf32Only(call, conv::kWarpgroups));
}

/// With dW, in one call: what dY is read for. The default's choice goes by no clock.
TEST_F(CudaConvWarpgroups, SumTheChannelsOfDyToo) {
  Random random("warpgroups and sums");
  const Context context(WithTf32(SearchMode::kDefault));
  for (const ConvShape& shape :
       {Square("sums", {64, 64, 14, 14}, 64),
        With(Square("rows that no tap meets", {16, 64, 40, 40}, 128, 4), {2, 2}, {0, 0, 6, 6})}) {
    OpCall call = MakeConvGrad(shape, DataType::kFloat, Layout::kChannelsLast, random);
    call.outputs[0] = nullptr;
    ASSERT_NO_FATAL_FAILURE(RunByChoice(call, context, conv::kWarpgroups, 1, kTolerance));
  }
}

}  // namespace
}  // namespace gradsmith::cuda
