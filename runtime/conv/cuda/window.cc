#include "conv/cuda/window.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "conv/cuda/channels_last.h"
#include "conv/cuda/window_arguments.h"
#include "core/tiles.h"
#include "cuda/driver.h"
#include "cuda/module.h"
#include "cuda/tensor_ops.h"

namespace gradsmith::conv {

namespace {

using cuda::DivisorOf;
using internal::CeilDivide;
using window::CorrelateArguments;
using window::FilterArguments;
using window::kColumns;
using window::kRank;
using window::Tiling;

// --- what the kernels take ----------------------------------------------------------------------

/// The image's axes: a signal's are of an image of height 1.
using ImageAxes = std::array<Axis, kRank>;

ImageAxes AxesOf(const Problem& problem) {
  ImageAxes axes;
  std::copy_n(
      problem.axes.begin(), problem.spatial_rank, axes.begin() + (kRank - problem.spatial_rank));
  return axes;
}

constexpr int kFirstWithTensorCores = 80;
/// Channels of a group: of more, cuDNN's filter gradients are quicker (9.19 on an H200).
constexpr std::int64_t kMostOfGroup = 16;
constexpr std::int64_t kMostOfFilterGroup = 8;
/// Chunks of a pixel that a window has.
constexpr std::int64_t kMostChunksOfSlab = 8;
constexpr std::int64_t kMostChunksOfPixel = 16;

std::int64_t VectorOf(const Task& task) {
  return window::kChunkBytes / static_cast<std::int64_t>(SizeOf(task.problem.type));
}

/// Channels as a primitive reads and writes them: of the backward filter, x's and y's.
struct Channels {
  std::int64_t source;
  std::int64_t result;
  std::int64_t group_source;
  std::int64_t group_result;
};

Channels ChannelsOf(const Task& task) {
  const Problem& problem = task.problem;
  Channels channels = {problem.x_channels, problem.y_channels, 0, 0};
  if (task.primitive == Primitive::kBackwardData) {
    std::swap(channels.source, channels.result);
  }
  channels.group_source = channels.source / problem.group;
  channels.group_result = channels.result / problem.group;
  return channels;
}

/// Whether a cell's rows of the result are so narrow that one block of columns has all of one.
bool IsMerged(const Task& task) {
  const Axis& last = task.problem.axes.at(task.problem.spatial_rank - 1);
  const std::int64_t positions = task.primitive == Primitive::kForward ? 1 : last.stride;
  return task.primitive != Primitive::kBackwardFilter && task.problem.group == 1 &&
         ChannelsOf(task).result * positions <= kColumns;
}

/// The source's channels that a block of columns meets, as far as they are whole chunks or within
/// one; 0 where they are neither.
std::int64_t ChannelsOfBlock(const Channels& channels, std::int64_t vector) {
  const bool is_narrow = kColumns % channels.group_result == 0;
  if (!is_narrow && channels.group_result % kColumns != 0) {
    return 0;
  }
  const std::int64_t met =
      channels.group_source * (is_narrow ? kColumns / channels.group_result : 1);
  return met % vector == 0 || vector % met == 0 ? met : 0;
}

bool HasFewChannels(const Task& task) {
  const Channels channels = ChannelsOf(task);
  const std::int64_t vector = VectorOf(task);
  if (channels.source % vector != 0) {
    return false;
  }
  if (IsMerged(task)) {
    return channels.source / vector <= kMostChunksOfPixel;
  }
  const bool is_filter = task.primitive == Primitive::kBackwardFilter;
  const std::int64_t most = is_filter ? kMostOfFilterGroup : kMostOfGroup;
  return task.problem.group > 1 && channels.group_source <= most && channels.group_result <= most &&
         channels.result % kColumns == 0 && ChannelsOfBlock(channels, vector) != 0;
}

/// Counted in 32 bits: tiles, and the elements of an image and of what is beside it.
bool HasSmallSizes(const Task& task) {
  constexpr std::int64_t kMost = 1 << 28;
  constexpr std::int64_t kMostOffset = std::numeric_limits<std::int16_t>::max();
  const Problem& problem = task.problem;
  bool small = NumElements(DimsOf(problem, kW)) <= kMost;
  for (const Operand operand : {kX, kY}) {
    const Dims dims = DimsOf(problem, operand);
    small = small && NumElements(dims) / dims[1] <= kMost && NumElements(dims) / dims[0] <= kMost;
  }
  for (const Axis& axis : AxesOf(problem)) {
    small = small && axis.w * axis.dilation <= kMostOffset &&
            std::abs(axis.pad_begin) <= kMostOffset && axis.stride <= kColumns;
  }
  return small;
}

bool HasType(DataType type, bool allow_tf32) {
  return SizeOf(type) == 2 || (type == DataType::kFloat && allow_tf32);
}

bool Fits(const cuda::DeviceInfo& device, const Task& task, bool allow_tf32) {
  return device.compute_capability() >= kFirstWithTensorCores &&
         HasType(task.problem.type, allow_tf32) && task.problem.spatial_rank <= kRank &&
         !IsEmpty(task.problem) && IsChannelsLast(task) && HasFewChannels(task) &&
         HasSmallSizes(task);
}

// --- tiles --------------------------------------------------------------------------------------

/// What a tile costs a kernel, beside others of the same problem.
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

/// How far windows reach: from a position to the next, and beyond the last.
struct Reach {
  std::array<std::int64_t, kRank> positions;
  std::array<std::int64_t, kRank> step;
  std::array<std::int64_t, kRank> span;
};

/// Of a multiprocessor, less what the system keeps for a block.
constexpr std::int64_t kSharedOfSm = 227 * 1024;
constexpr std::int64_t kSharedOfSystem = 1024;
constexpr std::int64_t kMostShared = 112 * 1024;

/// Chooses the tile of least cost, by `cost_of` (what a tile takes, and its bytes of shared
/// memory).
template <typename CostOf>
std::optional<TileShape> BestTile(const Reach& reach, std::int64_t multiple, CostOf cost_of) {
  constexpr std::int64_t kMostPositions = 1024;
  std::optional<TileShape> best;
  double least = 0;
  for (std::int64_t rows = 1; rows <= std::min<std::int64_t>(reach.positions[0] + 15, 64); ++rows) {
    for (std::int64_t columns = 1; columns <= std::min<std::int64_t>(reach.positions[1] + 15, 128);
         ++columns) {
      if (rows * columns % multiple != 0 || rows * columns > kMostPositions) {
        continue;
      }
      for (const bool is_double : {true, false}) {
        const TileShape tile = {
            rows, columns, ((rows - 1) * reach.step[0]) + reach.span[0],
            ((columns - 1) * reach.step[1]) + reach.span[1], is_double};
        const std::optional<double> cost = cost_of(tile);
        if (!cost) {
          continue;
        }
        const double all = *cost * static_cast<double>(CeilDivide(reach.positions[0], rows)) *
                           static_cast<double>(CeilDivide(reach.positions[1], columns));
        if (!best || all < least) {
          best = tile;
          least = all;
        }
      }
    }
  }
  return best;
}

/// Blocks of threads that a multiprocessor has room for.
std::int64_t RoomFor(std::int64_t shared_bytes, std::int64_t most) {
  return std::clamp<std::int64_t>(kSharedOfSm / (shared_bytes + kSharedOfSystem), 1, most);
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
  tiling.window_bytes = tiling.window_pixels * tiling.pixel_bytes;
  tiling.is_double = tile.is_double;
  return tiling;
}

/// Parts of the channels that hold whole groups and whole blocks, and few chunks of the source.
std::int64_t SlabsOf(const Task& task) {
  const Channels channels = ChannelsOf(task);
  const std::int64_t vector = VectorOf(task);
  if (IsMerged(task)) {
    return 1;
  }
  for (std::int64_t slabs = 1; slabs <= task.problem.group; ++slabs) {
    if (task.problem.group % slabs == 0 && channels.source / slabs % vector == 0 &&
        channels.result / slabs % kColumns == 0 &&
        channels.source / slabs / vector <= kMostChunksOfSlab &&
        channels.result / slabs / kColumns <= kMostChunksOfSlab) {
      return slabs;
    }
  }
  return 0;
}

// --- forward and backward data ------------------------------------------------------------------

/// The distances from a cell at which the source is met along an axis.
std::vector<int> OffsetsOf(Primitive primitive, const Axis& axis) {
  std::set<int> offsets;
  for (std::int64_t tap = 0; tap < axis.w; ++tap) {
    const std::int64_t from = (tap * axis.dilation) - axis.pad_begin;
    if (primitive != Primitive::kBackwardData) {
      offsets.insert(static_cast<int>(from));
      continue;
    }
    for (std::int64_t first = 0; first < axis.stride; ++first) {
      if ((first - from) % axis.stride == 0) {
        offsets.insert(static_cast<int>((first - from) / axis.stride));
      }
    }
  }
  return {offsets.begin(), offsets.end()};
}

/// Writes every pair of offsets with every chunk of a block; false where there are too many.
bool MakeTable(
    const std::array<std::vector<int>, kRank>& offsets,
    std::int64_t block_chunks,
    window::Chunk* table,
    int* count) {
  const std::size_t all =
      offsets[0].size() * offsets[1].size() * static_cast<std::size_t>(block_chunks);
  if (all > window::kMostChunks) {
    return false;
  }
  *count = 0;
  for (const int row : offsets[0]) {
    for (const int column : offsets[1]) {
      for (std::int64_t place = 0; place < block_chunks; ++place) {
        table[(*count)++] = {
            {static_cast<std::int16_t>(row), static_cast<std::int16_t>(column)},
            static_cast<std::int16_t>(place)};
      }
    }
  }
  return true;
}

Reach ReachOf(
    const std::array<std::vector<int>, kRank>& offsets,
    const std::array<std::int64_t, kRank>& positions,
    const std::array<std::int64_t, kRank>& step) {
  Reach reach = {positions, step, {}};
  for (int i = 0; i < kRank; ++i) {
    reach.span.at(i) = offsets.at(i).back() - offsets.at(i).front() + 1;
  }
  return reach;
}

/// The blocks of columns of a slab: of channels next to each other, or of a cell's rows.
bool MakeColumns(const Task& task, CorrelateArguments* p) {
  const std::int64_t vector = VectorOf(task);
  const auto add = [&](int row, int column, int channel) {
    if (p->blocks == window::kMostBlocks) {
      return false;
    }
    const std::int64_t group = channel / p->group_result;
    const std::int64_t chunk = p->is_merged ? 0 : group * p->group_source / vector;
    window::ColumnBlock block = {
        {static_cast<std::int16_t>(row), static_cast<std::int16_t>(column)},
        static_cast<std::int16_t>(channel),
        static_cast<std::int16_t>(chunk),
        {}};
    for (int i = 0; i < kRank; ++i) {
      block.cells[i] =
          static_cast<int>(CeilDivide(p->result_sizes[i] - block.first[i], p->cell_sizes[i]));
    }
    p->columns[p->blocks++] = block;
    return true;
  };
  for (int channel = 0; channel < p->slab_result; channel += kColumns) {
    for (int row = 0; row < p->cell_sizes[0]; ++row) {
      for (int column = 0; column < (p->is_merged ? 1 : p->cell_sizes[1]); ++column) {
        if (!add(row, column, channel)) {
          return false;
        }
      }
    }
  }
  p->sets = static_cast<int>(CeilDivide(p->blocks, window::kBlocksOfSet));
  const bool has_one_position = p->cell_sizes[0] == 1 && p->cell_sizes[1] == 1;
  p->is_adjacent = !p->is_merged && has_one_position && p->blocks % window::kBlocksOfSet == 0;
  return true;
}

/// Whether all blocks of a set meet the same chunks.
bool SharesChunks(const CorrelateArguments& p) {
  for (int block = 1; block < p.blocks; block += window::kBlocksOfSet) {
    if (p.columns[block].chunk != p.columns[block - 1].chunk) {
      return false;
    }
  }
  return true;
}

/// Clocks of a multiprocessor that something takes, by what does it.
struct Clocks {
  double shared = 0;        ///< what warps read of shared memory
  double tensor_cores = 0;  ///< the products
  double memory = 0;        ///< what is copied, of which what windows share comes from the cache

  /// They go on side by side, the better the more blocks there are and if copies go ahead.
  [[nodiscard]] double all(std::int64_t room, bool is_double) const {
    const double longest = std::max({shared, tensor_cores, memory});
    const double rest = shared + tensor_cores + memory - longest;
    return longest + (rest * (is_double ? 0.4 : 1) / static_cast<double>(room));
  }
};

constexpr double kClocksOfLoad = 4;       // of four blocks of 8 rows
constexpr double kClocksOfProduct = 1.5;  // by all tensor cores together
constexpr double kBytesOfClock = 18;      // of memory, for each multiprocessor
constexpr double kBytesOfCacheClock = 36;

double CopyClocks(double fresh_bytes, double all_bytes) {
  return (fresh_bytes / kBytesOfClock) +
         (std::max(all_bytes - fresh_bytes, 0.0) / kBytesOfCacheClock);
}

/// How often a read of 8 rows takes two turns: where these go on in the tile's next row.
double ConflictsOf(const TileShape& tile) {
  return tile.columns % 8 == 0 ? 1 : 1 + (7 / std::max(static_cast<double>(tile.columns), 7.0));
}

Clocks CorrelateClocks(const CorrelateArguments& p, const TileShape& tile, int slab_bytes) {
  constexpr std::int64_t kWarps = window::kThreads / 32;
  const std::int64_t items =
      CeilDivide(tile.positions(), window::kRows * window::kRowBlocks) * p.sets;
  const auto steps = static_cast<double>(CeilDivide(items, kWarps) * kWarps * p.steps);
  const auto fresh =
      static_cast<double>(tile.positions() * p.source_step[0] * p.source_step[1] * slab_bytes);
  return {
      .shared = steps * ((window::kRowBlocks * (SharesChunks(p) ? 1 : 2)) + 1) * kClocksOfLoad *
                ConflictsOf(tile),
      .tensor_cores = steps * window::kRowBlocks * window::kBlocksOfSet * kClocksOfProduct,
      .memory = CopyClocks(fresh, static_cast<double>(tile.window_pixels() * slab_bytes))};
}

Clocks FilterClocks(const FilterArguments& p, const TileShape& tile, int row_blocks, int x_bytes) {
  const std::int64_t rounds = CeilDivide(tile.positions() / window::kRows, p.splits);
  const auto steps = static_cast<double>(rounds * p.splits * p.blocks);
  const auto positions = static_cast<double>(tile.positions());
  const double y_bytes =
      positions * static_cast<double>(p.y_slab_chunks.divisor) * window::kChunkBytes;
  return {
      .shared = steps * (row_blocks + 1) * kClocksOfLoad * ConflictsOf(tile),
      .tensor_cores = steps * row_blocks * kClocksOfProduct,
      .memory = CopyClocks(
          y_bytes + (positions * p.stride[0] * p.stride[1] * x_bytes),
          y_bytes + static_cast<double>(tile.window_pixels() * x_bytes))};
}

struct Correlation {
  CorrelateArguments arguments{};
  std::int64_t slabs = 1;
  int shared_bytes = 0;

  /// What lanes multiply by, of a slab.
  [[nodiscard]] std::int64_t fragment_bytes() const {
    return std::int64_t{arguments.sets} * arguments.steps * window::kFragmentBytes;
  }
  [[nodiscard]] std::size_t workspace() const {
    return static_cast<std::size_t>(slabs * fragment_bytes());
  }
};

std::optional<Correlation> MakeCorrelation(const Task& task) {
  const Problem& problem = task.problem;
  const Channels channels = ChannelsOf(task);
  const ImageAxes axes = AxesOf(problem);
  const bool is_backward = task.primitive == Primitive::kBackwardData;
  Correlation correlation;
  CorrelateArguments& p = correlation.arguments;
  correlation.slabs = SlabsOf(task);
  if (correlation.slabs == 0) {
    return std::nullopt;
  }
  p.is_backward = is_backward;
  p.is_merged = IsMerged(task);
  p.source_pitch = static_cast<int>(channels.source);
  p.result_pitch = static_cast<int>(channels.result);
  p.slab_source = static_cast<int>(channels.source / correlation.slabs);
  p.slab_result = static_cast<int>(channels.result / correlation.slabs);
  p.group_source = static_cast<int>(channels.group_source);
  p.group_result = static_cast<int>(channels.group_result);
  std::array<std::vector<int>, kRank> offsets;
  std::array<std::int64_t, kRank> cells{};
  std::array<std::int64_t, kRank> step{};
  for (int i = 0; i < kRank; ++i) {
    const Axis& axis = axes.at(i);
    offsets.at(i) = OffsetsOf(task.primitive, axis);
    step.at(i) = is_backward ? 1 : axis.stride;
    const std::int64_t cell = is_backward ? axis.stride : 1;
    cells.at(i) = CeilDivide(is_backward ? axis.x : axis.y, cell);
    p.source_sizes[i] = static_cast<int>(is_backward ? axis.y : axis.x);
    p.result_sizes[i] = static_cast<int>(is_backward ? axis.x : axis.y);
    p.cell_sizes[i] = static_cast<int>(cell);
    p.source_step[i] = static_cast<int>(step.at(i));
    p.origin[i] = offsets.at(i).front();
    p.pad[i] = static_cast<int>(axis.pad_begin);
    p.factor[i] = static_cast<int>(is_backward ? -axis.stride : 1);
    p.dilation[i] = static_cast<int>(axis.dilation);
    p.filter_sizes[i] = static_cast<int>(axis.w);
  }
  const std::int64_t vector = VectorOf(task);
  const std::int64_t met = p.is_merged ? channels.source : ChannelsOfBlock(channels, vector);
  if (!MakeColumns(task, &p) ||
      !MakeTable(offsets, std::max<std::int64_t>(met / vector, 1), p.table, &p.chunks)) {
    return std::nullopt;
  }
  p.steps = static_cast<int>(CeilDivide(p.chunks, 2));
  const std::int64_t slab_chunks = p.slab_source / vector;
  const int pixel_bytes = window::PixelBytes(static_cast<int>(slab_chunks));
  const Reach reach = ReachOf(offsets, cells, step);
  const auto shared_bytes = [&](const TileShape& tile) {
    return window::CorrelateSharedBytes(p.sets, p.steps, static_cast<int>(tile.positions())) +
           (tile.windows() * tile.window_pixels() * pixel_bytes);
  };
  const std::optional<TileShape> tile =
      BestTile(reach, 1, [&](const TileShape& shape) -> std::optional<double> {
        if (shared_bytes(shape) > kMostShared) {
          return std::nullopt;
        }
        return CorrelateClocks(p, shape, static_cast<int>(slab_chunks) * window::kChunkBytes)
            .all(RoomFor(shared_bytes(shape), window::kBlocksOfSm), shape.is_double);
      });
  if (!tile) {
    return std::nullopt;
  }
  p.tiling = TilingOf(*tile, reach, problem.batch, slab_chunks, pixel_bytes);
  p.tile_rows = window::RowsOfTile(static_cast<int>(tile->positions()));
  correlation.shared_bytes = static_cast<int>(shared_bytes(*tile));
  return correlation;
}

// --- backward filter ----------------------------------------------------------------------------

struct Filter {
  FilterArguments arguments{};
  std::int64_t slabs = 1;
  int shared_bytes = 0;
  std::int64_t blocks = 0;  ///< of threads, for each slab
  int row_blocks = 0;       ///< of the kernel

  [[nodiscard]] std::int64_t slices() const { return blocks * arguments.splits; }
  [[nodiscard]] std::size_t workspace() const {
    return static_cast<std::size_t>(slices()) *
           static_cast<std::size_t>(arguments.filter_elements) * sizeof(float);
  }
};

std::optional<Filter> MakeFilter(const cuda::DeviceInfo& device, const Task& task) {
  const Problem& problem = task.problem;
  const Channels channels = ChannelsOf(task);
  const ImageAxes axes = AxesOf(problem);
  const std::int64_t vector = VectorOf(task);
  Filter filter;
  FilterArguments& p = filter.arguments;
  filter.slabs = SlabsOf(task);
  if (filter.slabs == 0) {
    return std::nullopt;
  }
  p.x_pitch = static_cast<int>(channels.source);
  p.y_pitch = static_cast<int>(channels.result);
  p.slab_x = static_cast<int>(channels.source / filter.slabs);
  p.slab_y = static_cast<int>(channels.result / filter.slabs);
  p.group_x = static_cast<int>(channels.group_source);
  p.group_y = static_cast<int>(channels.group_result);
  p.blocks = p.slab_y / kColumns;
  p.splits = window::kFilterThreads / 32 / p.blocks;
  p.block_chunks =
      static_cast<int>(std::max<std::int64_t>(ChannelsOfBlock(channels, vector) / vector, 1));
  p.filter_taps = static_cast<int>(axes[0].w * axes[1].w);
  p.filter_elements = static_cast<int>(NumElements(DimsOf(problem, kW)));
  std::array<std::vector<int>, kRank> offsets;
  std::array<std::int64_t, kRank> positions{};
  std::array<std::int64_t, kRank> step{};
  for (int i = 0; i < kRank; ++i) {
    const Axis& axis = axes.at(i);
    offsets.at(i) = OffsetsOf(task.primitive, axis);
    positions.at(i) = axis.y;
    step.at(i) = axis.stride;
    p.x_sizes[i] = static_cast<int>(axis.x);
    p.y_sizes[i] = static_cast<int>(axis.y);
    p.stride[i] = static_cast<int>(axis.stride);
    p.origin[i] = offsets.at(i).front();
  }
  if (!MakeTable(offsets, p.block_chunks, p.table, &p.chunks)) {
    return std::nullopt;
  }
  const auto* const row_blocks = std::ranges::find_if(window::kFilterRowBlocks, [&](int most) {
    return most * window::kRows >= p.chunks * vector;
  });
  if (row_blocks == std::end(window::kFilterRowBlocks)) {
    return std::nullopt;
  }
  filter.row_blocks = *row_blocks;
  const std::int64_t x_chunks = p.slab_x / vector;
  const std::int64_t y_chunks = p.slab_y / vector;
  p.y_slab_chunks = DivisorOf(y_chunks);
  const auto pixel_bytes_of = [&](std::int64_t chunks) {
    return SizeOf(problem.type) == 2 ? window::PixelBytes(static_cast<int>(chunks))
                                     : window::FloatPixelBytes(static_cast<int>(chunks));
  };
  p.y_pixel_bytes = pixel_bytes_of(y_chunks);
  const Reach reach = ReachOf(offsets, positions, step);
  const int x_pixel_bytes = pixel_bytes_of(x_chunks);
  const auto shared_bytes = [&](const TileShape& tile) {
    return window::FilterSharedBytes(static_cast<int>(tile.positions())) +
           (tile.windows() *
            ((tile.window_pixels() * x_pixel_bytes) + (tile.positions() * p.y_pixel_bytes)));
  };
  const std::optional<TileShape> tile =
      BestTile(reach, window::kRows, [&](const TileShape& shape) -> std::optional<double> {
        const std::int64_t bytes = shared_bytes(shape);
        if (bytes > kMostShared) {
          return std::nullopt;
        }
        return FilterClocks(
                   p, shape, filter.row_blocks, static_cast<int>(x_chunks) * window::kChunkBytes)
            .all(
                RoomFor(
                    bytes, window::FilterBlocksOfSm(
                               filter.row_blocks, static_cast<int>(SizeOf(problem.type)))),
                shape.is_double);
      });
  if (!tile) {
    return std::nullopt;
  }
  p.tiling = TilingOf(*tile, reach, problem.batch, x_chunks, x_pixel_bytes);
  p.tiling.window_bytes += static_cast<int>(tile->positions()) * p.y_pixel_bytes;
  filter.shared_bytes = static_cast<int>(shared_bytes(*tile));
  const std::int64_t room =
      device.multiprocessors() *
      RoomFor(
          filter.shared_bytes,
          window::FilterBlocksOfSm(filter.row_blocks, static_cast<int>(SizeOf(problem.type))));
  filter.blocks = std::clamp<std::int64_t>(room / filter.slabs, 1, p.tiling.count);
  return filter;
}

// --- plans --------------------------------------------------------------------------------------

const char* NameOf(DataType type) {
  switch (type) {
    case DataType::kMLFloat16:
      return "half";
    case DataType::kBFloat16:
      return "bf16";
    default:
      return "tf32";
  }
}

Result<CUkernel>
FindKernel(const cuda::DeviceInfo& device, const std::string& name, int shared_bytes) {
  Result<CUkernel> kernel = cuda::FindKernel(
      {&cuda::kImage_conv_window_correlate, &cuda::kImage_conv_window_filter},
      ("gradsmith_window_" + name).c_str());
  if (!kernel.ok()) {
    return kernel;
  }
  const Status status = cuda::ToStatus(
      cuda::Driver().cuKernelSetAttribute(
          CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_bytes, *kernel, device.ordinal()),
      "asking for shared memory");
  if (!status.ok()) {
    return status;
  }
  return kernel;
}

class CorrelatePlan final : public internal::Plan {
 public:
  /// A launch that prepares the filter, and one that multiplies by it.
  struct Launches {
    CUkernel prepare;
    cuda::LaunchShape prepare_shape;
    CUkernel multiply;
    cuda::LaunchShape multiply_shape;
  };

  CorrelatePlan(const Task& task, const Correlation& correlation, const Launches& launches)
      : correlation_(correlation),
        launches_(launches),
        accumulate_(task.accumulate),
        result_(ResultOf(task.primitive)) {}

  [[nodiscard]] std::size_t workspace() const override { return correlation_.workspace(); }

  Status Run(const internal::Launch& launch) override {
    auto* stream = static_cast<CUstream>(launch.stream);
    const void* source = launch.operands[result_ == kX ? kY : kX];
    const void* filter = launch.operands[kW];
    if (Status status = cuda::Launch(
            launches_.prepare, launches_.prepare_shape, stream, correlation_.arguments, filter,
            launch.workspace);
        !status.ok()) {
      return status;
    }
    return cuda::Launch(
        launches_.multiply, launches_.multiply_shape, stream, correlation_.arguments, source,
        launch.workspace, launch.operands[result_], accumulate_);
  }

 private:
  Correlation correlation_;
  Launches launches_;
  bool accumulate_;
  Operand result_;
};

class FilterPlan final : public internal::Plan {
 public:
  FilterPlan(
      const Task& task,
      const Filter& filter,
      const cuda::LaunchShape& shape,
      CUkernel kernel)
      : filter_(filter),
        shape_(shape),
        kernel_(kernel),
        sums_(task.problem.type, nullptr, Dims{NumElements(DimsOf(task.problem, kW))}, Strides{1}) {
    sums_.accumulate = task.accumulate;
  }

  [[nodiscard]] std::size_t workspace() const override { return filter_.workspace(); }

  Status Run(const internal::Launch& launch) override {
    auto* stream = static_cast<CUstream>(launch.stream);
    const void* x = launch.operands[kX];
    const void* y = launch.operands[kY];
    if (Status status =
            cuda::Launch(kernel_, shape_, stream, filter_.arguments, x, y, launch.workspace);
        !status.ok()) {
      return status;
    }
    TensorRef sums = sums_;
    sums.data = launch.operands[kW];
    return cuda::SumPartials(stream, filter_.slices(), launch.workspace, sums);
  }

 private:
  Filter filter_;
  cuda::LaunchShape shape_;
  CUkernel kernel_;
  TensorRef sums_;
};

cuda::LaunchShape ShapeOf(std::int64_t blocks, std::int64_t slabs, int threads, int shared_bytes) {
  return {
      .blocks_x = static_cast<unsigned>(blocks),
      .blocks_y = static_cast<unsigned>(slabs),
      .threads = static_cast<unsigned>(threads),
      .shared_bytes = static_cast<unsigned>(shared_bytes)};
}

Result<std::unique_ptr<internal::Plan>>
BuildCorrelate(const cuda::DeviceInfo& device, const Task& task, const Correlation& correlation) {
  constexpr int kPrepareThreads = 128;
  constexpr std::int64_t kRegisterBytes = 4;
  const CorrelateArguments& arguments = correlation.arguments;
  const std::string type = NameOf(task.problem.type);
  const Result<CUkernel> prepare = FindKernel(device, "fragments_" + type, 0);
  const Result<CUkernel> multiply = FindKernel(
      device, "correlate_" + type + (SharesChunks(arguments) ? "_shared" : "_apart"),
      correlation.shared_bytes);
  if (!prepare.ok() || !multiply.ok()) {
    return prepare.ok() ? multiply.status() : prepare.status();
  }
  const std::int64_t room =
      device.multiprocessors() * RoomFor(correlation.shared_bytes, window::kBlocksOfSm);
  const std::int64_t blocks =
      std::clamp<std::int64_t>(CeilDivide(room, correlation.slabs), 1, arguments.tiling.count);
  const std::int64_t registers = correlation.fragment_bytes() / kRegisterBytes;
  return std::unique_ptr<internal::Plan>(std::make_unique<CorrelatePlan>(
      task, correlation,
      CorrelatePlan::Launches{
          .prepare = *prepare,
          .prepare_shape = ShapeOf(
              CeilDivide(registers, kPrepareThreads), correlation.slabs, kPrepareThreads, 0),
          .multiply = *multiply,
          .multiply_shape =
              ShapeOf(blocks, correlation.slabs, window::kThreads, correlation.shared_bytes)}));
}

Result<std::unique_ptr<internal::Plan>>
BuildFilter(const cuda::DeviceInfo& device, const Task& task, const Filter& filter) {
  const Result<CUkernel> kernel = FindKernel(
      device,
      std::string("filter_") + NameOf(task.problem.type) + "_" + std::to_string(filter.row_blocks),
      filter.shared_bytes);
  if (!kernel.ok()) {
    return kernel.status();
  }
  return std::unique_ptr<internal::Plan>(std::make_unique<FilterPlan>(
      task, filter,
      ShapeOf(filter.blocks, filter.slabs, window::kFilterThreads, filter.shared_bytes), *kernel));
}

}  // namespace

std::vector<internal::Candidate> ListWindow(
    const cuda::DeviceInfo& device,
    const Task& task,
    const std::string& engine,
    bool allow_tf32) {
  if (!Fits(device, task, allow_tf32)) {
    return {};
  }
  internal::Candidate candidate = {.id = engine, .engine = engine};
  candidate.notes.tf32 = task.problem.type == DataType::kFloat;
  if (task.primitive == Primitive::kBackwardFilter) {
    const std::optional<Filter> filter = MakeFilter(device, task);
    if (!filter) {
      return {};
    }
    candidate.workspace = filter->workspace();
  } else {
    const std::optional<Correlation> correlation = MakeCorrelation(task);
    if (!correlation) {
      return {};
    }
    candidate.workspace = correlation->workspace();
  }
  return {candidate};
}

Result<std::unique_ptr<internal::Plan>>
BuildWindowPlan(const cuda::DeviceInfo& device, const Task& task, bool allow_tf32) {
  if (Fits(device, task, allow_tf32)) {
    if (task.primitive == Primitive::kBackwardFilter) {
      if (const std::optional<Filter> filter = MakeFilter(device, task)) {
        return BuildFilter(device, task, *filter);
      }
    } else if (const std::optional<Correlation> correlation = MakeCorrelation(task)) {
      return BuildCorrelate(device, task, *correlation);
    }
  }
  return InvalidArgument("windows do not fit the problem");
}

}  // namespace gradsmith::conv
