#ifndef GRADSMITH_CONV_CUDA_WINDOW_TILES_H_
#define GRADSMITH_CONV_CUDA_WINDOW_TILES_H_

#include <array>
#include <cstdint>
#include <functional>
#include <optional>

#include "conv/cuda/window_arguments.h"

/// Into which tiles the kernels of conv/cuda/window.h cut an image.
namespace gradsmith::conv::window {

/// TileShape is a tile and the window of the source that it meets.
struct TileShape {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t window_rows = 0;
  std::int64_t window_columns = 0;
  /// One tile is copied while another is multiplied.
  bool is_double = false;

  [[nodiscard]] std::int64_t windows() const { return is_double ? 2 : 1; }
  [[nodiscard]] std::int64_t positions() const { return rows * columns; }
  [[nodiscard]] std::int64_t window_pixels() const { return window_rows * window_columns; }
};

/// Reach is how many positions there are along an axis, how far their windows are apart, and how
/// long each is.
struct Reach {
  std::array<std::int64_t, kRank> positions;
  std::array<std::int64_t, kRank> step;
  std::array<std::int64_t, kRank> span;
};

/// Most shared memory of a block of threads: what every device with these tensor cores has. An
/// H200's multiprocessor has room for two such blocks.
inline constexpr int kMostShared = 99 * 1024;

/// RoomFor returns how many blocks of threads a multiprocessor has room for, `most` at most.
std::int64_t RoomFor(std::int64_t shared_bytes, std::int64_t most);

/// Clocks are those of a multiprocessor that a tile takes, by what does it.
struct Clocks {
  double shared = 0;        ///< what warps read of shared memory
  double tensor_cores = 0;  ///< the products
  double memory = 0;        ///< what is copied

  /// They go on side by side, the better the more blocks there are and if copies go ahead.
  [[nodiscard]] double all(std::int64_t room, bool is_double) const;
};

/// The clocks of loading four blocks of 8 rows, and of a product of 16 rows and 8 columns.
inline constexpr double kClocksOfLoad = 4;
inline constexpr double kClocksOfProduct = 1.5;

/// CopyClocks returns what a tile's copies take; what its window shares with others comes from the
/// cache.
double CopyClocks(double own_bytes, double window_bytes);

/// ConflictsOf returns how many turns a read of 8 rows takes: more than one where these go on in
/// the tile's next row.
double ConflictsOf(const TileShape& tile);

/// BestTile returns the tile of whose positions there are a multiple of `multiple` and by which the
/// image costs least; `cost_of` returns a tile's cost, or nothing where there is no memory for it.
std::optional<TileShape> BestTile(
    const Reach& reach,
    std::int64_t multiple,
    const std::function<std::optional<double>(const TileShape&)>& cost_of);

/// TilingOf returns what the kernels need of a tile, whose pixels are `slab_chunks` chunks in
/// memory and `pixel_bytes` in shared memory.
Tiling TilingOf(
    const TileShape& tile,
    const Reach& reach,
    std::int64_t batch,
    std::int64_t slab_chunks,
    int pixel_bytes);

}  // namespace gradsmith::conv::window

#endif  // GRADSMITH_CONV_CUDA_WINDOW_TILES_H_
