#ifndef GRADSMITH_PATTERNS_CUDA_WINDOW_TILES_LAUNCH_H_
#define GRADSMITH_PATTERNS_CUDA_WINDOW_TILES_LAUNCH_H_

#include <cstdint>

#include "cuda/divisor.h"
#include "patterns/windows_task.h"

/// How kernels that compute a gather by tiles are launched. Compiled by them as well: plain C++17.
namespace gradsmith::cuda {

/// Threads of a block.
inline constexpr int kTileThreads = 256;
/// Bytes of shared memory that every kernel may take on all devices.
inline constexpr std::int64_t kMostTileBytes = 48 << 10;
/// Neighbouring windows that a thread meets at once, at most.
inline constexpr int kMostTileGroup = 4;
/// Windows' elements are numbered in 16 bits within a tile.
inline constexpr int kMostTileElements = 1 << 14;
/// Each thread of a tile has at most this many cells of windows, or vectors of cells.
inline constexpr int kMostTileCells = 2;

/// TileAxis is the windows along the rows or columns, as of a WindowAxis, and how tiles cut it.
struct TileAxis {
  int input = 1;
  int output = 1;
  int stride = 1;
  int dilation = 1;
  int pad_begin = 0;
  /// How many positions a window reaches over.
  int span = 1;
  /// Windows so far apart have no position in common.
  int apart = 1;
  /// Along the axis: how many tiles there are, and of one of them at most: positions, windows that
  /// may hold some of these, and positions that these windows may hold.
  int tiles = 1;
  int tile = 1;
  int windows = 1;
  int held = 1;
  Divisor by_stride = {};
  Divisor by_tiles = {};
  Divisor by_tile = {};
  Divisor by_windows = {};
  Divisor by_held = {};
  /// How many cells there are along the axis: a cell has as many windows as `apart` says.
  Divisor by_cells = {};
  int cells = 1;
};

/// TilesLaunch is a gather by tiles of some channels, rows and columns of the input, or a reduction
/// by tiles of windows, a block each.
/// The columns are the task's last axis, the rows that before and the planes its first. Where the
/// input has several planes, blocks go from one to the next: a tile keeps `ring` of them at a time.
struct TilesLaunch {
  internal::WindowsTask task;
  TileAxis planes;
  TileAxis rows;
  TileAxis columns;
  /// How many channels there are: of a sample where channels are last, else of all samples; how
  /// many a tile has at most; and how many tiles that makes.
  std::int64_t channels = 1;
  int tile_channels = 1;
  int channel_tiles = 1;
  Divisor by_channel_tiles = {};
  Divisor by_channels = {};
  /// How many elements a channel has, and the last dim of the index of its elements.
  std::int64_t elements = 1;
  Divisor by_minor = {};
  bool column_major = false;
  /// Where in shared memory, in bytes, what is kept of windows lies, and the input. Sums come
  /// first.
  int values_at = 0;
  int names_at = 0;
  int input_at = 0;
  int axes_at = 0;
  /// Of sums along columns: how far apart in elements rows of windows lie, and by the vectors of
  /// a line of them.
  int pitch = 1;
  Divisor by_line = {};
  /// How many planes follow each other in a contiguous channel of the input, and of its windows.
  int input_planes = 1;
  int window_planes = 1;
  /// Whether the planes of all channels are the channels of tiles.
  bool folds_planes = false;
  /// How many planes a tile keeps, how many sums each of them takes, and how many elements of the
  /// input.
  int ring = 1;
  int plane_sums = 0;
  int plane_input = 0;
  /// What the index of an element is divided by after `by_minor`.
  Divisor by_middle = {};
  /// What of a plane tiles of windows hold at most.
  Divisor by_plane = {};
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_WINDOW_TILES_LAUNCH_H_
