#include "conv/cuda/window_tiles.h"

#include <algorithm>

#include "core/tiles.h"

namespace gradsmith::conv::window {

namespace {

using cuda::DivisorOf;
using internal::CeilDivide;

TileShape ShapeOf(const Reach& reach, std::int64_t rows, std::int64_t columns, bool is_double) {
  return {
      rows, columns, ((rows - 1) * reach.step[0]) + reach.span[0],
      ((columns - 1) * reach.step[1]) + reach.span[1], is_double};
}

}  // namespace

std::int64_t RoomFor(std::int64_t shared_bytes, std::int64_t most) {
  constexpr std::int64_t kOfMultiprocessor = std::int64_t{227} * 1024;
  constexpr std::int64_t kOfSystem = 1024;  // what it keeps of a block
  return std::clamp<std::int64_t>(kOfMultiprocessor / (shared_bytes + kOfSystem), 1, most);
}

double Clocks::all(std::int64_t room, bool is_double) const {
  constexpr double kLeft = 0.4;  // of what could go on beside the longest
  const double longest = std::max({shared, tensor_cores, memory});
  const double rest = shared + tensor_cores + memory - longest;
  return longest + (rest * (is_double ? kLeft : 1) / static_cast<double>(room));
}

double CopyClocks(double own_bytes, double window_bytes) {
  // Of each multiprocessor, as all of an H200's read at once.
  constexpr double kMemoryBytesOfClock = 18;
  constexpr double kCacheBytesOfClock = 36;
  return (own_bytes / kMemoryBytesOfClock) +
         (std::max(window_bytes - own_bytes, 0.0) / kCacheBytesOfClock);
}

double ConflictsOf(const TileShape& tile) {
  return tile.columns % 8 == 0 ? 1 : 1 + (7 / std::max(static_cast<double>(tile.columns), 7.0));
}

std::optional<TileShape> BestTile(
    const Reach& reach,
    std::int64_t multiple,
    const std::function<std::optional<double>(const TileShape&)>& cost_of) {
  constexpr std::int64_t kMostPositions = 1024;
  constexpr std::int64_t kMostRows = 32;
  constexpr std::int64_t kMostColumns = 64;
  constexpr std::int64_t kBeyond = 15;  // so that there are multiples of 16 in a small image
  std::optional<TileShape> best;
  double least = 0;
  for (std::int64_t rows = 1; rows <= std::min(reach.positions[0] + kBeyond, kMostRows); ++rows) {
    for (std::int64_t columns = 1; columns <= std::min(reach.positions[1] + kBeyond, kMostColumns);
         ++columns) {
      if (rows * columns % multiple != 0 || rows * columns > kMostPositions) {
        continue;
      }
      const auto tiles = static_cast<double>(
          CeilDivide(reach.positions[0], rows) * CeilDivide(reach.positions[1], columns));
      for (const bool is_double : {true, false}) {
        const TileShape tile = ShapeOf(reach, rows, columns, is_double);
        const std::optional<double> cost = cost_of(tile);
        if (cost && (!best || *cost * tiles < least)) {
          best = tile;
          least = *cost * tiles;
        }
      }
    }
  }
  return best;
}

Tiling TilingOf(
    const TileShape& tile,
    const Reach& reach,
    std::int64_t batch,
    std::int64_t slab_chunks,
    int pixel_bytes) {
  Tiling tiling{};
  const std::array<std::int64_t, kRank> sizes = {tile.rows, tile.columns};
  std::int64_t count = batch;
  for (int i = 0; i < kRank; ++i) {
    const std::int64_t tiles = CeilDivide(reach.positions.at(i), sizes.at(i));
    tiling.tile[i] = static_cast<int>(sizes.at(i));
    tiling.tiles[i] = DivisorOf(tiles);
    count *= tiles;
  }
  tiling.tile_columns = DivisorOf(tile.columns);
  tiling.count = static_cast<int>(count);
  tiling.window_columns = DivisorOf(tile.window_columns);
  tiling.window_pixels = static_cast<int>(tile.window_pixels());
  tiling.slab_chunks = DivisorOf(slab_chunks);
  tiling.pixel_bytes = pixel_bytes;
  tiling.window_bytes = tiling.window_pixels * pixel_bytes;
  tiling.is_double = tile.is_double;
  return tiling;
}

}  // namespace gradsmith::conv::window
