#include "patterns/cuda/windows.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/tiles.h"
#include "core/window.h"
#include "cuda/alignment.h"
#include "cuda/kernel_table.h"
#include "cuda/module.h"
#include "patterns/cuda/window_tiles.h"
#include "patterns/cuda/windows_launch.h"

namespace gradsmith::cuda {

namespace {

using internal::kWindowAxes;
using internal::PerDim;
using internal::WindowAxis;
using internal::WindowsGeometry;
using internal::WindowsTask;

/// WindowsKernel is which of an operator's kernels computes a task.
enum class WindowsKernel : std::uint8_t {
  kWhole,
  kWholeChannels,
  kTilesOfChannels,
  kTiles,
  kVolumesOfChannels,
  kVolumes,
  kChannels,
  kElements
};

WindowsGeometry GeometryOf(const OpTask& task) {
  WindowsGeometry geometry;
  int next = 0;
  for (WindowAxis& axis : geometry.axes) {
    for (std::int64_t* field :
         {&axis.input, &axis.output, &axis.size, &axis.stride, &axis.dilation, &axis.pad_begin,
          &axis.pad_end}) {
      *field = task.choices[next++];
    }
  }
  geometry.rank = static_cast<int>(task.choices[next++]);
  const std::int64_t flags = task.choices[next];
  geometry.counts_padding = (flags & 1) != 0;
  geometry.column_major = (flags & 2) != 0;
  return geometry;
}

/// How many positions along each dim the t-th tensor of a task has.
PerDim<std::int64_t>
CountsOf(const WindowsKind& kind, const OpTask& task, const WindowsTask& windows, int t) {
  const bool is_over_input =
      kind.gathers ? t == task.operands() - 1 || (kind.reads_input && t == 1) : t == 0;
  return internal::SiteCounts(windows, /*of_output=*/!is_over_input);
}

/// Whether 16 bytes of neighbours along a dim, which have the stride 1, lie whole in a tensor where
/// the other dims have these counts and strides.
bool HasVectors(
    const TensorRef& tensor,
    int elements,
    std::initializer_list<std::pair<std::int64_t, std::int64_t>> others) {
  return AlignmentClass(tensor.data, tensor.type) == kVectorBytes &&
         std::ranges::all_of(
             others, [&](const auto& dim) { return dim.first == 1 || dim.second % elements == 0; });
}

/// Whether all tensors have vectors along the channels.
bool HasChannels(
    const WindowsKind& kind,
    const OpTask& task,
    const WindowsTask& windows,
    int elements) {
  for (int t = 0; t < task.operands(); ++t) {
    const PerDim<std::int64_t>& strides = windows.strides[t];
    const PerDim<std::int64_t> counts = CountsOf(kind, task, windows, t);
    if (task.tensors[t].present &&
        (strides.channel != 1 || !HasVectors(
                                     task.tensors[t], elements,
                                     {{counts.batch, strides.batch},
                                      {counts.axes[0], strides.axes[0]},
                                      {counts.axes[1], strides.axes[1]},
                                      {counts.axes[2], strides.axes[2]}}))) {
      return false;
    }
  }
  return windows.channels % elements == 0;
}

/// Whether all tensors are aligned, and contiguous with the spatial axes last.
bool AreContiguous(const WindowsKind& kind, const OpTask& task, const WindowsTask& windows) {
  for (int t = 0; t < task.operands(); ++t) {
    if (!task.tensors[t].present) {
      continue;
    }
    const PerDim<std::int64_t> counts = CountsOf(kind, task, windows, t);
    const PerDim<std::int64_t>& strides = windows.strides[t];
    std::int64_t step = 1;
    bool is_contiguous = AlignmentClass(task.tensors[t].data, task.tensors[t].type) == kVectorBytes;
    const auto follows = [&](std::int64_t count, std::int64_t stride) {
      is_contiguous = is_contiguous && (count == 1 || stride == step);
      step *= count;
    };
    for (int axis = kWindowAxes - 1; axis >= 0; --axis) {
      follows(counts.axes[axis], strides.axes[axis]);
    }
    follows(counts.channel, strides.channel);
    follows(counts.batch, strides.batch);
    if (!is_contiguous) {
      return false;
    }
  }
  return true;
}

std::string KernelName(WindowsKernel kernel, const WindowsKind& kind, const OpTask& task) {
  constexpr std::array<std::string_view, 8> kNames = {
      "whole",   "whole_channels", "tiles_of_channels", "tiles", "volumes_of_channels",
      "volumes", "channels",       "elements"};
  return "gradsmith_windows_" + std::string(kNames[static_cast<std::size_t>(kernel)]) + "_" +
         std::string(kind.kernels) + "_" + std::string(KernelSuffix(task.lead().type));
}

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

/// Whether each channel has one window, with all of its elements and no more.
bool IsWhole(const WindowsTask& task) {
  return std::ranges::all_of(task.axes, [](const WindowAxis& axis) {
    return axis.output == 1 && axis.size == axis.input && axis.dilation == 1 &&
           axis.pad_begin == 0 && axis.pad_end == 0;
  });
}

/// The same task with one axis, where all tensors are contiguous and each channel has one window.
WindowsTask AlongOneAxis(const WindowsTask& task) {
  WindowsTask flat = task;
  WindowAxis& last = flat.axes[kWindowAxes - 1];
  for (WindowAxis& axis : std::span(flat.axes).first(kWindowAxes - 1)) {
    last.input *= axis.input;
    axis = {};
  }
  last.size = last.input;
  return flat;
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

/// Nothing where the kernel `whole` does not serve.
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

/// How many threads the kernel `whole` takes.
std::int64_t ThreadsOf(const WindowsKind& kind, const WholeLaunch& launch, int elements) {
  if (kind.gathers && kind.shares() && launch.has_vectors) {
    return internal::CeilDivide(
        launch.channels * launch.size, std::int64_t{kSpreadBatch} * elements);
  }
  return launch.channels * launch.sharing;
}

/// Whether the kernel `whole` is quicker than others, which may take contiguous tensors by tiles.
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

/// Whether kernels can count along all axes.
Status CheckPositions(const WindowsTask& task) {
  for (const WindowAxis& axis : task.axes) {
    const internal::Wide padded = internal::Wide{axis.input} + axis.pad_begin + axis.pad_end;
    const internal::Wide most = std::max(padded, internal::WindowSpan(axis.size, axis.dilation));
    if (most > kMostWindowPositions) {
      return Unsupported(
          "an axis of " + std::to_string(axis.input) + " positions, with pads " +
          std::to_string(axis.pad_begin) + ", " + std::to_string(axis.pad_end) +
          " and windows of size " + std::to_string(axis.size) + ", passes 2^30 positions; " +
          "expected at most 2^30 on CUDA");
    }
  }
  return {};
}

/// Threads go along memory: the tensor that is written has the strides.
WindowsLaunch MakeLaunch(
    const WindowsTask& task,
    const WindowsKind& kind,
    WindowsKernel kernel,
    const PerDim<std::int64_t>& strides,
    int elements) {
  WindowsLaunch launch;
  launch.task = task;
  launch.channels_first =
      kernel == WindowsKernel::kChannels ||
      (kernel == WindowsKernel::kElements && strides.channel < strides.axes[kWindowAxes - 1]);
  const PerDim<std::int64_t> counts = internal::SiteCounts(task, !kind.gathers);
  const std::int64_t lanes = kernel == WindowsKernel::kChannels ? elements : 1;
  const std::int64_t(&axes)[kWindowAxes] = counts.axes;
  const std::array<std::int64_t, WindowsLaunch::kSizes> sizes =
      launch.channels_first ? std::array{counts.channel / lanes, axes[2], axes[1], axes[0]}
                            : std::array{axes[2], axes[1], axes[0], counts.channel};
  launch.count = internal::SiteTotal(counts) / lanes;
  std::ranges::copy(sizes, launch.sizes);
  launch.is_wide = launch.count >= kMostDivided;
  for (std::size_t dim = 0; dim < sizes.size() && launch.count > 0 && !launch.is_wide; ++dim) {
    launch.by_size[dim] = DivisorOf(sizes[dim]);
  }
  for (int axis = 0; axis < kWindowAxes; ++axis) {
    launch.by_stride[axis] = DivisorOf(std::min(task.axes[axis].stride, kMostDivided));
  }
  return launch;
}

template <typename LaunchOfKernel>
class WindowsPlan final : public internal::Plan {
 public:
  WindowsPlan(const LaunchOfKernel& launch, const LaunchShape& shape, CUkernel kernel)
      : launch_(launch), shape_(shape), kernel_(kernel) {}

  [[nodiscard]] std::size_t workspace() const override { return 0; }

  Status Run(const internal::Launch& launch) override {
    if (shape_.blocks_x == 0) {
      return {};
    }
    LaunchOfKernel windows = launch_;
    std::ranges::copy(launch.operands, windows.task.tensors);
    return Launch(kernel_, shape_, launch.stream, windows);
  }

 private:
  LaunchOfKernel launch_;
  LaunchShape shape_;
  CUkernel kernel_;
};

template <typename LaunchOfKernel>
Result<std::unique_ptr<internal::Plan>> PlanOf(
    const KernelImage& image,
    const std::string& kernel_name,
    const LaunchOfKernel& launch,
    const LaunchShape& shape) {
  const Result<CUkernel> kernel = FindKernel({&image}, kernel_name.c_str());
  if (!kernel.ok()) {
    return kernel.status();
  }
  return std::unique_ptr<internal::Plan>(
      std::make_unique<WindowsPlan<LaunchOfKernel>>(launch, shape, *kernel));
}

LaunchShape ShapeOf(std::int64_t threads) {
  return {
      .blocks_x = static_cast<unsigned>(internal::CeilDivide(threads, kWindowsThreads)),
      .threads = kWindowsThreads};
}

WindowsKernel KernelOfTiles(bool channels_last, bool has_volumes) {
  if (channels_last) {
    return has_volumes ? WindowsKernel::kVolumesOfChannels : WindowsKernel::kTilesOfChannels;
  }
  return has_volumes ? WindowsKernel::kVolumes : WindowsKernel::kTiles;
}

/// Whole planes of contiguous tensors are windows along one axis.
auto TilesOf(
    const WindowsPolicy& policy,
    const WindowsKind& kind,
    const OpTask& task,
    const WindowsTask& windows,
    bool column_major,
    bool channels_last) {
  const bool is_flat = !channels_last && !column_major && IsWhole(windows);
  const WindowsTask flat = is_flat ? AlongOneAxis(windows) : windows;
  return kind.gathers ? MakeWindowTiles(policy, kind, task, flat, column_major, channels_last)
                      : MakeReducedTiles(policy, task, flat);
}

}  // namespace

void AddChoices(const WindowsGeometry& geometry, OpTask* task) {
  for (const WindowAxis& axis : geometry.axes) {
    for (const std::int64_t field :
         {axis.input, axis.output, axis.size, axis.stride, axis.dilation, axis.pad_begin,
          axis.pad_end}) {
      task->choices.push_back(field);
    }
  }
  task->choices.push_back(geometry.rank);
  task->choices.push_back((geometry.counts_padding ? 1 : 0) + (geometry.column_major ? 2 : 0));
}

Result<std::unique_ptr<internal::Plan>> MakeWindowsPlan(
    const WindowsPolicy& policy,
    const KernelImage& image,
    const WindowsKind& kind,
    const OpTask& task) {
  const WindowsGeometry geometry = GeometryOf(task);
  const WindowsTask windows = internal::MakeWindowsTask(
      geometry, {task.tensors.begin(), static_cast<std::size_t>(task.operands())});
  const bool has_tiles = kind.has_tiles && AreContiguous(kind, task, windows);
  const auto whole = MakeWholeLaunch(policy.order, kind, task, windows, geometry.column_major);
  if (whole && IsWorthSharing(policy.order, kind, *whole, has_tiles)) {
    const WindowsKernel kernel =
        whole->has_channel_vectors ? WindowsKernel::kWholeChannels : WindowsKernel::kWhole;
    return PlanOf(
        image, KernelName(kernel, kind, task), *whole,
        ShapeOf(ThreadsOf(kind, *whole, ElementsOfVector(task.lead().type))));
  }
  if (Status status = CheckPositions(windows); !status.ok()) {
    return status;
  }
  const int elements = ElementsOfVector(task.lead().type);
  const bool channels_last = HasChannels(kind, task, windows, elements);
  if (channels_last ? kind.has_tiles && kind.gathers : has_tiles) {
    const auto tiles = TilesOf(policy, kind, task, windows, geometry.column_major, channels_last);
    if (tiles) {
      const WindowsKernel kernel = KernelOfTiles(channels_last, tiles->has_volumes);
      return PlanOf(
          image, KernelName(kernel, kind, task), tiles->launch,
          {.blocks_x = static_cast<unsigned>(tiles->blocks),
           .threads = kTileThreads,
           .shared_bytes = tiles->shared_bytes});
    }
  }
  const WindowsKernel kernel =
      channels_last && !kind.gathers ? WindowsKernel::kChannels : WindowsKernel::kElements;
  const int written = kind.gathers ? task.operands() - 1 : 1;
  const WindowsLaunch launch =
      MakeLaunch(windows, kind, kernel, windows.strides[written], elements);
  return PlanOf(image, KernelName(kernel, kind, task), launch, ShapeOf(launch.count));
}

}  // namespace gradsmith::cuda
