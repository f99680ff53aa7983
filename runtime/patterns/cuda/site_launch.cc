#include "patterns/cuda/site_launch.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "cuda/divisor.h"
#include "patterns/windows.h"

namespace gradsmith::cuda {

using internal::kWindowAxes;
using internal::PerDim;
using internal::WindowsTask;

WindowsLaunch MakeSiteLaunch(
    const WindowsKind& kind,
    const WindowsTask& task,
    const PerDim<std::int64_t>& strides,
    std::int64_t lanes) {
  WindowsLaunch launch;
  launch.task = task;
  launch.channels_first = lanes > 1 || strides.channel < strides.axes[kWindowAxes - 1];
  const PerDim<std::int64_t> counts = internal::SiteCounts(task, !kind.gathers);
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

}  // namespace gradsmith::cuda
