#include <cstdint>
#include <string>
#include <utility>

#include "conv/cuda/form.h"
#include "conv/cuda/graph.h"
#include "conv/task.h"
#include "cuda/support_cells.h"

namespace gradsmith::conv {

namespace {

/// Feature is what is special about a cell's convolution.
struct Feature {
  const char* name = "";
  std::int64_t x_channels = 32;
  std::int64_t y_channels = 64;
  std::int64_t group = 1;
  std::int64_t filter = 3;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t pad_begin = 1;
  std::int64_t pad_end = 1;
  bool accumulate = false;
  int alignment = 16;
};

constexpr Feature kFeatures[] = {
    {.name = "plain"},
    {.name = "pointwise", .filter = 1, .pad_begin = 0, .pad_end = 0},
    {.name = "strided", .stride = 2},
    {.name = "dilated", .dilation = 2, .pad_begin = 2, .pad_end = 2},
    {.name = "strided and dilated", .stride = 2, .dilation = 2},
    {.name = "asymmetric pads", .pad_begin = 0, .pad_end = 1},
    {.name = "grouped", .group = 4},
    {.name = "depthwise", .x_channels = 32, .y_channels = 32, .group = 32},
    {.name = "odd channels", .x_channels = 3, .y_channels = 5},
    {.name = "accumulating", .accumulate = true},
    {.name = "unaligned", .alignment = 0},
};

Task MakeTask(
    Primitive primitive,
    DataType type,
    bool channels_last,
    int spatial_rank,
    const Feature& feature) {
  constexpr std::int64_t kExtents[] = {64, 16, 8};
  Task task;
  task.primitive = primitive;
  task.accumulate = feature.accumulate;
  Problem& problem = task.problem;
  problem.type = type;
  problem.batch = 8;
  problem.x_channels = feature.x_channels;
  problem.y_channels = feature.y_channels;
  problem.group = feature.group;
  problem.spatial_rank = spatial_rank;
  for (int i = 0; i < spatial_rank; ++i) {
    Axis& axis = problem.axes[i];
    axis.x = kExtents[spatial_rank - 1];
    axis.w = feature.filter;
    axis.stride = feature.stride;
    axis.dilation = feature.dilation;
    axis.pad_begin = feature.pad_begin;
    axis.pad_end = feature.pad_end;
    axis.y = ((axis.x + axis.pad_begin + axis.pad_end - (axis.dilation * (axis.w - 1)) - 1) /
              axis.stride) +
             1;
  }
  for (const Operand operand : {kX, kW, kY}) {
    const Dims dims = DimsOf(problem, operand);
    StridesOf(problem, operand) =
        channels_last ? ChannelsLastStrides(dims) : ContiguousStrides(dims);
    task.alignment.at(operand) =
        feature.alignment > 0 ? feature.alignment : static_cast<int>(SizeOf(type));
  }
  return task;
}

cuda::SupportCell CellOf(const Task& task, bool channels_last, const Feature& feature) {
  cuda::SupportCell cell{
      .primitive = std::string(ToString(task.primitive)),
      .types = std::string(ToString(task.problem.type)),
      .type = task.problem.type,
      .channels_last = channels_last,
      .axes = task.problem.spatial_rank,
      .feature = feature.name};
  for (OperandForm& form : FormsOf(task)) {
    cell.forms.push_back(
        {std::move(form.name), [inner = form.inner](const cuda::GraphTarget& target) {
           return MakeGraph(target, inner);
         }});
  }
  return cell;
}

}  // namespace

cuda::SupportQuestions AskedOfCudnn(cuda::TypesOnCuda types_of) {
  cuda::SupportQuestions asked;
  for (const Primitive primitive :
       {Primitive::kForward, Primitive::kBackwardData, Primitive::kBackwardFilter}) {
    for (const auto types : types_of("Conv")) {
      for (const bool channels_last : {false, true}) {
        for (int axes = 1; axes <= kMaxSpatialRank; ++axes) {
          for (const Feature& feature : kFeatures) {
            const Task task = MakeTask(primitive, types.front(), channels_last, axes, feature);
            asked.cells.push_back(CellOf(task, channels_last, feature));
          }
        }
      }
    }
  }
  return asked;
}

}  // namespace gradsmith::conv
