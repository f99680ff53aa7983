#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>

#include "conv/cuda/depthwise_rows.h"

/// How depthwise convolutions of dense rows are launched; needs no GPU.
namespace gradsmith::conv {
namespace {

/// A depthwise convolution in NCHW of 4 images with 6 channels.
Task MakeTask(
    Primitive primitive,
    DataType type,
    std::array<std::int64_t, 2> size,
    std::int64_t side,
    std::int64_t step,
    std::int64_t pad) {
  Task task;
  task.primitive = primitive;
  Problem& problem = task.problem;
  problem.type = type;
  problem.batch = 4;
  problem.x_channels = problem.y_channels = problem.group = 6;
  problem.spatial_rank = 2;
  for (int i = 0; i < 2; ++i) {
    const std::int64_t y = ((size.at(i) + (2 * pad) - side) / step) + 1;
    problem.axes.at(i) = {size.at(i), side, y, step, 1, pad, pad};
  }
  problem.x_strides = ContiguousStrides(DimsOf(problem, kX));
  problem.w_strides = ContiguousStrides(DimsOf(problem, kW));
  problem.y_strides = ContiguousStrides(DimsOf(problem, kY));
  return task;
}

/// Sides and steps that there are kernels for.
constexpr std::array<std::array<std::int64_t, 2>, 7> kConfigs = {
    {{3, 1}, {5, 1}, {7, 1}, {2, 2}, {3, 2}, {4, 2}, {5, 2}}};

TEST(DepthwiseRows, ReadsByTheLargestPieceThatDividesAll) {
  const auto pieces_of = [](const Task& task) {
    const std::optional<DepthwiseRows> rows = PlanDepthwiseRows(task);
    EXPECT_TRUE(rows.has_value());
    return rows ? std::array{rows->arguments.from.piece, rows->arguments.to.piece}
                : std::array{0, 0};
  };
  using Pieces = std::array<int, 2>;
  const Primitive forward = Primitive::kForward;
  const DataType half = DataType::kMLFloat16;
  EXPECT_EQ(pieces_of(MakeTask(forward, half, {9, 56}, 3, 1, 1)), (Pieces{8, 8}));
  EXPECT_EQ(pieces_of(MakeTask(forward, half, {9, 28}, 3, 1, 1)), (Pieces{4, 4}));
  EXPECT_EQ(pieces_of(MakeTask(forward, half, {9, 14}, 3, 1, 1)), (Pieces{2, 2}));
  EXPECT_EQ(pieces_of(MakeTask(forward, half, {8, 7}, 3, 1, 1)), (Pieces{1, 1}));
  EXPECT_EQ(pieces_of(MakeTask(forward, half, {8, 48}, 5, 2, 2)), (Pieces{8, 8}));
  EXPECT_EQ(pieces_of(MakeTask(forward, DataType::kDouble, {9, 56}, 3, 1, 1)), (Pieces{2, 2}));
  EXPECT_EQ(pieces_of(MakeTask(forward, half, {9, 56}, 7, 1, 3)), (Pieces{8, 8}));
  // Even sides that halve the size.
  EXPECT_EQ(pieces_of(MakeTask(forward, half, {8, 64}, 2, 2, 0)), (Pieces{8, 8}));
  EXPECT_EQ(pieces_of(MakeTask(forward, half, {8, 64}, 4, 2, 1)), (Pieces{8, 8}));
  EXPECT_EQ(pieces_of(MakeTask(Primitive::kBackwardData, half, {8, 64}, 4, 2, 1)), (Pieces{8, 8}));
  // Other pads than those that keep the size shift x against y.
  EXPECT_EQ(pieces_of(MakeTask(forward, half, {9, 58}, 3, 1, 0)), (Pieces{1, 8}));
  EXPECT_EQ(pieces_of(MakeTask(Primitive::kBackwardData, half, {8, 56}, 3, 2, 1)), (Pieces{4, 8}));
  EXPECT_EQ(pieces_of(MakeTask(Primitive::kBackwardData, half, {8, 57}, 3, 2, 0)), (Pieces{1, 1}));
  Task misaligned = MakeTask(forward, half, {9, 56}, 3, 1, 1);
  misaligned.alignment = {2, 2, 16};
  EXPECT_EQ(pieces_of(misaligned), (Pieces{1, 8}));
  Task with_gaps = MakeTask(forward, half, {9, 56}, 3, 1, 1);
  with_gaps.problem.y_strides[2] += 4;
  EXPECT_EQ(pieces_of(with_gaps), (Pieces{8, 4}));
}

TEST(DepthwiseRows, CoversEveryElement) {
  for (const std::int64_t width : {1, 7, 8, 9, 56, 57}) {
    for (const std::int64_t pad : {0, 1, 2}) {
      for (const auto& [side, step] : kConfigs) {
        for (const Primitive primitive : {Primitive::kForward, Primitive::kBackwardData}) {
          const Task task =
              MakeTask(primitive, DataType::kFloat, {width + 6, width + 6}, side, step, pad);
          const std::optional<DepthwiseRows> rows = PlanDepthwiseRows(task);
          ASSERT_TRUE(rows.has_value());
          const depthwise_rows::Tile tile = depthwise_rows::TileOf(rows->config, 4);
          const depthwise_rows::Arguments& arguments = rows->arguments;
          const auto runs = static_cast<int>(arguments.runs.divisor);
          const auto strips = static_cast<int>(arguments.strips.divisor);
          EXPECT_GE(arguments.to_column + (runs * tile.columns), arguments.to.width);
          EXPECT_GE(arguments.to_row + (strips * tile.rows), arguments.to.height);
          EXPECT_GE(rows->blocks * rows->threads, std::int64_t{runs} * strips * 24);
        }
      }
    }
  }
}

TEST(DepthwiseRows, LeavesTheRestToTheGeneralKernels) {
  const Task task = MakeTask(Primitive::kForward, DataType::kFloat, {9, 11}, 3, 1, 1);
  ASSERT_TRUE(PlanDepthwiseRows(task).has_value());
  for (std::int64_t side = 1; side < 9; ++side) {
    for (std::int64_t step = 1; step < 4; ++step) {
      const bool has_kernel =
          std::find(kConfigs.begin(), kConfigs.end(), std::array{side, step}) != kConfigs.end();
      const Task other = MakeTask(task.primitive, DataType::kFloat, {9, 11}, side, step, 1);
      EXPECT_EQ(PlanDepthwiseRows(other).has_value(), has_kernel) << side << " by " << step;
    }
  }
  Task dilated = task;
  dilated.problem.axes[1].dilation = 2;
  EXPECT_FALSE(PlanDepthwiseRows(dilated));
  Task uneven = task;
  uneven.problem.axes[0].stride = 2;
  EXPECT_FALSE(PlanDepthwiseRows(uneven));
  Task channels_last = task;
  channels_last.problem.x_strides = Strides{594, 1, 66, 6};
  EXPECT_FALSE(PlanDepthwiseRows(channels_last));
  Task large = task;
  large.problem.x_strides[2] = std::int64_t{1} << 28;
  EXPECT_FALSE(PlanDepthwiseRows(large));
  Task many = task;
  many.problem.batch = std::int64_t{1} << 30;
  EXPECT_FALSE(PlanDepthwiseRows(many));
}

TEST(DepthwiseRows, GoesThroughSharedMemoryWhereRowsAreNotWholeVectors) {
  const auto shared_bytes = [](const Task& task) {
    const std::optional<DepthwiseRows> rows = PlanDepthwiseRows(task);
    EXPECT_TRUE(rows.has_value());
    return rows ? rows->shared_bytes : -1;
  };
  const DataType half = DataType::kMLFloat16;
  const DataType one_float = DataType::kFloat;
  for (const Primitive primitive : {Primitive::kForward, Primitive::kBackwardData}) {
    EXPECT_EQ(shared_bytes(MakeTask(primitive, half, {9, 56}, 3, 1, 1)), 0);
    EXPECT_EQ(shared_bytes(MakeTask(primitive, one_float, {9, 28}, 3, 1, 1)), 0);
    EXPECT_EQ(shared_bytes(MakeTask(primitive, DataType::kDouble, {7, 7}, 3, 1, 1)), 0);
    EXPECT_EQ(shared_bytes(MakeTask(primitive, half, {9, 20001}, 3, 1, 1)), 0);
    Task task = MakeTask(primitive, half, {7, 7}, 3, 1, 1);
    // The 24 planes of 7x7, two strips each, are all that 128 strips could take.
    EXPECT_GT(shared_bytes(task), 24 * 7 * 7 * 2);
    EXPECT_LE(shared_bytes(task), 32768);
    task.accumulate = true;
    EXPECT_EQ(shared_bytes(task), 0);
    task.accumulate = false;
    task.problem.x_strides[0] += 7;
    EXPECT_EQ(shared_bytes(task), 0);
  }
  const Primitive filter = Primitive::kBackwardFilter;
  EXPECT_FALSE(PlanDepthwiseRows(MakeTask(filter, half, {7, 7}, 3, 1, 1)));
  EXPECT_EQ(shared_bytes(MakeTask(filter, half, {28, 28}, 3, 1, 1)), 0);
  EXPECT_EQ(shared_bytes(MakeTask(filter, half, {55, 55}, 3, 1, 1)), 0);
  EXPECT_EQ(shared_bytes(MakeTask(filter, one_float, {7, 7}, 3, 1, 1)), 0);
}

TEST(DepthwiseRows, SumsFiltersInSlicesOfTheShape) {
  Task task = MakeTask(Primitive::kBackwardFilter, DataType::kMLFloat16, {56, 56}, 3, 1, 1);
  task.problem.batch = 128;
  const std::optional<DepthwiseRows> rows = PlanDepthwiseRows(task);
  ASSERT_TRUE(rows.has_value());
  const int tiles = 7 * 14 * 128;
  EXPECT_EQ(rows->arguments.tiles, tiles);
  const int of_slice = depthwise_rows::kThreads * depthwise_rows::kTilesOfThread;
  EXPECT_EQ(rows->slices, (tiles + of_slice - 1) / of_slice);
  EXPECT_EQ(rows->blocks, rows->slices * 6);
  EXPECT_EQ(rows->workspace, static_cast<std::size_t>(rows->blocks) * 9 * sizeof(float));
}

}  // namespace
}  // namespace gradsmith::conv
