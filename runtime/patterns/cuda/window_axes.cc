#include "patterns/cuda/window_axes.h"

#include <algorithm>
#include <cstdint>

#include "core/tiles.h"
#include "core/window.h"
#include "cuda/divisor.h"
#include "patterns/cuda/windows_launch.h"
#include "patterns/windows.h"

namespace gradsmith::cuda {

using internal::CeilDivide;
using internal::WindowAxis;
using internal::WindowsTask;

void Cut(std::int64_t tile, TileAxis* axis) {
  axis->tiles = static_cast<int>(CeilDivide(axis->input, tile));
  axis->tile = static_cast<int>(CeilDivide(axis->input, axis->tiles));
  axis->windows = axis->output;
  axis->held = axis->input;
  if (axis->tiles > 1) {
    axis->windows = std::min(((axis->tile + axis->span - 2) / axis->stride) + 1, axis->output);
    axis->held = static_cast<int>(std::min<std::int64_t>(
        (std::int64_t{axis->windows - 1} * axis->stride) + axis->span, axis->input));
  }
  axis->cells = static_cast<int>(CeilDivide(axis->windows, axis->apart));
}

TileAxis AxisOf(const WindowAxis& windows) {
  TileAxis axis;
  axis.input = static_cast<int>(windows.input);
  axis.output = static_cast<int>(windows.output);
  // More is as much: there is one window.
  axis.stride = static_cast<int>(std::min(windows.stride, kMostWindowPositions));
  axis.dilation = static_cast<int>(windows.dilation);
  axis.pad_begin = static_cast<int>(windows.pad_begin);
  axis.span = static_cast<int>(internal::WindowSpan(windows.size, windows.dilation));
  axis.apart = static_cast<int>(std::min(CeilDivide(axis.span, axis.stride), windows.output));
  Cut(windows.input, &axis);
  return axis;
}

void FillDivisorsOf(TileAxis* axis) {
  axis->by_stride = DivisorOf(axis->stride);
  axis->by_tiles = DivisorOf(axis->tiles);
  axis->by_tile = DivisorOf(axis->tile);
  axis->by_windows = DivisorOf(axis->windows);
  axis->by_held = DivisorOf(axis->held);
  axis->by_cells = DivisorOf(axis->cells);
}

bool HasAll(const WindowsTask& windows) {
  return internal::SiteTotal(internal::SiteCounts(windows, /*of_output=*/false)) > 0 &&
         internal::SiteTotal(internal::SiteCounts(windows, /*of_output=*/true)) > 0 &&
         windows.places.channel <= kMostWindowPositions;
}

}  // namespace gradsmith::cuda
