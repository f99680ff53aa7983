#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conv/cuda/few_channels.h"
#include "runtime/cuda/conv_layer.h"
#include "runtime/cuda/primitive_call.h"
#include "support/turns.h"

/// Gradients of convolutions of few channels: how they are launched, without a GPU, and what they
/// compute, run by name.
namespace gradsmith::conv {
namespace {

struct Layer {
  Primitive primitive = Primitive::kBackwardFilter;
  std::int64_t batch = 64;
  std::int64_t x_channels = 33;
  std::int64_t y_channels = 65;
  std::vector<std::int64_t> x = {55, 57};
  std::int64_t taps = 3;
  std::int64_t step = 1;
  std::int64_t dilation = 1;
  std::int64_t pad = 1;
  std::int64_t group = 1;
  DataType type = DataType::kMLFloat16;
};

Task MakeTask(const Layer& layer) {
  return TaskOf(layer.primitive, layer);
}

std::optional<FewChannels> PlanOf(const Layer& layer, int compute_capability = 90) {
  return PlanFewChannels(compute_capability, MakeTask(layer));
}

/// Strips are as wide as each other, and every multiprocessor has a slice.
TEST(FewChannels, SharesAFilterGradient) {
  const std::optional<FewChannels> plan = PlanOf({});
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->are_chunks);
  EXPECT_EQ(few_channels::kConfigAt[plan->config].y_channels, 72);
  EXPECT_EQ(plan->arguments.columns, 32);
  EXPECT_EQ(plan->arguments.works, 64 * 7 * 2);
  EXPECT_EQ(plan->blocks, 132);
  EXPECT_EQ(plan->slices, 132);
  EXPECT_EQ(plan->workspace(), std::size_t{132} * 65 * 33 * 9 * sizeof(float));
}

/// Each of three taps along the first axis has a third of the multiprocessors.
TEST(FewChannels, SharesAFilterGradientOfVolumes) {
  const std::optional<FewChannels> plan =
      PlanOf({.batch = 2, .x_channels = 32, .y_channels = 64, .x = {32, 96, 96}});
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->are_chunks);
  EXPECT_EQ(plan->arguments.columns, 48);
  EXPECT_EQ(plan->arguments.depth_taps, 3);
  EXPECT_EQ(plan->arguments.works, 2 * 32 * 12 * 2);
  EXPECT_EQ(plan->blocks, 44);
  EXPECT_EQ(plan->workspace(), std::size_t{44} * 64 * 32 * 27 * sizeof(float));
}

/// Small tensors have fewer works than there are multiprocessors.
TEST(FewChannels, HasNoEmptySlices) {
  const std::optional<FewChannels> plan =
      PlanOf({.batch = 1, .x_channels = 16, .y_channels = 3, .x = {9, 64}});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->arguments.works, 2);
  EXPECT_EQ(plan->slices, 2);
}

TEST(FewChannels, SharesAGradientOfX) {
  const std::optional<FewChannels> plan = PlanOf({.primitive = Primitive::kBackwardData});
  ASSERT_TRUE(plan);
  EXPECT_EQ(few_channels::kConfigAt[plan->config].y_channels, 72);
  EXPECT_EQ(plan->arguments.works, 64 * 7 * 2);
  EXPECT_EQ(plan->blocks, 132);
  EXPECT_EQ(plan->workspace(), 0U);
}

/// A block has all taps of a tile; of many channels of y it has fewer rows or parts.
TEST(FewChannels, SharesAGradientOfVolumes) {
  constexpr Primitive kData = Primitive::kBackwardData;
  const std::optional<FewChannels> plan = PlanOf(
      {.primitive = kData, .batch = 2, .x_channels = 32, .y_channels = 64, .x = {32, 96, 96}});
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->are_chunks);
  EXPECT_EQ(plan->arguments.planes, 64);
  EXPECT_EQ(plan->arguments.works, 64 * 6 * 3);
  EXPECT_EQ(plan->blocks, 132);
  EXPECT_EQ(plan->slices, 0);
  EXPECT_EQ(plan->workspace(), 0U);
  const few_channels::DataKernel kernel = {few_channels::kConfigAt[plan->config], true, true};
  EXPECT_EQ(few_channels::PartsOf(kernel), 2);
  EXPECT_EQ(few_channels::DataRowsOf(kernel), 16);
  const std::optional<FewChannels> odd =
      PlanOf({.primitive = kData, .batch = 2, .x = {32, 96, 96}});
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->arguments.works, 64 * 24 * 3);
}

/// A block counts the planes of y that each of its works meets, beyond the last one.
TEST(FewChannels, HasNumbersForThePlanesOfVolumes) {
  Layer layer = {.batch = 1 << 29, .x_channels = 1, .y_channels = 1, .x = {1, 1, 1}};
  EXPECT_TRUE(PlanOf(layer));
  layer.primitive = Primitive::kBackwardData;
  EXPECT_FALSE(PlanOf(layer));
  layer.batch = 1 << 28;
  EXPECT_TRUE(PlanOf(layer));
}

TEST(FewChannels, HasRoomForItsForms) {
  for (const few_channels::KernelConfig& config : few_channels::kConfigAt) {
    for (const bool are_chunks : {false, true}) {
      const int tiles = few_channels::FilterTilesOf(config, are_chunks);
      EXPECT_GE(tiles, 2);
      EXPECT_LE(
          few_channels::FilterSharedBytes(config, tiles, are_chunks),
          few_channels::kMostSharedBytes);
      for (const bool is_volume : {false, true}) {
        const few_channels::DataKernel kernel = {config, are_chunks, is_volume};
        EXPECT_EQ(
            few_channels::PartsOf(kernel) * few_channels::PartChannelsOf(kernel),
            config.y_channels);
        EXPECT_GE(few_channels::RowsOfWarp(kernel), 1);
        EXPECT_LE(
            few_channels::DataSharedBytes(kernel, few_channels::DataRowsOf(kernel)),
            few_channels::kMostSharedBytes);
      }
    }
  }
}

TEST(FewChannels, LeavesTheRestToOthers) {
  constexpr Primitive kData = Primitive::kBackwardData;
  ASSERT_TRUE(PlanOf({}));
  ASSERT_TRUE(PlanOf({.primitive = kData}));
  EXPECT_FALSE(PlanOf({.primitive = Primitive::kForward}));
  EXPECT_TRUE(PlanOf({.type = DataType::kBFloat16}));
  EXPECT_FALSE(PlanOf({.type = DataType::kFloat}));
  for (const int of_less_memory : {75, 80, 89, 120, 121}) {
    EXPECT_FALSE(PlanOf({}, of_less_memory));
  }
  EXPECT_TRUE(PlanOf({}, 100));
  EXPECT_TRUE(PlanOf({.x_channels = 64, .y_channels = 32}));
  EXPECT_FALSE(PlanOf({.x_channels = 65, .y_channels = 32}));
  EXPECT_FALSE(PlanOf({.x_channels = 64, .y_channels = 33}));
  EXPECT_FALSE(PlanOf({.x_channels = 41, .y_channels = 65}));
  EXPECT_FALSE(PlanOf({.y_channels = 73}));
  EXPECT_FALSE(PlanOf({.x_channels = 4, .y_channels = 4, .group = 2}));
  EXPECT_FALSE(PlanOf({.step = 2}));
  EXPECT_FALSE(PlanOf({.dilation = 2, .pad = 2}));
  EXPECT_FALSE(PlanOf({.pad = 0}));
  EXPECT_FALSE(PlanOf({.pad = 2}));
  EXPECT_FALSE(PlanOf({.taps = 5, .pad = 2}));
  EXPECT_FALSE(PlanOf({.x = {57}}));
  EXPECT_TRUE(PlanOf({.x = {5, 6, 7}}));
  EXPECT_TRUE(PlanOf({.primitive = kData, .x = {5, 6, 7}}));
  EXPECT_FALSE(PlanOf({.primitive = kData, .x_channels = 41, .y_channels = 65, .x = {5, 6, 7}}));
  EXPECT_FALSE(PlanOf({.primitive = kData, .x = {5, 6, 7}, .pad = 0}));
  EXPECT_FALSE(PlanOf({.batch = 0}));
  EXPECT_FALSE(PlanOf({.batch = 1 << 14}));
  Task first = MakeTask({});
  first.problem.x_strides = ContiguousStrides(DimsOf(first.problem, kX));
  EXPECT_FALSE(PlanFewChannels(90, first));
  Task misaligned = MakeTask({});
  misaligned.alignment.at(kY) = 8;
  EXPECT_FALSE(PlanFewChannels(90, misaligned));
}

}  // namespace
}  // namespace gradsmith::conv

namespace gradsmith::cuda {
namespace {

constexpr std::array<DataType, 2> kTypes = {DataType::kMLFloat16, DataType::kBFloat16};

/// Around returns a layer of 3 taps along each axis with a pad of one around.
ConvShape Around(std::string name, Sizes x, std::int64_t y_channels) {
  Sizes w = {y_channels, x[1]};
  IntList pads;
  for (std::size_t i = 2; i < x.size(); ++i) {
    w.push_back(3);
    pads.push_back(1);
    pads.push_back(1);
  }
  return {.name = std::move(name), .x = std::move(x), .w = std::move(w), .pads = std::move(pads)};
}

/// Each configuration, where channels fill chunks and where they do not; tiles that are full and
/// that are not, strips and bands, several works for a block.
std::vector<ConvShape> Planes() {
  return {
      Around("one of each", {1, 1, 1, 1}, 1),
      Around("sixteens", {2, 16, 9, 70}, 16),
      Around("fewer than a chunk", {3, 3, 17, 33}, 5),
      Around("fewer than sixteen", {1, 13, 20, 130}, 9),
      Around("chunks", {2, 24, 10, 19}, 32),
      Around("even channels", {2, 22, 7, 66}, 30),
      Around("64 from 32", {1, 32, 33, 49}, 64),
      Around("65 from 33", {2, 33, 25, 57}, 65),
      Around("72 from 40", {1, 40, 16, 32}, 72),
      Around("24 from 56", {2, 56, 12, 40}, 24),
      Around("31 from 63", {1, 63, 9, 20}, 31),
      Around("works for a block", {290, 3, 2, 3}, 1),
      Around("chunks, works for a block", {290, 8, 2, 3}, 8),
  };
}

/// The same, and planes that meet one, two and three; all parts of y's channels, and not all.
std::vector<ConvShape> Volumes() {
  return {
      Around("volumes", {2, 8, 4, 9, 18}, 16),
      Around("odd volumes", {1, 5, 3, 10, 17}, 33),
      Around("volumes, works for a block", {100, 8, 2, 2, 3}, 8),
      Around("odd volumes, works for a block", {70, 3, 3, 2, 3}, 35),
      Around("volumes in parts, works for a block", {70, 8, 3, 2, 3}, 48),
      Around("flat volumes", {2, 8, 1, 8, 8}, 8),
      Around("flat volumes in parts", {3, 16, 1, 8, 8}, 48),
      Around("odd volumes of two planes", {2, 22, 2, 7, 34}, 30),
      Around("volumes of 64 from 32", {1, 32, 3, 33, 49}, 64),
      Around("volumes of 32 from 24", {1, 24, 3, 17, 35}, 32),
      Around("volumes of 65 from 33", {1, 33, 3, 9, 35}, 65),
      Around("volumes of 72 from 40", {1, 40, 3, 18, 33}, 72),
      Around("volumes of 40 from 40", {1, 40, 2, 5, 6}, 40),
      Around("volumes of 24 from 56", {1, 56, 3, 9, 20}, 24),
      Around("volumes of 31 from 63", {1, 63, 2, 9, 20}, 31),
  };
}

std::vector<ConvShape> Shapes() {
  std::vector<ConvShape> shapes = Planes();
  std::ranges::copy(Volumes(), std::back_inserter(shapes));
  return shapes;
}

class CudaConvFewChannels : public CudaTest {};

/// Sums of integers are exact in float, whatever their order.
TEST_F(CudaConvFewChannels, AreRoundedExactSums) {
  Random random("few channels");
  const Context context(OnGpu());
  Turns turns(2);  // of two types, which share their code
  for (const ConvPrimitive primitive :
       {ConvPrimitive::kBackwardData, ConvPrimitive::kBackwardFilter}) {
    for (const ConvShape& shape : Shapes()) {
      turns.Next();  // each shape begins with the other type
      for (const DataType type : kTypes) {
        if (!turns.Next()) {
          continue;
        }
        const PrimitiveCall call = MakeCall(primitive, shape, type, Layout::kChannelsLast, random);
        SCOPED_TRACE(call.op.Describe());
        ASSERT_NO_FATAL_FAILURE(RunOnIntegers(call, context, conv::kFewChannels, random));
      }
    }
  }
}

TEST_F(CudaConvFewChannels, ComputeTheGradientsOfNumbers) {
  Random random("few channels of numbers");
  const Context context(OnGpu());
  for (const ConvPrimitive primitive :
       {ConvPrimitive::kBackwardData, ConvPrimitive::kBackwardFilter}) {
    for (const ConvShape& shape :
         {Around("numbers", {2, 33, 19, 40}, 65), Around("of volumes", {1, 32, 4, 9, 20}, 64)}) {
      for (const DataType type : kTypes) {
        const PrimitiveCall call = MakeCall(primitive, shape, type, Layout::kChannelsLast, random);
        SCOPED_TRACE(call.op.Describe());
        ASSERT_NO_FATAL_FAILURE(RunAndCompare(call, context, conv::kFewChannels));
      }
    }
  }
}

/// Pairs of channels are written at once, and odd ones alone; sums of volumes once.
TEST_F(CudaConvFewChannels, AddToWhatIsThere) {
  Random random("few channels accumulate");
  const Context context(OnGpu());
  const std::vector<ConvShape> shapes = {
      Around("pairs", {2, 6, 5, 23}, 16), Around("odd", {2, 7, 5, 23}, 16),
      Around("chunks", {2, 8, 5, 23}, 16), Around("volumes", {1, 8, 3, 5, 23}, 48),
      Around("odd volumes", {1, 7, 3, 5, 23}, 48)};
  for (const ConvPrimitive primitive :
       {ConvPrimitive::kBackwardData, ConvPrimitive::kBackwardFilter}) {
    for (const ConvShape& shape : shapes) {
      for (const DataType type : kTypes) {
        const PrimitiveCall call = MakeCall(primitive, shape, type, Layout::kChannelsLast, random);
        SCOPED_TRACE(call.op.Describe());
        ASSERT_NO_FATAL_FAILURE(RunAddingIntegers(call, context, conv::kFewChannels, 1, random));
      }
    }
  }
}

/// Also where other kernels would be given more channels.
TEST_F(CudaConvFewChannels, TakeChannelsFirstByCopies) {
  Random random("few channels in NCHW");
  const Context context(OnGpu());
  for (const ConvPrimitive primitive :
       {ConvPrimitive::kBackwardData, ConvPrimitive::kBackwardFilter}) {
    const PrimitiveCall call = MakeCall(
        primitive, Around("in NCHW", {2, 33, 9, 20}, 65), DataType::kMLFloat16, Layout::kContiguous,
        random);
    SCOPED_TRACE(call.op.Describe());
    Result<ConvAlgorithms> algorithms = call.Prepare(context);
    ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
    const std::string name = std::string("nhwc ") + conv::kFewChannels;
    const Result<std::vector<ConvAlgorithm>> list = algorithms->List();
    ASSERT_TRUE(list.ok()) << list.status().message();
    EXPECT_TRUE(std::ranges::any_of(
        *list, [&](const ConvAlgorithm& algorithm) { return algorithm.name == name; }));
    ASSERT_NO_FATAL_FAILURE(RunAndCompare(*algorithms, call, context, name));
  }
}

/// Before all others, also those that take more channels, and as the choice where nothing is timed.
TEST_F(CudaConvFewChannels, ComeFirstWhereTheyPay) {
  Random random("few channels first");
  const Context context(OnGpu());
  const auto names_of = [&](ConvPrimitive primitive, const ConvShape& shape) {
    const PrimitiveCall call =
        MakeCall(primitive, shape, DataType::kMLFloat16, Layout::kChannelsLast, random);
    Result<ConvAlgorithms> algorithms = call.Prepare(context);
    EXPECT_TRUE(algorithms.ok()) << algorithms.status().message();
    std::vector<std::string> names;
    const Result<std::vector<ConvAlgorithm>> list = algorithms->List();
    EXPECT_TRUE(list.ok()) << list.status().message();
    for (const ConvAlgorithm& algorithm : *list) {
      if (algorithm.name.find(conv::kFewChannels) != std::string::npos) {
        EXPECT_EQ(algorithm.name, conv::kFewChannels);
        EXPECT_TRUE(algorithm.deterministic);
      }
      names.push_back(algorithm.name);
    }
    const Result<ConvAlgorithm> best =
        algorithms->Best(SearchMode::kHeuristic, WorkspaceLimit::None());
    EXPECT_TRUE(best.ok()) << best.status().message();
    EXPECT_EQ(best->name, names.front());
    return names;
  };
  const ConvShape odd = Around("odd", {2, 33, 9, 20}, 65);
  const ConvShape chunks = Around("chunks", {2, 32, 9, 20}, 64);
  EXPECT_EQ(names_of(ConvPrimitive::kBackwardData, odd).front(), conv::kFewChannels);
  EXPECT_EQ(names_of(ConvPrimitive::kBackwardFilter, odd).front(), conv::kFewChannels);
  EXPECT_EQ(names_of(ConvPrimitive::kBackwardFilter, chunks).front(), conv::kFewChannels);
  // cuDNN's engines may come before it.
  EXPECT_EQ(
      std::ranges::count(
          names_of(ConvPrimitive::kBackwardData, chunks), std::string(conv::kFewChannels)),
      1);
}

/// The bias gradient comes from the sums that the filter's gradient leaves: of a plane, and of the
/// middle of three taps along a volume's first axis.
TEST_F(CudaConvFewChannels, SumChannelsInPassing) {
  Random random("few channels bias");
  const Context context(OnGpu());
  for (const ConvShape& shape :
       {Around("odd", {3, 33, 9, 40}, 65), Around("turns", {2, 16, 9, 70}, 16),
        Around("volumes", {2, 16, 4, 9, 18}, 24)}) {
    for (const DataType type : kTypes) {
      const OpCall call = MakeConvGrad(shape, type, Layout::kChannelsLast, random);
      ASSERT_NO_FATAL_FAILURE(RunByChoice(call, context, conv::kFewChannels, 2));
    }
  }
}

}  // namespace
}  // namespace gradsmith::cuda
