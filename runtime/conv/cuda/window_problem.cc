#include "conv/cuda/window_problem.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "conv/cuda/channels_last.h"
#include "conv/cuda/window_tiles.h"
#include "core/tiles.h"
#include "cuda/module.h"

namespace gradsmith::conv::window {

namespace {

using cuda::DivisorOf;
using internal::CeilDivide;

// --- what the kernels take ----------------------------------------------------------------------

/// The image's axes: a signal's are of an image of height 1.
using ImageAxes = std::array<Axis, kRank>;

ImageAxes AxesOf(const Problem& problem) {
  ImageAxes axes;
  std::copy_n(
      problem.axes.begin(), problem.spatial_rank, axes.begin() + (kRank - problem.spatial_rank));
  return axes;
}

/// Channels of a group: of more, cuDNN's filter gradients are quicker (9.19 on an H200).
constexpr std::int64_t kMostOfGroup = 16;
constexpr std::int64_t kMostOfFilterGroup = 8;
/// Chunks of a pixel that a window has.
constexpr std::int64_t kMostChunksOfSlab = 8;
constexpr std::int64_t kMostChunksOfPixel = 16;

std::int64_t VectorOf(const Task& task) {
  return kChunkBytes / static_cast<std::int64_t>(SizeOf(task.problem.type));
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
  const bool is_filter = IsFilter(task);
  const std::int64_t most = is_filter ? kMostOfFilterGroup : kMostOfGroup;
  return task.problem.group > 1 && channels.group_source <= most && channels.group_result <= most &&
         channels.result % kColumns == 0 && ChannelsOfBlock(channels, vector) != 0;
}

/// Counted in 32 bits: tiles, and the elements of an image and of what is beside it.
bool HasSmallSizes(const Task& task) {
  constexpr std::int64_t kMost = 1 << 28;
  constexpr std::int64_t kMostFilter = 1 << 24;  // a few registers for each element
  constexpr std::int64_t kMostOffset = std::numeric_limits<std::int16_t>::max();
  const Problem& problem = task.problem;
  bool small =
      NumElements(DimsOf(problem, kW)) <= kMostFilter && problem.group <= cuda::kMostBlocksYz;
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

bool HasType(DataType type) {
  return SizeOf(type) == 2 || type == DataType::kFloat;
}

}  // namespace

bool MayFit(const Task& task) {
  return HasType(task.problem.type) && task.problem.spatial_rank <= kRank &&
         !IsEmpty(task.problem) && IsChannelsLast(task) && HasFewChannels(task) &&
         HasSmallSizes(task);
}

bool Fits(int compute_capability, const Task& task, bool allow_tf32) {
  return compute_capability >= kFirstWithTensorCores &&
         (allow_tf32 || task.problem.type != DataType::kFloat) && MayFit(task);
}

namespace {

// --- channels -----------------------------------------------------------------------------------

/// Parts of the channels that hold whole groups and whole blocks, and few chunks of the source.
std::int64_t SlabsOf(const Task& task) {
  const Channels channels = ChannelsOf(task);
  const std::int64_t vector = VectorOf(task);
  if (IsMerged(task)) {
    // One launch after the other adds to the result, which half and bf16 would round each time.
    const std::int64_t chunks = channels.source / vector;
    return SizeOf(task.problem.type) > 2 && chunks % kMostChunksOfSlab == 0
               ? chunks / kMostChunksOfSlab
               : 1;
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

using AxisOffsets = std::array<std::vector<int>, kRank>;

AxisOffsets OffsetsOf(const Task& task) {
  const ImageAxes axes = AxesOf(task.problem);
  return {OffsetsOf(task.primitive, axes[0]), OffsetsOf(task.primitive, axes[1])};
}

std::int64_t SpanOf(const std::vector<int>& offsets) {
  return std::int64_t{offsets.back()} - offsets.front() + 1;
}

/// Writes every pair of offsets with every chunk of a block; false where there are too many.
bool MakeTable(const AxisOffsets& offsets, std::int64_t block_chunks, Chunk* table, int* count) {
  const std::size_t all =
      offsets[0].size() * offsets[1].size() * static_cast<std::size_t>(block_chunks);
  if (all > kMostChunks) {
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

/// The blocks of columns of a slab: of channels next to each other, or of a cell's rows.
bool MakeColumns(const Task& task, CorrelateArguments* p) {
  const std::int64_t vector = VectorOf(task);
  const auto add = [&](int row, int column, int channel) {
    if (p->blocks == kMostBlocks) {
      return false;
    }
    const std::int64_t group = channel / p->group_result;
    const std::int64_t chunk = p->is_merged ? 0 : group * p->group_source / vector;
    ColumnBlock block = {
        {static_cast<std::int16_t>(row), static_cast<std::int16_t>(column)},
        static_cast<std::int16_t>(channel),
        static_cast<std::int16_t>(chunk),
        {}};
    for (int i = 0; i < kRank; ++i) {
      block.cells[i] = static_cast<int>(
          CeilDivide(std::max(p->result_sizes[i] - block.first[i], 0), p->cell_sizes[i]));
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
  p->sets = static_cast<int>(CeilDivide(p->blocks, kBlocksOfSet));
  const bool has_one_position = p->cell_sizes[0] == 1 && p->cell_sizes[1] == 1;
  p->is_adjacent = !p->is_merged && has_one_position && p->blocks % kBlocksOfSet == 0;
  return true;
}

}  // namespace

bool SharesChunks(const CorrelateArguments& p) {
  for (int block = 1; block < p.blocks; block += kBlocksOfSet) {
    if (p.columns[block].chunk != p.columns[block - 1].chunk) {
      return false;
    }
  }
  return true;
}

namespace {

/// What a tile takes, where a pixel of the source has so many bytes in memory.
double CorrelateCost(
    const CorrelateArguments& p,
    const TileShape& tile,
    bool shares_chunks,
    std::int64_t slab_bytes,
    std::int64_t room) {
  constexpr std::int64_t kWarps = kThreads / 32;
  const std::int64_t items =
      CeilDivide(tile.positions(), std::int64_t{kRows} * kRowBlocks) * p.sets;
  const auto steps = static_cast<double>(CeilDivide(items, kWarps) * kWarps * p.steps);
  const std::int64_t own = tile.positions() * p.source_step[0] * p.source_step[1] * slab_bytes;
  const std::int64_t all = tile.window_pixels() * slab_bytes;
  const int loads = (kRowBlocks * (shares_chunks ? 1 : 2)) + 1;
  const Clocks clocks = {
      .shared = steps * loads * kClocksOfLoad * ConflictsOf(tile),
      .tensor_cores = steps * kRowBlocks * kBlocksOfSet * kClocksOfProduct,
      .memory = CopyClocks(static_cast<double>(own), static_cast<double>(all))};
  return clocks.all(room, tile.is_double);
}

void SetChannels(const Task& task, std::int64_t slabs, CorrelateArguments* p) {
  const Channels channels = ChannelsOf(task);
  p->is_merged = IsMerged(task);
  p->source_pitch = static_cast<int>(channels.source);
  p->result_pitch = static_cast<int>(channels.result);
  p->slab_source = static_cast<int>(channels.source / slabs);
  p->slab_result = static_cast<int>(p->is_merged ? channels.result : channels.result / slabs);
  p->group_source = static_cast<int>(channels.group_source);
  p->group_result = static_cast<int>(channels.group_result);
}

/// Returns the cells' reach.
Reach SetAxes(const Task& task, const AxisOffsets& offsets, CorrelateArguments* p) {
  const ImageAxes axes = AxesOf(task.problem);
  const bool is_backward = task.primitive == Primitive::kBackwardData;
  p->is_backward = is_backward;
  Reach reach{};
  for (int i = 0; i < kRank; ++i) {
    const Axis& axis = axes.at(i);
    const std::int64_t cell = is_backward ? axis.stride : 1;
    reach.positions.at(i) = CeilDivide(is_backward ? axis.x : axis.y, cell);
    reach.step.at(i) = is_backward ? 1 : axis.stride;
    reach.span.at(i) = SpanOf(offsets.at(i));
    p->source_sizes[i] = static_cast<int>(is_backward ? axis.y : axis.x);
    p->result_sizes[i] = static_cast<int>(is_backward ? axis.x : axis.y);
    p->cell_sizes[i] = static_cast<int>(cell);
    p->source_step[i] = static_cast<int>(reach.step.at(i));
    p->origin[i] = offsets.at(i).front();
    p->pad[i] = static_cast<int>(axis.pad_begin);
    p->factor[i] = static_cast<int>(is_backward ? -axis.stride : 1);
    p->dilation[i] = static_cast<int>(axis.dilation);
    p->filter_sizes[i] = static_cast<int>(axis.w);
  }
  return reach;
}

/// False where there is no memory for any tile.
bool SetTile(const Task& task, const Reach& reach, Correlation* correlation) {
  CorrelateArguments& p = correlation->arguments;
  const std::int64_t slab_chunks = p.slab_source / VectorOf(task);
  const std::int64_t slab_bytes = slab_chunks * kChunkBytes;
  const std::int64_t pixel_bytes = PixelBytes(static_cast<int>(slab_chunks));
  const bool shares_chunks = SharesChunks(p);
  const auto shared_bytes = [&](const TileShape& tile) {
    return CorrelateSharedBytes(p.sets, p.steps, static_cast<int>(tile.positions())) +
           (tile.windows() * tile.window_pixels() * pixel_bytes);
  };
  const std::optional<TileShape> tile =
      BestTile(reach, 1, [&](const TileShape& shape) -> std::optional<double> {
        const std::int64_t bytes = shared_bytes(shape);
        if (bytes > kMostShared) {
          return std::nullopt;
        }
        return CorrelateCost(p, shape, shares_chunks, slab_bytes, RoomFor(bytes, kBlocksOfSm));
      });
  if (tile) {
    p.tiling =
        TilingOf(*tile, reach, task.problem.batch, slab_chunks, static_cast<int>(pixel_bytes));
    p.tile_rows = RowsOfTile(static_cast<int>(tile->positions()));
    correlation->shared_bytes = static_cast<int>(shared_bytes(*tile));
  }
  return tile.has_value();
}

}  // namespace

std::optional<Correlation> MakeCorrelation(const Task& task) {
  Correlation correlation;
  CorrelateArguments& p = correlation.arguments;
  correlation.slabs = SlabsOf(task);
  if (correlation.slabs == 0) {
    return std::nullopt;
  }
  SetChannels(task, correlation.slabs, &p);
  const AxisOffsets offsets = OffsetsOf(task);
  const Reach reach = SetAxes(task, offsets, &p);
  const std::int64_t vector = VectorOf(task);
  const std::int64_t met = p.is_merged ? p.slab_source : ChannelsOfBlock(ChannelsOf(task), vector);
  if (!MakeColumns(task, &p) ||
      !MakeTable(offsets, std::max<std::int64_t>(met / vector, 1), p.table, &p.chunks)) {
    return std::nullopt;
  }
  p.steps = static_cast<int>(CeilDivide(p.chunks, 2));
  return SetTile(task, reach, &correlation) ? std::optional(correlation) : std::nullopt;
}

namespace {

// --- backward filter ----------------------------------------------------------------------------

/// Where pixels are in shared memory, as their elements are read.
int FilterPixelBytes(DataType type, std::int64_t chunks) {
  return SizeOf(type) == 2 ? PixelBytes(static_cast<int>(chunks))
                           : FloatPixelBytes(static_cast<int>(chunks));
}

void SetChannels(const Task& task, std::int64_t slabs, FilterArguments* p) {
  const Channels channels = ChannelsOf(task);
  const std::int64_t vector = VectorOf(task);
  p->x_pitch = static_cast<int>(channels.source);
  p->y_pitch = static_cast<int>(channels.result);
  p->slab_x = static_cast<int>(channels.source / slabs);
  p->slab_y = static_cast<int>(channels.result / slabs);
  p->group_x = static_cast<int>(channels.group_source);
  p->group_y = static_cast<int>(channels.group_result);
  p->blocks = p->slab_y / kColumns;
  p->splits = kFilterThreads / 32 / p->blocks;
  p->block_chunks =
      static_cast<int>(std::max<std::int64_t>(ChannelsOfBlock(channels, vector) / vector, 1));
  p->y_slab_chunks = DivisorOf(p->slab_y / vector);
  p->y_pixel_bytes = FilterPixelBytes(task.problem.type, p->slab_y / vector);
}

Reach SetAxes(const Task& task, const AxisOffsets& offsets, FilterArguments* p) {
  const ImageAxes axes = AxesOf(task.problem);
  p->filter_taps = static_cast<int>(axes[0].w * axes[1].w);
  p->filter_elements = static_cast<int>(NumElements(DimsOf(task.problem, kW)));
  Reach reach{};
  for (int i = 0; i < kRank; ++i) {
    const Axis& axis = axes.at(i);
    reach.positions.at(i) = axis.y;
    reach.step.at(i) = axis.stride;
    reach.span.at(i) = SpanOf(offsets.at(i));
    p->x_sizes[i] = static_cast<int>(axis.x);
    p->y_sizes[i] = static_cast<int>(axis.y);
    p->stride[i] = static_cast<int>(axis.stride);
    p->origin[i] = offsets.at(i).front();
  }
  return reach;
}

/// The kernel's rows that hold all chunks; 0 where there is none.
int RowBlocksFor(const Task& task, int chunks) {
  for (const int row_blocks : kFilterRowBlocks) {
    if (std::int64_t{row_blocks} * kRows >= chunks * VectorOf(task)) {
      return row_blocks;
    }
  }
  return 0;
}

double FilterCost(
    const FilterArguments& p,
    const TileShape& tile,
    int row_blocks,
    std::int64_t x_bytes,
    std::int64_t room) {
  const std::int64_t rounds = CeilDivide(tile.positions() / kRows, p.splits);
  const auto steps = static_cast<double>(rounds * p.splits * p.blocks);
  const std::int64_t y_bytes = tile.positions() * p.y_slab_chunks.divisor * kChunkBytes;
  const std::int64_t own = y_bytes + (tile.positions() * p.stride[0] * p.stride[1] * x_bytes);
  const std::int64_t all = y_bytes + (tile.window_pixels() * x_bytes);
  const Clocks clocks = {
      .shared = steps * (row_blocks + 1) * kClocksOfLoad * ConflictsOf(tile),
      .tensor_cores = steps * row_blocks * kClocksOfProduct,
      .memory = CopyClocks(static_cast<double>(own), static_cast<double>(all))};
  return clocks.all(room, tile.is_double);
}

/// False where there is no memory for any tile.
bool SetTile(const Task& task, const Reach& reach, int multiprocessors, Filter* filter) {
  FilterArguments& p = filter->arguments;
  const std::int64_t x_chunks = p.slab_x / VectorOf(task);
  const std::int64_t x_pixel_bytes = FilterPixelBytes(task.problem.type, x_chunks);
  const std::int64_t most_blocks =
      FilterBlocksOfSm(filter->row_blocks, static_cast<int>(SizeOf(task.problem.type)));
  const auto shared_bytes = [&](const TileShape& tile) {
    const std::int64_t window = tile.window_pixels() * x_pixel_bytes;
    return FilterSharedBytes(static_cast<int>(tile.positions())) +
           (tile.windows() * (window + (tile.positions() * p.y_pixel_bytes)));
  };
  const std::optional<TileShape> tile =
      BestTile(reach, kRows, [&](const TileShape& shape) -> std::optional<double> {
        const std::int64_t bytes = shared_bytes(shape);
        if (bytes > kMostShared) {
          return std::nullopt;
        }
        return FilterCost(
            p, shape, filter->row_blocks, x_chunks * kChunkBytes, RoomFor(bytes, most_blocks));
      });
  if (!tile) {
    return false;
  }
  p.tiling = TilingOf(*tile, reach, task.problem.batch, x_chunks, static_cast<int>(x_pixel_bytes));
  p.tiling.window_bytes += static_cast<int>(tile->positions()) * p.y_pixel_bytes;
  filter->shared_bytes = static_cast<int>(shared_bytes(*tile));
  const std::int64_t room = multiprocessors * RoomFor(filter->shared_bytes, most_blocks);
  filter->blocks = std::clamp<std::int64_t>(room / filter->slabs, 1, p.tiling.count);
  return true;
}

}  // namespace

std::optional<Filter> MakeFilter(const Task& task, int multiprocessors) {
  Filter filter;
  FilterArguments& p = filter.arguments;
  filter.slabs = SlabsOf(task);
  if (filter.slabs == 0) {
    return std::nullopt;
  }
  SetChannels(task, filter.slabs, &p);
  const AxisOffsets offsets = OffsetsOf(task);
  const Reach reach = SetAxes(task, offsets, &p);
  if (!MakeTable(offsets, p.block_chunks, p.table, &p.chunks)) {
    return std::nullopt;
  }
  filter.row_blocks = RowBlocksFor(task, p.chunks);
  return filter.row_blocks != 0 && SetTile(task, reach, multiprocessors, &filter)
             ? std::optional(filter)
             : std::nullopt;
}

}  // namespace gradsmith::conv::window
