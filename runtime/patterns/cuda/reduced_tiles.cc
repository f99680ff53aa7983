#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "core/tiles.h"
#include "cuda/alignment.h"
#include "patterns/cuda/window_axes.h"
#include "patterns/cuda/window_tiles.h"

namespace gradsmith::cuda {

namespace {

using internal::CeilDivide;
using internal::WindowsTask;

/// CutWindows sets how many windows a tile has along an axis.
void CutWindows(std::int64_t tile, TileAxis* axis) {
  axis->tiles = static_cast<int>(CeilDivide(axis->output, tile));
  axis->tile = static_cast<int>(CeilDivide(axis->output, axis->tiles));
  axis->windows = axis->tile;
  axis->held = axis->input;
  if (axis->tiles > 1) {
    axis->held = static_cast<int>(std::min<std::int64_t>(
        (std::int64_t{axis->windows - 1} * axis->stride) + axis->span, axis->input));
  }
}

/// ReducedTiler finds the tiles of windows of a reduction.
class ReducedTiler {
 public:
  ReducedTiler(const WindowsPolicy& policy, const OpTask& task, const WindowsTask& windows)
      : policy_(policy), element_(static_cast<std::int64_t>(SizeOf(task.lead().type))) {
    launch_.task = windows;
    for (const auto& [axis, given] :
         {std::pair(&launch_.planes, 0), {&launch_.rows, 1}, {&launch_.columns, 2}}) {
      *axis = AxisOf(windows.axes[given]);
      CutWindows(axis->output, axis);
    }
    launch_.channels = windows.channels * windows.batch;
    launch_.elements = windows.places.channel;
    launch_.input_planes = launch_.planes.input;
    launch_.window_planes = launch_.planes.output;
    launch_.ring = std::min(launch_.planes.span, launch_.planes.input);
  }

  std::optional<WindowTiles> Find() {
    const bool fits =
        Fits() || CutAxis(&launch_.rows) ||
        (launch_.rows.input == 1 && launch_.rows.output == 1 && CutAxis(&launch_.columns));
    if (!fits) {
      return std::nullopt;
    }
    JoinChannels();
    CutPlanes();
    launch_.channel_tiles = static_cast<int>(CeilDivide(launch_.channels, launch_.tile_channels));
    if (Blocks() > std::numeric_limits<int>::max()) {
      return std::nullopt;
    }
    for (TileAxis* axis : {&launch_.planes, &launch_.rows, &launch_.columns}) {
      FillDivisorsOf(axis);
    }
    launch_.by_plane = DivisorOf(std::int64_t{launch_.rows.held} * launch_.columns.held);
    launch_.plane_input = static_cast<int>(PlaneBytes() / element_);
    return WindowTiles{launch_, Blocks(), static_cast<unsigned>(launch_.ring * PlaneBytes())};
  }

 private:
  [[nodiscard]] std::int64_t Blocks() const {
    return std::int64_t{launch_.planes.tiles} * launch_.rows.tiles * launch_.columns.tiles *
           CeilDivide(launch_.channels, launch_.tile_channels);
  }

  /// What is held of a plane, which may begin within a vector.
  [[nodiscard]] std::int64_t PlaneBytes() const {
    const std::int64_t held =
        std::int64_t{launch_.rows.held} * launch_.columns.held * launch_.tile_channels * element_;
    return (CeilDivide(held, kVectorBytes) + 1) * kVectorBytes;
  }

  [[nodiscard]] bool Fits() const {
    // First what would pass 64 bits.
    return std::int64_t{launch_.rows.held} * launch_.columns.held <= policy_.tile_bytes &&
           launch_.ring <= policy_.tile_bytes / PlaneBytes();
  }

  /// Cuts an axis into as few tiles as fit.
  bool CutAxis(TileAxis* axis) {
    std::int64_t least = 1;
    for (std::int64_t most = axis->output; least < most;) {
      const std::int64_t middle = least + ((most - least + 1) / 2);
      CutWindows(middle, axis);
      if (Fits()) {
        least = middle;
      } else {
        most = middle - 1;
      }
    }
    CutWindows(least, axis);
    return Fits();
  }

  /// Has tiles of one plane each take several channels, as long as there are many.
  void JoinChannels() {
    const bool is_whole = launch_.planes.input == 1 && launch_.planes.output == 1 &&
                          launch_.rows.tiles == 1 && launch_.columns.tiles == 1;
    const std::int64_t most = is_whole ? launch_.channels / policy_.many_blocks : 1;
    while (launch_.tile_channels < most) {
      ++launch_.tile_channels;
      if (!Fits()) {
        --launch_.tile_channels;
        break;
      }
    }
  }

  /// Cuts windows of several planes where there are few tiles: neighbours hold planes in common.
  void CutPlanes() {
    const TileAxis& planes = launch_.planes;
    const std::int64_t shared = std::max(planes.span - planes.stride, 0);
    const std::int64_t few = CeilDivide(policy_.planes_for_shared * shared, planes.stride) + 1;
    const std::int64_t tiles = std::min(
        CeilDivide(policy_.waves * policy_.many_blocks, Blocks()),
        CeilDivide(std::int64_t{planes.output}, few));
    CutWindows(CeilDivide(std::int64_t{planes.output}, tiles), &launch_.planes);
  }

  const WindowsPolicy& policy_;
  std::int64_t element_;
  TilesLaunch launch_;
};

}  // namespace

std::optional<WindowTiles>
MakeReducedTiles(const WindowsPolicy& policy, const OpTask& task, const WindowsTask& windows) {
  return HasAll(windows) ? ReducedTiler(policy, task, windows).Find() : std::nullopt;
}

}  // namespace gradsmith::cuda
