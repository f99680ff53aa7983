#ifndef GRADSMITH_TESTS_RUNTIME_CUDA_CONV_LAYER_H_
#define GRADSMITH_TESTS_RUNTIME_CUDA_CONV_LAYER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "conv/task.h"
#include "gradsmith/tensor.h"
#include "gradsmith/types.h"

/// Tasks of a layer, for tests of how kernels are launched.
namespace gradsmith::conv {

struct LayerChannels {
  std::int64_t x = 1;
  std::int64_t y = 1;
  std::int64_t group = 1;
};

/// LayerAxis is a convolution along an axis, with the same pad at both ends.
inline Axis LayerAxis(
    std::int64_t x,
    std::int64_t taps,
    std::int64_t step,
    std::int64_t dilation = 1,
    std::int64_t pad = 0) {
  const std::int64_t reach = (taps - 1) * dilation;
  return {x, taps, ((x + 2 * pad - reach - 1) / step) + 1, step, dilation, pad, pad};
}

/// NhwcTask is dense, with innermost channels.
inline Task NhwcTask(
    Primitive primitive,
    DataType type,
    std::int64_t batch,
    const LayerChannels& channels,
    const std::vector<Axis>& axes) {
  Task task;
  task.primitive = primitive;
  Problem& problem = task.problem;
  problem.type = type;
  problem.batch = batch;
  problem.x_channels = channels.x;
  problem.y_channels = channels.y;
  problem.group = channels.group;
  problem.spatial_rank = static_cast<int>(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    problem.axes.at(i) = axes[i];
  }
  for (const Operand operand : {kX, kW, kY}) {
    StridesOf(problem, operand) = ChannelsLastStrides(DimsOf(problem, operand));
  }
  return task;
}

/// TaskOf is a primitive of a test's own description of a layer: batch, channels of x and y, group,
/// type, and what is the same along all axes of x.
template <typename Layer>
Task TaskOf(Primitive primitive, const Layer& layer) {
  std::vector<Axis> axes;
  axes.reserve(layer.x.size());
  for (const std::int64_t x : layer.x) {
    axes.push_back(LayerAxis(x, layer.taps, layer.step, layer.dilation, layer.pad));
  }
  return NhwcTask(
      primitive, layer.type, layer.batch, {layer.x_channels, layer.y_channels, layer.group}, axes);
}

}  // namespace gradsmith::conv

#endif  // GRADSMITH_TESTS_RUNTIME_CUDA_CONV_LAYER_H_
