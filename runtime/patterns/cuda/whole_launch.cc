#include "patterns/cuda/whole_launch.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "core/tiles.h"
#include "core/window.h"
#include "cuda/alignment.h"
#include "patterns/cuda/window_vectors.h"

namespace gradsmith::cuda {

namespace {

using internal::kWindowAxes;
using internal::PerDim;
using internal::WindowAxis;
using internal::WindowsTask;

/// How far apart the elements of a channel lie, in their order; nothing where there is no one
/// stride.
std::optional<std::int64_t> StepOf(const WindowsTask& task, const PerDim<std::int64_t>& strides) {
  std::optional<std::int64_t> step;
  std::int64_t next = 0;
  for (int axis = kWindowAxes - 1; axis >= 0; --axis) {
    const std::int64_t size = task.axes[axis].input;
    if (size == 1) {
      continue;
    }
    if (step && strides.axes[axis] != next) {
      return std::nullopt;
    }
    step = step.value_or(strides.axes[axis]);
    next = strides.axes[axis] * size;
  }
  return step.value_or(0);
}

/// Returns how many threads share each channel, of which a thread takes so many elements or
/// vectors. It depends on nothing but the problem, so that sums are the same on all devices.
int SharingOf(
    const WholeOrder& order,
    const SharingRange& range,
    std::int64_t channels,
    std::int64_t count) {
  int sharing = range.least;
  while (sharing < range.most && std::int64_t{sharing} * kWholeBatch < count &&
         (sharing < range.usual || internal::Wide{channels} * sharing < order.enough_threads)) {
    sharing *= 2;
  }
  return sharing;
}

/// Returns how many of a thread's elements are reduced at a time: all of a few, and of many about
/// as many as there are such runs.
std::int64_t RunOf(const WholeOrder& order, std::int64_t size, std::int64_t sharing) {
  std::int64_t run = order.least_run;
  while (internal::CeilDivide(size, run * sharing) > run) {
    run *= 2;
  }
  return run;
}

/// Whether all tensors over the input have vectors of a channel's neighbours.
bool HasVectorsOfElements(
    const WindowsKind& kind,
    const OpTask& task,
    const WindowsTask& windows,
    const WholeLaunch& launch,
    int elements) {
  const int input = kind.gathers ? 1 : 0;
  const int output = kind.gathers ? task.operands() - 1 : 0;
  return launch.step == 1 && (!kind.gathers || launch.output_step == 1) &&
         launch.size % elements == 0 && std::ranges::all_of(std::array{input, output}, [&](int t) {
           return HasVectors(
               task.tensors[t], elements,
               {{windows.batch, windows.strides[t].batch},
                {windows.channels, windows.strides[t].channel}});
         });
}

/// Completes the launch of a gather that gives each of a channel's elements the same share. False
/// where channels are no vectors and do not follow each other in memory.
bool SpreadsOverMemory(
    const WindowsTask& windows,
    bool is_aligned,
    int elements,
    WholeLaunch* launch) {
  const PerDim<std::int64_t>& given = windows.strides[0];
  const PerDim<std::int64_t>& output = windows.strides[1];
  const auto follow = [&](const PerDim<std::int64_t>& strides, std::int64_t step) {
    return (windows.channels == 1 || strides.channel == step) &&
           (windows.batch == 1 || strides.batch == windows.channels * step);
  };
  launch->given_step = windows.channels == 1 ? given.batch : given.channel;
  launch->has_vectors = is_aligned && launch->step == 1 && launch->size >= elements &&
                        follow(output, launch->size) && follow(given, launch->given_step);
  launch->by_size = DivisorOf(launch->size);
  return launch->has_vectors;
}

}  // namespace

bool IsWhole(const WindowsTask& task) {
  return std::ranges::all_of(task.axes, [](const WindowAxis& axis) {
    return axis.output == 1 && axis.size == axis.input && axis.dilation == 1 &&
           axis.pad_begin == 0 && axis.pad_end == 0;
  });
}

std::optional<WholeLaunch> MakeWholeLaunch(
    const WholeOrder& order,
    const WindowsKind& kind,
    const OpTask& task,
    const WindowsTask& windows,
    bool column_major) {
  const int input = kind.gathers ? 1 : 0;
  const std::optional<std::int64_t> step = StepOf(windows, windows.strides[input]);
  const std::optional<std::int64_t> output_step =
      kind.gathers ? StepOf(windows, windows.strides[task.operands() - 1]) : 0;
  if (!kind.has_whole || !IsWhole(windows) || !step || !output_step || column_major) {
    return std::nullopt;
  }
  WholeLaunch launch;
  launch.task = windows;
  launch.channels = windows.batch * windows.channels;
  launch.size = windows.places.channel;
  launch.step = *step;
  launch.output_step = *output_step;
  const int elements = ElementsOfVector(task.lead().type);
  const bool is_small = launch.size <= kMostWholeElements;
  if (is_small && HasChannels(kind, task, windows, elements)) {
    launch.channels /= elements;
    launch.channels_first = true;
    launch.has_channel_vectors = true;
    launch.sharing = SharingOf(order, order.of_channel_vectors, launch.channels, launch.size);
    if (kind.gathers && kind.shares() && launch.sharing > order.of_channel_vectors.usual) {
      return std::nullopt;  // blocks of so few channels would write short stretches of memory
    }
  } else if (kind.gathers && kind.shares()) {
    const TensorRef& output = task.tensors[1];
    const bool is_aligned = AlignmentClass(output.data, output.type) == kVectorBytes;
    if (!is_small || !SpreadsOverMemory(windows, is_aligned, elements, &launch)) {
      return std::nullopt;
    }
  } else if (HasVectorsOfElements(kind, task, windows, launch, elements)) {
    launch.has_vectors = true;
    launch.sharing = SharingOf(order, order.of_vectors, launch.channels, launch.size / elements);
  } else {
    launch.channels_first = windows.strides[input].channel < launch.step;
    launch.sharing = SharingOf(
        order, launch.channels_first ? order.of_channels : order.of_elements, launch.channels,
        launch.size);
  }
  launch.run = RunOf(order, launch.size, launch.sharing);
  return launch;
}

std::int64_t ThreadsOf(const WindowsKind& kind, const WholeLaunch& launch, int elements) {
  if (kind.gathers && kind.shares() && launch.has_vectors) {
    return internal::CeilDivide(
        launch.channels * launch.size, std::int64_t{kSpreadBatch} * elements);
  }
  return launch.channels * launch.sharing;
}

bool IsWorthSharing(
    const WholeOrder& order,
    const WindowsKind& kind,
    const WholeLaunch& launch,
    bool has_tiles) {
  if (kind.gathers && kind.shares()) {
    return true;
  }
  if (launch.has_channel_vectors || launch.has_vectors) {
    return launch.size > order.most_unshared_of_vectors;
  }
  if (kind.gathers) {
    return launch.size > order.most_unshared_of_gather;
  }
  return launch.size >
         (has_tiles && !launch.channels_first ? order.most_unshared_of_tiles : order.most_unshared);
}

}  // namespace gradsmith::cuda
