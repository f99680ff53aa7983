#include "patterns/cuda/windows.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/tiles.h"
#include "core/window.h"
#include "cuda/alignment.h"
#include "cuda/kernel_table.h"
#include "cuda/module.h"
#include "patterns/cuda/site_launch.h"
#include "patterns/cuda/whole_launch.h"
#include "patterns/cuda/window_tiles.h"
#include "patterns/cuda/window_vectors.h"
#include "patterns/cuda/windows_launch.h"

namespace gradsmith::cuda {

namespace {

using internal::kWindowAxes;
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

std::string KernelName(WindowsKernel kernel, const WindowsKind& kind, const OpTask& task) {
  constexpr std::array<std::string_view, 8> kNames = {
      "whole",   "whole_channels", "tiles_of_channels", "tiles", "volumes_of_channels",
      "volumes", "channels",       "elements"};
  return "gradsmith_windows_" + std::string(kNames[static_cast<std::size_t>(kernel)]) + "_" +
         std::string(kind.kernels) + "_" + std::string(KernelSuffix(task.lead().type));
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
  const bool has_vectors = channels_last && !kind.gathers;
  const WindowsKernel kernel = has_vectors ? WindowsKernel::kChannels : WindowsKernel::kElements;
  const int written = kind.gathers ? task.operands() - 1 : 1;
  const WindowsLaunch launch =
      MakeSiteLaunch(kind, windows, windows.strides[written], has_vectors ? elements : 1);
  return PlanOf(image, KernelName(kernel, kind, task), launch, ShapeOf(launch.count));
}

}  // namespace gradsmith::cuda
