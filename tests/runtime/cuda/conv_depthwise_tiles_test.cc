#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>

#include "conv/cuda/depthwise_tiles.h"

/// How depthwise convolutions of dense channels are launched; needs no GPU.
namespace gradsmith::conv {
namespace {

using depthwise_tiles::Work;

constexpr std::array<Primitive, 3> kAll = {
    Primitive::kForward, Primitive::kBackwardData, Primitive::kBackwardFilter};

/// Sides and steps that there are kernels for.
constexpr std::array<std::array<std::int64_t, 2>, 7> kConfigs = {
    {{3, 1}, {5, 1}, {7, 1}, {2, 2}, {3, 2}, {4, 2}, {5, 2}}};

struct Layer {
  std::int64_t batch = 4;
  std::int64_t channels = 48;
  std::int64_t height = 28;
  std::int64_t width = 28;
  std::int64_t side = 3;
  std::int64_t step = 1;
  std::int64_t pad = 1;
};

Strides PixelStrides(const Dims& dims) {
  return {dims[3] * dims[2] * dims[1], 1, dims[3] * dims[1], dims[1]};
}

/// A depthwise convolution in NHWC.
Task MakeTask(Primitive primitive, DataType type, const Layer& layer) {
  Task task;
  task.primitive = primitive;
  Problem& problem = task.problem;
  problem.type = type;
  problem.batch = layer.batch;
  problem.x_channels = problem.y_channels = problem.group = layer.channels;
  problem.spatial_rank = 2;
  for (int i = 0; i < 2; ++i) {
    const std::int64_t x = i == 0 ? layer.height : layer.width;
    const std::int64_t y = ((x + (2 * layer.pad) - layer.side) / layer.step) + 1;
    problem.axes.at(i) = {x, layer.side, y, layer.step, 1, layer.pad, layer.pad};
  }
  problem.x_strides = PixelStrides(DimsOf(problem, kX));
  problem.w_strides = ContiguousStrides(DimsOf(problem, kW));
  problem.y_strides = PixelStrides(DimsOf(problem, kY));
  return task;
}

TEST(DepthwiseTiles, CoverEveryPixelWithinWhatABlockHas) {
  for (const std::int64_t size : {1, 7, 8, 14, 28, 33, 56}) {
    for (const std::int64_t pad : {0, 1, 3}) {
      for (const auto& [side, step] : kConfigs) {
        for (const Primitive primitive : kAll) {
          for (const DataType type : {DataType::kFloat, DataType::kBFloat16}) {
            const Layer layer = {
                .height = size + 6, .width = size + 6, .side = side, .step = step, .pad = pad};
            const std::optional<DepthwiseTiles> tiles =
                PlanDepthwiseTiles(MakeTask(primitive, type, layer));
            ASSERT_TRUE(tiles.has_value());
            const bool is_filter = primitive == Primitive::kBackwardFilter;
            const depthwise_tiles::Arguments& arguments = tiles->arguments;
            const depthwise_tiles::Tile tile =
                depthwise_tiles::TileOf(tiles->config, tiles->work, static_cast<int>(SizeOf(type)));
            const auto across = static_cast<int>(arguments.tiles_across.divisor);
            const auto blocks_across = static_cast<int>(arguments.across.divisor);
            const auto blocks_down = static_cast<int>(arguments.down.divisor);
            EXPECT_GE(
                arguments.to_column + (blocks_across * across * tile.columns), arguments.to.width);
            EXPECT_GE(
                arguments.to_row + (blocks_down * arguments.tiles_down * tile.rows),
                arguments.to.height);
            EXPECT_LE(
                arguments.tiles_down * across,
                depthwise_tiles::MostTiles(tiles->config, tiles->work));
            EXPECT_GE(tiles->threads, arguments.tiles_down * across * depthwise_tiles::kPairs);
            EXPECT_EQ(tiles->threads % 32, 0);
            EXPECT_LE(tiles->shared_bytes, depthwise_tiles::kMostShared);
            EXPECT_GE(
                tiles->shared_bytes, arguments.rows_read * arguments.pitch *
                                         depthwise_tiles::kChannels *
                                         static_cast<int>(SizeOf(type)));
            EXPECT_GE(arguments.pitch, static_cast<int>(arguments.columns_read.divisor));
            if (!is_filter) {
              EXPECT_EQ(tiles->blocks, 4 * 2 * blocks_across * blocks_down);
            }
          }
        }
      }
    }
  }
}

/// A thread goes from pixel to pixel by a step that passes over as many as the block copies at
/// once.
TEST(DepthwiseTiles, StepsFromPixelToPixel) {
  for (const Primitive primitive : kAll) {
    for (const DataType type : {DataType::kFloat, DataType::kMLFloat16}) {
      const std::optional<DepthwiseTiles> tiles = PlanDepthwiseTiles(MakeTask(primitive, type, {}));
      ASSERT_TRUE(tiles.has_value());
      const depthwise_tiles::Arguments& arguments = tiles->arguments;
      const auto columns = static_cast<int>(arguments.columns_read.divisor);
      const int chunks = depthwise_tiles::kChannels * static_cast<int>(SizeOf(type)) / 16;
      EXPECT_EQ(((arguments.step_down * columns) + arguments.step_across) * chunks, tiles->threads);
      EXPECT_LT(arguments.step_across, columns);
    }
  }
}

/// Tiles of a warp, which are neighbours, are in different banks.
TEST(DepthwiseTiles, NeighboursAreInDifferentBanks) {
  for (const auto& [side, step] : kConfigs) {
    for (const Work work : {Work::kResult, Work::kFilter, Work::kBoth}) {
      const depthwise_tiles::KernelConfig config = {
          static_cast<int>(side), static_cast<int>(step), /*spreads=*/false};
      const int columns = depthwise_tiles::TileOf(config, work, 2).columns;
      const int main = columns * config.step;
      EXPECT_EQ(depthwise_tiles::SlotOf(main, main, 2) % 2, 1) << side << " by " << step;
      EXPECT_EQ(depthwise_tiles::SlotOf(main, main, 4), main);
    }
  }
}

TEST(DepthwiseTiles, LeaveTheRestToOthers) {
  const DataType half = DataType::kMLFloat16;
  for (const Primitive primitive : kAll) {
    const auto fits = [&](const Task& task) { return PlanDepthwiseTiles(task).has_value(); };
    const Task task = MakeTask(primitive, half, {});
    ASSERT_TRUE(fits(task));
    EXPECT_FALSE(fits(MakeTask(primitive, DataType::kDouble, {})));
    // Vectors are of eight channels in half, of four in float.
    EXPECT_FALSE(fits(MakeTask(primitive, half, {.channels = 44})));
    EXPECT_TRUE(fits(MakeTask(primitive, DataType::kFloat, {.channels = 44})));
    EXPECT_FALSE(fits(MakeTask(primitive, DataType::kFloat, {.channels = 42})));
    for (const Operand operand : {kX, kY}) {
      Task misaligned = task;
      misaligned.alignment.at(operand) = 8;
      EXPECT_FALSE(fits(misaligned));
    }
    Task with_gaps = task;
    with_gaps.problem.x_strides = {50000, 1, 1600, 56};
    EXPECT_TRUE(fits(with_gaps));
    with_gaps.problem.x_strides = {50000, 1, 1600, 52};
    EXPECT_FALSE(fits(with_gaps));
    Task channels_first = task;
    channels_first.problem.y_strides = ContiguousStrides(DimsOf(task.problem, kY));
    EXPECT_FALSE(fits(channels_first));
    Task dilated = task;
    dilated.problem.axes[1].dilation = 2;
    EXPECT_FALSE(fits(dilated));
    Task uneven = task;
    uneven.problem.axes[0].stride = 2;
    EXPECT_FALSE(fits(uneven));
    Task large = task;
    large.problem.x_strides[3] = std::int64_t{1} << 24;
    EXPECT_FALSE(fits(large));
    EXPECT_FALSE(fits(MakeTask(primitive, half, {.batch = std::int64_t{1} << 30})));
    EXPECT_FALSE(fits(MakeTask(primitive, half, {.batch = 0})));
  }
}

TEST(DepthwiseTiles, StridesOfDimsOfOneDoNotCount) {
  Task task = MakeTask(Primitive::kForward, DataType::kMLFloat16, {.height = 1, .width = 1});
  task.problem.x_strides = {48, 1, 3, 5};
  const std::optional<DepthwiseTiles> tiles = PlanDepthwiseTiles(task);
  ASSERT_TRUE(tiles.has_value());
  EXPECT_EQ(tiles->arguments.from.row_stride, 0);
  EXPECT_EQ(tiles->arguments.from.column_stride, 0);
}

TEST(DepthwiseTiles, SumFiltersInSlicesOfTheShape) {
  const Primitive filter = Primitive::kBackwardFilter;
  const DataType half = DataType::kMLFloat16;
  const Layer layer = {.batch = 128, .channels = 144, .height = 56, .width = 56};
  const std::optional<DepthwiseTiles> tiles = PlanDepthwiseTiles(MakeTask(filter, half, layer));
  ASSERT_TRUE(tiles.has_value());
  const depthwise_tiles::Arguments& arguments = tiles->arguments;
  EXPECT_EQ(arguments.groups.divisor, 5U);
  EXPECT_EQ(arguments.blocks_of_group, 128 * arguments.across.divisor * arguments.down.divisor);
  EXPECT_EQ(tiles->blocks, std::int64_t{arguments.slices} * 5);
  // All at once on 132 multiprocessors, and not many fewer.
  const int at_once =
      132 * depthwise_tiles::BlocksAtOnce(tiles->config, Work::kFilter) *
      (depthwise_tiles::kPairs * depthwise_tiles::MostTiles(tiles->config, Work::kFilter)) /
      tiles->threads;
  EXPECT_LE(tiles->blocks, at_once);
  EXPECT_GE(tiles->blocks, at_once * 9 / 10);
  EXPECT_EQ(tiles->workspace, std::size_t{arguments.slices} * 144 * 9 * sizeof(float));
  // Of less there is a slice for each block.
  const std::optional<DepthwiseTiles> small =
      PlanDepthwiseTiles(MakeTask(filter, half, {.batch = 1, .height = 7, .width = 7}));
  ASSERT_TRUE(small.has_value());
  EXPECT_EQ(small->arguments.slices, small->arguments.blocks_of_group);
}

/// Both gradients as one where a pixel of dY meets that of x in the same place at the center.
TEST(DepthwiseTiles, BothGradientsOfTheSameSizeAreOne) {
  const auto both = [](const Layer& layer, DataType type = DataType::kMLFloat16) {
    return PlanBothByDepthwiseTiles(
        MakeTask(Primitive::kBackwardData, type, layer),
        MakeTask(Primitive::kBackwardFilter, type, layer));
  };
  for (const std::int64_t side : {3, 5, 7}) {
    const Layer layer = {.side = side, .pad = side / 2};
    for (const DataType type : {DataType::kMLFloat16, DataType::kFloat}) {
      const std::optional<DepthwiseTiles> tiles = both(layer, type);
      ASSERT_TRUE(tiles.has_value());
      EXPECT_EQ(tiles->work, Work::kBoth);
      EXPECT_TRUE(tiles->arguments.reversed);
      EXPECT_EQ(tiles->arguments.to_row, 0);
      EXPECT_EQ(tiles->arguments.from_column, 0);
      EXPECT_EQ(tiles->blocks, 2 * std::int64_t{tiles->arguments.slices}) << "groups of channels";
      EXPECT_EQ(
          tiles->workspace,
          tiles->arguments.slices * 48 * static_cast<std::size_t>(side * side) * sizeof(float));
      EXPECT_LE(tiles->shared_bytes, depthwise_tiles::kMostShared);
    }
    EXPECT_FALSE(both(layer, DataType::kDouble));
    EXPECT_FALSE(both({.side = side, .pad = 0}));
    EXPECT_FALSE(both({.side = side, .pad = side - 1}));
  }
  EXPECT_FALSE(both({.side = 3, .step = 2, .pad = 1}));
  EXPECT_FALSE(both({.side = 2, .step = 2, .pad = 0}));
  const Task data = MakeTask(Primitive::kBackwardData, DataType::kMLFloat16, {});
  const Task filter = MakeTask(Primitive::kBackwardFilter, DataType::kMLFloat16, {});
  EXPECT_FALSE(PlanBothByDepthwiseTiles(filter, data));
  Task shifted = data;
  shifted.problem.axes[0].pad_begin = 0;
  shifted.problem.axes[0].pad_end = 2;
  EXPECT_FALSE(PlanBothByDepthwiseTiles(shifted, filter));
  Task with_gaps = filter;
  with_gaps.problem.x_strides = {50000, 1, 1600, 56};
  EXPECT_FALSE(PlanBothByDepthwiseTiles(data, with_gaps)) << "dX is laid out otherwise than x";
}

}  // namespace
}  // namespace gradsmith::conv
