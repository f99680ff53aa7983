#include "patterns/cuda/window_tiles.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "core/tiles.h"
#include "core/window.h"
#include "cuda/alignment.h"
#include "patterns/cuda/window_axes.h"

namespace gradsmith::cuda {

namespace {

using internal::CeilDivide;
using internal::WindowAxis;
using internal::WindowsTask;

/// Sums at the ends of a tile's vectors that are none's, at most.
constexpr std::int64_t kMostPadding = 16;

bool HasOnePlane(const WindowsTask& windows) {
  const WindowAxis& planes = windows.axes[0];
  return planes.input == 1 && planes.output == 1 && planes.size == 1;
}

/// Tiler finds the tiles of a task.
class Tiler {
 public:
  Tiler(
      const WindowsPolicy& policy,
      const WindowsKind& kind,
      const OpTask& task,
      const WindowsTask& windows,
      bool column_major,
      bool channels_last)
      : policy_(policy),
        kind_(kind),
        channels_last_(channels_last),
        element_(static_cast<std::int64_t>(SizeOf(task.lead().type))),
        sum_(std::max<std::int64_t>(element_, sizeof(float))),
        samples_(channels_last ? windows.batch : 1),
        has_volumes_(!kind.shares() && !HasOnePlane(windows)) {
    launch_.task = windows;
    launch_.planes = AxisOf(windows.axes[0]);
    launch_.rows = AxisOf(windows.axes[1]);
    launch_.columns = AxisOf(windows.axes[2]);
    launch_.channels = windows.channels * (channels_last ? 1 : windows.batch);
    launch_.elements = windows.places.channel;
    launch_.column_major = column_major;
    if (has_volumes_) {
      launch_.input_planes = launch_.planes.input;
      launch_.window_planes = launch_.planes.output;
      launch_.ring = std::min(launch_.planes.span, launch_.planes.input);
    } else if (channels_last) {
      Cut(1, &launch_.planes);
    } else {
      launch_.folds_planes = true;
      launch_.channels *= launch_.planes.input;
      Cut(1, &launch_.planes);
    }
  }

  std::optional<WindowTiles> Find() {
    if (!(channels_last_ ? CutPositions() : CutChannels())) {
      return std::nullopt;
    }
    launch_.channel_tiles = static_cast<int>(CeilDivide(launch_.channels, launch_.tile_channels));
    if (has_volumes_) {
      CutPlanes();
    }
    const std::int64_t blocks = Blocks();
    if (blocks > std::numeric_limits<int>::max()) {
      return std::nullopt;
    }
    const auto bytes = static_cast<unsigned>(Layout());
    FillDivisors();
    return WindowTiles{launch_, blocks, bytes, has_volumes_};
  }

 private:
  /// Whether some windows that give to one element may give to the same.
  [[nodiscard]] bool has_turns() const {
    return !kind_.shares() && (launch_.rows.apart > 1 || launch_.columns.apart > 1);
  }

  [[nodiscard]] std::int64_t Blocks() const {
    const std::int64_t planes = launch_.folds_planes ? 1 : launch_.planes.tiles;
    return samples_ * planes * launch_.rows.tiles * launch_.columns.tiles *
           CeilDivide(launch_.channels, launch_.tile_channels);
  }

  [[nodiscard]] std::int64_t TileElements() const {
    return std::int64_t{launch_.rows.tile} * launch_.columns.tile * launch_.tile_channels;
  }

  [[nodiscard]] std::int64_t TileWindows(std::int64_t pitch) const {
    return launch_.rows.windows * pitch * launch_.tile_channels;
  }

  /// Lays out the shared memory of a tile, and returns its size.
  std::int64_t Layout() {
    const std::int64_t vector = kVectorBytes / sum_;
    const std::int64_t shift = channels_last_ ? 0 : kVectorBytes / element_;
    const auto padded = [](std::int64_t bytes) {
      return CeilDivide(bytes, kVectorBytes) * kVectorBytes;
    };
    // Vectors of the result may begin before it, and end behind.
    const std::int64_t plane_sums = padded((TileElements() + (2 * shift)) * sum_);
    const std::int64_t sums = launch_.ring * plane_sums;
    if (!kind_.shares()) {
      launch_.plane_sums = static_cast<int>(plane_sums / sum_);
      // Groups of windows may begin before the first, and end behind the last.
      const std::int64_t groups = CeilDivide(
          TileWindows(launch_.columns.windows) + kMostTileGroup - 1, std::int64_t{kMostTileGroup});
      const std::int64_t slots = has_turns() ? groups * kMostTileGroup : 0;
      launch_.values_at = static_cast<int>(sums);
      launch_.names_at = static_cast<int>(launch_.values_at + padded(slots * element_));
      launch_.input_at = static_cast<int>(
          launch_.names_at + padded(slots * static_cast<std::int64_t>(sizeof(std::int16_t))));
      const std::int64_t held =
          kind_.reads_input
              ? (std::int64_t{launch_.rows.held} * launch_.columns.held * launch_.tile_channels) +
                    shift
              : 0;
      launch_.plane_input = static_cast<int>(padded(held * element_) / element_);
      return launch_.input_at + (launch_.ring * padded(held * element_));
    }
    launch_.pitch = static_cast<int>(
        channels_last_ ? launch_.columns.windows
                       : CeilDivide(launch_.columns.windows, vector) * vector);
    const bool overlaps = launch_.rows.apart > 1;
    const std::int64_t kept = padded(TileWindows(launch_.pitch) * sum_);
    const bool adds = overlaps || launch_.columns.apart > 1;
    const std::int64_t results = channels_last_ || !adds ? 0 : sums;
    // Results may lie where shares were, if these are summed along columns first.
    launch_.values_at = static_cast<int>(overlaps ? 0 : results);
    launch_.input_at =
        static_cast<int>(overlaps ? std::max(kept, results) : launch_.values_at + kept);
    const std::int64_t lines =
        overlaps ? std::int64_t{launch_.rows.tile} * launch_.pitch * launch_.tile_channels : 0;
    launch_.axes_at = static_cast<int>(launch_.input_at + padded(lines * sum_));
    return launch_.axes_at + ((launch_.rows.windows + launch_.columns.windows) * sum_) +
           (static_cast<std::int64_t>(sizeof(std::int32_t)) *
            (launch_.rows.tile + launch_.columns.tile));
  }

  bool Fits(std::int64_t most_bytes) {
    // First what would pass 32 bits.
    const std::int64_t cells =
        std::int64_t{launch_.rows.cells} * launch_.columns.cells * launch_.tile_channels;
    const std::int64_t lanes =
        channels_last_ ? std::min<std::int64_t>(kVectorBytes / element_, kMostTileGroup) : 1;
    return launch_.ring <= kMostTileElements / (TileElements() + kMostPadding) &&
           (!has_turns() || cells <= kMostTileCells * lanes * kTileThreads) &&
           TileWindows(launch_.columns.windows) <= kMostTileBytes &&
           std::int64_t{launch_.rows.held} * launch_.columns.held <= kMostTileBytes &&
           Layout() <= most_bytes;
  }

  /// Cuts an axis into as few tiles as fit.
  bool CutAxis(TileAxis* axis, std::int64_t most_bytes) {
    std::int64_t least = 1;
    for (std::int64_t most = axis->input; least < most;) {
      const std::int64_t middle = least + ((most - least + 1) / 2);
      Cut(middle, axis);
      if (Fits(most_bytes)) {
        least = middle;
      } else {
        most = middle - 1;
      }
    }
    Cut(least, axis);
    return Fits(most_bytes);
  }

  /// Cuts contiguous tensors: a tile is some channels, or some rows of one, or a part of one row.
  bool CutChannels() {
    if (has_volumes_) {
      return Fits(policy_.volume_bytes) || CutAxis(&launch_.rows, policy_.volume_bytes) ||
             (launch_.rows.input == 1 && launch_.rows.output == 1 &&
              CutAxis(&launch_.columns, policy_.volume_bytes));
    }
    if (Fits(policy_.tile_bytes)) {
      const std::int64_t most = std::max<std::int64_t>(launch_.channels / policy_.many_blocks, 1);
      while (launch_.tile_channels < most) {
        ++launch_.tile_channels;
        if (!Fits(policy_.tile_bytes)) {
          --launch_.tile_channels;
          break;
        }
      }
      return true;
    }
    if (CutAxis(&launch_.rows, policy_.tile_bytes) || Fits(policy_.most_tile_bytes)) {
      return true;
    }
    return launch_.rows.input == 1 && launch_.rows.output == 1 &&
           CutAxis(&launch_.columns, policy_.tile_bytes);
  }

  /// Cuts tensors whose channels are last: a tile is a rectangle of some channels. Neighbouring
  /// tiles have windows in common: the best has the least work beside that of its elements.
  bool CutPositions() {
    launch_.tile_channels =
        static_cast<int>(std::min(launch_.channels, policy_.channel_vectors * kVectorBytes / sum_));
    const std::int64_t most_bytes = has_volumes_ ? policy_.volume_bytes : policy_.tile_bytes;
    double least = std::numeric_limits<double>::infinity();
    TileAxis rows;
    TileAxis columns;
    const std::int64_t most = std::min<std::int64_t>(launch_.columns.input, policy_.most_cuts);
    for (std::int64_t cuts = 1; cuts <= most; ++cuts) {
      Cut(CeilDivide(launch_.columns.input, cuts), &launch_.columns);
      if (!CutAxis(&launch_.rows, most_bytes)) {
        continue;
      }
      const double work =
          static_cast<double>(launch_.rows.tiles) * launch_.columns.tiles *
          static_cast<double>(TileElements() + (2 * TileWindows(launch_.columns.windows)));
      if (work < least) {
        least = work;
        rows = launch_.rows;
        columns = launch_.columns;
      }
    }
    launch_.rows = rows;
    launch_.columns = columns;
    while (!has_volumes_ && least < std::numeric_limits<double>::infinity() &&
           rows.tiles * columns.tiles == 1 &&
           launch_.channels % (std::int64_t{2} * launch_.tile_channels) == 0 &&
           Blocks() > 2 * policy_.many_blocks) {
      launch_.tile_channels *= 2;
      if (!Fits(policy_.tile_bytes)) {
        launch_.tile_channels /= 2;
        break;
      }
    }
    return least < std::numeric_limits<double>::infinity();
  }

  /// Cuts volumes into some planes each where there are few tiles: neighbours have windows in
  /// common.
  void CutPlanes() {
    const std::int64_t few = policy_.spans_of_volume * launch_.planes.span;
    const std::int64_t most = CeilDivide(launch_.planes.input, few);
    const std::int64_t tiles = std::min(CeilDivide(policy_.many_blocks, Blocks()), most);
    Cut(CeilDivide(launch_.planes.input, tiles), &launch_.planes);
  }

  void FillDivisors() {
    for (TileAxis* axis : {&launch_.planes, &launch_.rows, &launch_.columns}) {
      FillDivisorsOf(axis);
    }
    launch_.by_channel_tiles = DivisorOf(launch_.channel_tiles);
    launch_.by_channels = DivisorOf(launch_.tile_channels);
    const int last_axis = has_volumes_ ? launch_.planes.input : launch_.rows.input;
    launch_.by_minor = DivisorOf(launch_.column_major ? last_axis : launch_.columns.input);
    launch_.by_middle = DivisorOf(launch_.rows.input);
    const std::int64_t line =
        std::int64_t{launch_.pitch} * (channels_last_ ? launch_.tile_channels : 1);
    launch_.by_line = DivisorOf(CeilDivide(line, kVectorBytes / sum_));
  }

  const WindowsPolicy& policy_;
  const WindowsKind& kind_;
  bool channels_last_;
  /// Bytes of an element and of a sum.
  std::int64_t element_;
  std::int64_t sum_;
  std::int64_t samples_;
  bool has_volumes_;
  TilesLaunch launch_;
};

}  // namespace

std::optional<WindowTiles> MakeWindowTiles(
    const WindowsPolicy& policy,
    const WindowsKind& kind,
    const OpTask& task,
    const WindowsTask& windows,
    bool column_major,
    bool channels_last) {
  const WindowAxis& depth = windows.axes[0];
  const WindowAxis& rows = windows.axes[1];
  const WindowAxis& columns = windows.axes[2];
  const bool is_found =
      !kind.reads_input || depth.size <= policy.most_taps / rows.size / columns.size;
  // Of several windows in the one plane that there is, some may not hold it.
  const bool is_shared = !windows.is_dilated && (depth.input > 1 || HasOnePlane(windows));
  if (!HasAll(windows) || (kind.shares() && !is_shared) || !is_found) {
    return std::nullopt;
  }
  return Tiler(policy, kind, task, windows, column_major, channels_last).Find();
}

}  // namespace gradsmith::cuda
