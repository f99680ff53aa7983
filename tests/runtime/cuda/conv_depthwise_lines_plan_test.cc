#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "conv/cuda/depthwise_lines.h"
#include "reference/random.h"
#include "runtime/cuda/gpu_tensor.h"

/// How depthwise convolutions by lines are launched; but for the last test, needs no GPU.
namespace gradsmith::conv {
namespace {

/// A depthwise convolution in channels first along the axes.
Task TaskOf(Primitive primitive, DataType type, Dims planes, const std::vector<Axis>& axes) {
  Task task;
  task.primitive = primitive;
  Problem& problem = task.problem;
  problem.type = type;
  problem.batch = planes[0];
  problem.x_channels = problem.y_channels = problem.group = planes[1];
  problem.spatial_rank = static_cast<int>(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    Axis axis = axes[i];
    const std::int64_t reach = (axis.w - 1) * axis.dilation;
    axis.y = ((axis.x + axis.pad_begin + axis.pad_end - reach - 1) / axis.stride) + 1;
    problem.axes.at(i) = axis;
  }
  problem.x_strides = ContiguousStrides(DimsOf(problem, kX));
  problem.w_strides = ContiguousStrides(DimsOf(problem, kW));
  problem.y_strides = ContiguousStrides(DimsOf(problem, kY));
  return task;
}

Axis AxisOf(std::int64_t x, std::int64_t w, std::int64_t pad) {
  return {.x = x, .w = w, .pad_begin = pad, .pad_end = pad};
}

constexpr std::array<Primitive, 3> kAllPrimitives = {
    Primitive::kForward, Primitive::kBackwardData, Primitive::kBackwardFilter};

TEST(DepthwiseLines, TakesDenseRowsAndNoStepsOfDilation) {
  const Dims planes = {4, 6};
  for (const Primitive primitive : kAllPrimitives) {
    const auto is_taken = [&](const Task& task) { return PlanDepthwiseLines(task).has_value(); };
    const DataType type = DataType::kFloat;
    const Task task = TaskOf(primitive, type, planes, {AxisOf(9, 5, 2), AxisOf(50, 31, 15)});
    EXPECT_TRUE(is_taken(task));
    EXPECT_TRUE(is_taken(TaskOf(primitive, type, planes, {AxisOf(9000, 3000, 1500)})));
    Task both = TaskOf(
        primitive, type, planes, {{.x = 50, .w = 5, .stride = 2, .dilation = 3, .pad_begin = 2}});
    EXPECT_FALSE(is_taken(both));
    Task channels_last = task;
    channels_last.problem.x_strides = Strides{2700, 1, 300, 6};
    EXPECT_FALSE(is_taken(channels_last));
    Task grouped = task;
    grouped.problem.group = 3;
    EXPECT_FALSE(is_taken(grouped));
    Axis depths = AxisOf(16, 3, 1);
    depths.stride = depths.dilation = 2;
    EXPECT_TRUE(
        is_taken(TaskOf(primitive, type, planes, {depths, AxisOf(9, 5, 2), AxisOf(50, 3, 1)})));
    depths.pad_begin = std::int64_t{1} << 30;
    EXPECT_FALSE(
        is_taken(TaskOf(primitive, type, planes, {depths, AxisOf(9, 5, 2), AxisOf(50, 3, 1)})));
    Task large = task;
    large.problem.axes[1].pad_begin = std::int64_t{1} << 30;
    EXPECT_FALSE(is_taken(large));
    Task many = task;
    many.problem.batch = std::int64_t{1} << 30;
    EXPECT_FALSE(is_taken(many));
    EXPECT_FALSE(is_taken(TaskOf(primitive, type, planes, {AxisOf(9, 1000000, 999999)})));
  }
}

/// Tiles of all blocks together have every element of the result.
TEST(DepthwiseLines, CoversEveryElement) {
  for (const std::int64_t width : {1, 7, 8, 33, 56, 500, 20000}) {
    for (const std::int64_t height : {1, 5, 40}) {
      for (const std::int64_t dilation : {1, 2, 100}) {
        for (const DataType type : {DataType::kFloat, DataType::kDouble}) {
          Axis columns = AxisOf(width, 9, 4 * dilation);
          columns.dilation = dilation;
          const Task task =
              TaskOf(Primitive::kForward, type, {5, 7}, {AxisOf(height, 3, 1), columns});
          const std::optional<DepthwiseLines> lines = PlanDepthwiseLines(task);
          ASSERT_TRUE(lines.has_value());
          const depthwise_lines::Arguments& arguments = lines->arguments;
          const auto covered = [](const cuda::Divisor& tiles, std::int64_t of_tile) {
            return tiles.divisor * of_tile;
          };
          EXPECT_GE(covered(arguments.channel_tiles, arguments.channels_of_block), 7);
          EXPECT_GE(covered(arguments.row_tiles, arguments.to.rows.divisor), height);
          EXPECT_GE(covered(arguments.phase_tiles, arguments.to.phases.divisor), dilation);
          EXPECT_GE(covered(arguments.run_tiles, arguments.to.positions) * dilation, width);
          const std::int64_t runs = std::int64_t{arguments.runs.divisor} *
                                    arguments.to.phases.divisor * arguments.to.rows.divisor *
                                    arguments.channels_of_block * arguments.images_of_block;
          EXPECT_GE(lines->threads, runs);
          EXPECT_LE(lines->threads, depthwise_lines::kThreads);
          EXPECT_LE(lines->shared_bytes, depthwise_lines::kMostSharedBytes);
        }
      }
    }
  }
}

/// Also where rows by large steps and dilated columns each want many.
TEST(DepthwiseLines, HasNoMoreThreadsThanItsKernels) {
  for (const std::int64_t step : {2, 33, 40, 128, 300}) {
    const Axis rows = {.x = 400, .w = 3, .stride = step, .pad_begin = 1, .pad_end = 1};
    const Axis columns = {.x = 400, .w = 2, .dilation = 8};
    for (const Primitive primitive : kAllPrimitives) {
      const Task task = TaskOf(primitive, DataType::kFloat, {8, 64}, {rows, columns});
      const std::optional<DepthwiseLines> lines = PlanDepthwiseLines(task);
      EXPECT_TRUE(lines || step > depthwise_lines::kThreads) << step;
      EXPECT_LE(lines ? lines->threads : 0, depthwise_lines::kThreads) << step;
    }
  }
}

TEST(DepthwiseLines, ReadsAlignedPiecesWithTapsMovedByAsMuch) {
  const auto taps_of = [](DataType type, std::int64_t width, std::int64_t pad) {
    const Task task = TaskOf(Primitive::kForward, type, {2, 3}, {AxisOf(width, 31, pad)});
    const std::optional<DepthwiseLines> lines = PlanDepthwiseLines(task);
    EXPECT_TRUE(lines.has_value());
    return lines ? std::array{lines->arguments.from.planes.piece, lines->arguments.taps.shift}
                 : std::array{0, 0};
  };
  using PieceAndShift = std::array<int, 2>;
  EXPECT_EQ(taps_of(DataType::kFloat, 96, 15), (PieceAndShift{4, 1}));
  EXPECT_EQ(taps_of(DataType::kFloat, 96, 30), (PieceAndShift{4, 2}));
  EXPECT_EQ(taps_of(DataType::kFloat, 96, 16), (PieceAndShift{4, 0}));
  EXPECT_EQ(taps_of(DataType::kFloat, 98, 15), (PieceAndShift{2, 1}));
  EXPECT_EQ(taps_of(DataType::kFloat, 97, 15), (PieceAndShift{1, 0}));
  EXPECT_EQ(taps_of(DataType::kDouble, 96, 15), (PieceAndShift{2, 1}));
  EXPECT_EQ(taps_of(DataType::kMLFloat16, 96, 15), (PieceAndShift{8, 1}));
}

TEST(DepthwiseLines, SumsFiltersInSlicesOfTheShape) {
  Task task = TaskOf(Primitive::kBackwardFilter, DataType::kFloat, {64, 6}, {AxisOf(1500, 31, 15)});
  const std::optional<DepthwiseLines> lines = PlanDepthwiseLines(task);
  ASSERT_TRUE(lines.has_value());
  const depthwise_lines::FilterArguments& arguments = lines->filter_arguments;
  EXPECT_GT(lines->slices, 1);
  EXPECT_EQ(lines->blocks, lines->slices * 6);
  EXPECT_GE(lines->slices * arguments.tiles_of_slice, arguments.tiles);
  EXPECT_LT((lines->slices - 1) * arguments.tiles_of_slice, arguments.tiles);
  EXPECT_EQ(lines->workspace, static_cast<std::size_t>(lines->blocks) * 31 * sizeof(float));
}

TEST(DepthwiseLines, SumsAllPlanesOfTapsTogetherWhereThereIsRoom) {
  const auto plan_of = [](const Axis& depths, std::int64_t side) {
    const std::optional<DepthwiseLines> lines = PlanDepthwiseLines(TaskOf(
        Primitive::kBackwardFilter, DataType::kFloat, {8, 54},
        {depths, AxisOf(56, side, side / 2), AxisOf(56, side, side / 2)}));
    EXPECT_TRUE(lines.has_value());
    return lines.value_or(DepthwiseLines());
  };
  const DepthwiseLines together = plan_of(AxisOf(16, 3, 1), 3);
  EXPECT_EQ(together.filter_arguments.ring.divisor, 3U);
  EXPECT_EQ(together.blocks, together.slices * 54);
  EXPECT_GT(together.filter_arguments.tiles_of_slice, 3U);
  EXPECT_LE(together.shared_bytes, depthwise_lines::kMostSharedBytes);
  const DepthwiseLines large = plan_of(AxisOf(16, 3, 1), 31);
  EXPECT_EQ(large.filter_arguments.ring.divisor, 1U);
  EXPECT_EQ(large.filter_arguments.tap_depth_tiles.divisor, 3U);
  Axis dilated = AxisOf(16, 3, 2);
  dilated.dilation = 2;
  EXPECT_EQ(plan_of(dilated, 3).filter_arguments.ring.divisor, 1U);
}

using Values = std::array<std::vector<double>, kOperands>;

/// What a 1-D task's result is, computed plainly.
std::vector<double> Computed(const Task& task, const Values& values) {
  const Axis& axis = task.problem.axes[0];
  const Operand to = ResultOf(task.primitive);
  std::vector<double> result(values.at(to).size());
  const std::int64_t lines = task.problem.batch * task.problem.x_channels;
  for (std::int64_t line = 0; line < lines; ++line) {
    for (std::int64_t i = 0; i < axis.y; ++i) {
      for (std::int64_t tap = 0; tap < axis.w; ++tap) {
        const std::int64_t at = (i * axis.stride) + (tap * axis.dilation) - axis.pad_begin;
        if (at < 0 || at >= axis.x) {
          continue;
        }
        const std::array<std::int64_t, kOperands> places = {
            (line * axis.x) + at, (line % task.problem.x_channels * axis.w) + tap,
            (line * axis.y) + i};
        double product = 1;
        for (const Operand operand : {kX, kW, kY}) {
          product *= operand == to ? 1 : values.at(operand)[places.at(operand)];
        }
        result[places.at(to)] += product;
      }
    }
  }
  return result;
}

/// What operators do not ask for: pads that cut elements off, run by its plan.
class CudaConvDepthwiseLinesPlan : public cuda::GpuTest {};

TEST_F(CudaConvDepthwiseLinesPlan, TakesNegativePads) {
  reference::Random random("cuda depthwise lines and negative pads");
  for (const auto& [stride, dilation] :
       std::array<std::pair<int, int>, 4>{{{1, 1}, {2, 1}, {3, 1}, {1, 2}}}) {
    Task task = TaskOf(
        Primitive::kForward, DataType::kFloat, {2, 3},
        {{.x = 61,
          .w = 9,
          .stride = stride,
          .dilation = dilation,
          .pad_begin = -3,
          .pad_end = -5}});
    std::vector<std::shared_ptr<cuda::GpuTensor>> tensors;
    Values values;
    for (const Operand operand : {kX, kW, kY}) {
      const Dims dims = DimsOf(task.problem, operand);
      tensors.push_back(std::make_shared<cuda::GpuTensor>(
          DataType::kFloat, cuda::Sizes(dims.begin(), dims.end()), support::Layout::kContiguous));
      tensors.back()->Fill([&] { return static_cast<double>(random.Integer(-3, 3)); });
      values.at(operand) = tensors.back()->HostValues();
    }
    for (const Primitive primitive : kAllPrimitives) {
      task.primitive = primitive;
      const std::optional<DepthwiseLines> lines = PlanDepthwiseLines(task);
      ASSERT_TRUE(lines.has_value());
      const Result<std::unique_ptr<internal::Plan>> plan = MakeDepthwiseLinesPlan(task, *lines);
      ASSERT_TRUE(plan.ok()) << plan.status().message();
      const cuda::Block workspace((*plan)->workspace());
      std::array<void*, kOperands> operands{};
      for (const Operand operand : {kX, kW, kY}) {
        tensors[operand]->Upload();
        operands.at(operand) = tensors[operand]->GpuRef().data;
      }
      ASSERT_TRUE((*plan)->Run({kStream, operands, workspace.data()}).ok());
      const cuda::GpuTensor& result = *tensors[ResultOf(primitive)];
      EXPECT_EQ(result.GpuValues(), Computed(task, values)) << stride << " " << dilation;
      EXPECT_TRUE(result.SurroundingsIntact());
    }
  }
}

}  // namespace
}  // namespace gradsmith::conv
