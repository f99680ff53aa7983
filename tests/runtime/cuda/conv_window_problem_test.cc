#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conv/cuda/window_problem.h"
#include "conv/cuda/window_tiles.h"
#include "reference/random.h"

/// What the kernels of windows are told, followed on the CPU: every product is added once, from
/// within the window, and every element of the result is written. Needs no GPU.
namespace gradsmith::conv::window {
namespace {

using reference::Random;

constexpr int kCapability = 90;
constexpr int kMultiprocessors = 4;

struct Image {
  std::int64_t batch;
  std::array<std::int64_t, kRank> sizes;
  std::int64_t channels;
  std::vector<double> values;

  Image(std::int64_t count, std::array<std::int64_t, kRank> its_sizes, std::int64_t its_channels)
      : batch(count),
        sizes(its_sizes),
        channels(its_channels),
        values(static_cast<std::size_t>(count * sizes[0] * sizes[1] * channels)) {}

  [[nodiscard]] bool Has(std::int64_t row, std::int64_t column) const {
    return row >= 0 && row < sizes[0] && column >= 0 && column < sizes[1];
  }
  double& At(std::int64_t image, std::int64_t row, std::int64_t column, std::int64_t channel) {
    return values.at(static_cast<std::size_t>(
        ((((image * sizes[0]) + row) * sizes[1]) + column) * channels + channel));
  }
};

/// The three operands of a problem, filters as (y channel, taps, x channel of the group).
struct Operands {
  Image x;
  Image w;
  Image y;

  explicit Operands(const Problem& problem)
      : x(problem.batch, {problem.axes[0].x, problem.axes[1].x}, problem.x_channels),
        w(problem.y_channels,
          {problem.axes[0].w, problem.axes[1].w},
          problem.x_channels / problem.group),
        y(problem.batch, {problem.axes[0].y, problem.axes[1].y}, problem.y_channels) {}
};

/// Calls `visit` with every index below the sizes.
template <std::size_t kCount, typename Visit>
void ForEachIndex(const std::array<std::int64_t, kCount>& sizes, Visit visit) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) {
    count *= size;
  }
  for (std::int64_t number = 0; number < count; ++number) {
    std::array<std::int64_t, kCount> index{};
    std::int64_t rest = number;
    for (std::size_t i = kCount; i-- > 0;) {
      index.at(i) = rest % sizes.at(i);
      rest /= sizes.at(i);
    }
    visit(index);
  }
}

/// Calls `visit` for every product of the definition.
template <typename Visit>
void ForEachProduct(const Problem& problem, Operands* all, Visit visit) {
  const std::int64_t x_group = problem.x_channels / problem.group;
  const std::int64_t y_group = problem.y_channels / problem.group;
  const Axis& rows = problem.axes[0];
  const Axis& columns = problem.axes[1];
  const auto from = [](const Axis& axis, std::int64_t at, std::int64_t tap) {
    return (at * axis.stride) + (tap * axis.dilation) - axis.pad_begin;
  };
  ForEachIndex<7>(
      {problem.batch, rows.y, columns.y, problem.y_channels, rows.w, columns.w, x_group},
      [&](const std::array<std::int64_t, 7>& at) {
        const auto [n, i, j, k, r, s, c] = at;
        const std::int64_t row = from(rows, i, r);
        const std::int64_t column = from(columns, j, s);
        if (all->x.Has(row, column)) {
          visit(
              all->x.At(n, row, column, (k / y_group * x_group) + c), all->w.At(k, r, s, c),
              all->y.At(n, i, j, k));
        }
      });
}

struct Place {
  std::int64_t image;
  std::array<std::int64_t, kRank> first;
};

Place PlaceOf(const Tiling& tiling, int tile) {
  const int columns = static_cast<int>(tiling.tiles[1].divisor);
  const int rows = static_cast<int>(tiling.tiles[0].divisor);
  return {
      tile / columns / rows,
      {static_cast<std::int64_t>(tile / columns % rows) * tiling.tile[0],
       static_cast<std::int64_t>(tile % columns) * tiling.tile[1]}};
}

void ExpectWithin(const Tiling& tiling, std::int64_t row, std::int64_t column, std::int64_t chunk) {
  const std::int64_t columns = tiling.window_columns.divisor;
  ASSERT_GE(row, 0);
  ASSERT_GE(column, 0);
  ASSERT_LT(column, columns);
  ASSERT_LT((row * columns) + column, tiling.window_pixels);
  ASSERT_LT(chunk, tiling.slab_chunks.divisor);
}

std::int64_t VectorOf(DataType type) {
  return kChunkBytes / static_cast<std::int64_t>(SizeOf(type));
}

/// What the filter has between an element of the source and a column of a block.
double FilterAt(
    const CorrelateArguments& p,
    Operands* all,
    const ColumnBlock& block,
    const Chunk& chunk,
    std::int64_t from,
    std::int64_t to,
    int column) {
  std::array<int, kRank> first = {block.first[0], block.first[1]};
  if (p.is_merged) {
    first[1] = column / p.result_pitch;
  }
  const std::int64_t group = to / p.group_result;
  if (from / p.group_source != group) {
    return 0;
  }
  std::array<int, kRank> tap{};
  for (int axis = 0; axis < kRank; ++axis) {
    const int distance = first.at(axis) + p.pad[axis] + (p.factor[axis] * chunk.offset[axis]);
    tap.at(axis) = distance / p.dilation[axis];
    if (distance < 0 || distance % p.dilation[axis] != 0 || tap.at(axis) >= p.filter_sizes[axis]) {
      return 0;
    }
  }
  return p.is_backward ? all->w.At(from, tap[0], tap[1], to - (group * p.group_result))
                       : all->w.At(to, tap[0], tap[1], from - (group * p.group_source));
}

/// Adds the products of a slab for one cell to the columns of one block.
void AddCell(
    const CorrelateArguments& p,
    std::int64_t vector,
    int slab,
    const Place& place,
    const std::array<int, kRank>& in_tile,
    const ColumnBlock& block,
    Operands* all,
    Image* written) {
  Image& source = p.is_backward ? all->y : all->x;
  Image& result = p.is_backward ? all->x : all->y;
  const std::int64_t cell_row = place.first[0] + in_tile[0];
  const std::int64_t cell_column = place.first[1] + in_tile[1];
  if (cell_row >= block.cells[0] || cell_column >= block.cells[1]) {
    return;
  }
  for (int column = 0; column < kColumns; ++column) {
    const std::int64_t row = (cell_row * p.cell_sizes[0]) + block.first[0];
    const int within = p.is_merged ? column / p.result_pitch : block.first[1];
    const std::int64_t at = (cell_column * p.cell_sizes[1]) + within;
    const std::int64_t to =
        p.is_merged ? column % p.result_pitch : (slab * p.slab_result) + block.channel + column;
    if (within >= p.cell_sizes[1] || at >= p.result_sizes[1]) {
      continue;
    }
    for (int i = 0; i < p.chunks; ++i) {
      const Chunk& chunk = p.table[i];
      const std::int64_t window_row =
          (in_tile[0] * p.source_step[0]) + chunk.offset[0] - p.origin[0];
      const std::int64_t window_column =
          (in_tile[1] * p.source_step[1]) + chunk.offset[1] - p.origin[1];
      ExpectWithin(p.tiling, window_row, window_column, block.chunk + chunk.place);
      const std::int64_t source_row =
          (place.first[0] * p.source_step[0]) + p.origin[0] + window_row;
      const std::int64_t source_column =
          (place.first[1] * p.source_step[1]) + p.origin[1] + window_column;
      if (!source.Has(source_row, source_column)) {
        continue;
      }
      for (std::int64_t element = 0; element < vector; ++element) {
        const std::int64_t from =
            (std::int64_t{slab} * p.slab_source) + ((block.chunk + chunk.place) * vector) + element;
        result.At(place.image, row, at, to) +=
            source.At(place.image, source_row, source_column, from) *
            FilterAt(p, all, block, chunk, from, to, column);
      }
    }
    written->At(place.image, row, at, to) += 1;
  }
}

void FollowCorrelation(const Correlation& correlation, std::int64_t vector, Operands* all) {
  const CorrelateArguments& p = correlation.arguments;
  Image& result = p.is_backward ? all->x : all->y;
  Image written(result.batch, result.sizes, result.channels);
  for (int slab = 0; slab < correlation.slabs; ++slab) {
    for (int tile = 0; tile < p.tiling.count; ++tile) {
      const Place place = PlaceOf(p.tiling, tile);
      for (int row = 0; row < p.tiling.tile[0]; ++row) {
        for (int column = 0; column < p.tiling.tile[1]; ++column) {
          for (int block = 0; block < p.blocks; ++block) {
            AddCell(p, vector, slab, place, {row, column}, p.columns[block], all, &written);
          }
        }
      }
    }
  }
  for (const double count : written.values) {
    ASSERT_EQ(count, correlation.launches());
  }
}

/// Adds the products of one position of y with one chunk of x, for one block of y's channels.
void AddChunk(
    const FilterArguments& p,
    std::int64_t vector,
    int slab,
    const Place& place,
    const std::array<std::int64_t, kRank>& in_tile,
    std::int64_t block,
    std::int64_t number,
    Operands* all) {
  const Chunk& chunk = p.table[number];
  const std::int64_t y_row = place.first[0] + in_tile[0];
  const std::int64_t y_column = place.first[1] + in_tile[1];
  const std::int64_t first_y = (std::int64_t{slab} * p.slab_y) + (block * kColumns);
  const std::int64_t first_x = first_y / p.group_y * p.group_x / vector * vector;
  const std::int64_t first_chunk = (first_x - (std::int64_t{slab} * p.slab_x)) / vector;
  const std::int64_t row = (in_tile[0] * p.stride[0]) + chunk.offset[0] - p.origin[0];
  const std::int64_t column = (in_tile[1] * p.stride[1]) + chunk.offset[1] - p.origin[1];
  ExpectWithin(p.tiling, row, column, first_chunk + chunk.place);
  const std::int64_t x_row = (place.first[0] * p.stride[0]) + p.origin[0] + row;
  const std::int64_t x_column = (place.first[1] * p.stride[1]) + p.origin[1] + column;
  if (!all->y.Has(y_row, y_column) || !all->x.Has(x_row, x_column)) {
    return;
  }
  const std::int64_t tap = number / p.block_chunks;
  ForEachIndex<2>({kColumns, vector}, [&](const std::array<std::int64_t, 2>& at) {
    const std::int64_t y = first_y + at[0];
    const std::int64_t x = first_x + (number % p.block_chunks * vector) + at[1];
    if (x / p.group_x == y / p.group_y) {
      all->w.At(y, tap / all->w.sizes[1], tap % all->w.sizes[1], x % p.group_x) +=
          all->x.At(place.image, x_row, x_column, x) * all->y.At(place.image, y_row, y_column, y);
    }
  });
}

void FollowFilter(const Filter& filter, std::int64_t vector, Operands* all) {
  const FilterArguments& p = filter.arguments;
  ASSERT_LE(p.blocks * p.splits, kFilterThreads / 32);
  ASSERT_EQ(p.tiling.tile[0] * p.tiling.tile[1] % kRows, 0);
  ForEachIndex<6>(
      {filter.slabs, p.tiling.count, p.tiling.tile[0], p.tiling.tile[1], p.blocks, p.chunks},
      [&](const std::array<std::int64_t, 6>& at) {
        const auto [slab, tile, row, column, block, chunk] = at;
        AddChunk(
            p, vector, static_cast<int>(slab), PlaceOf(p.tiling, static_cast<int>(tile)),
            {row, column}, block, chunk, all);
      });
}

Axis RandomAxis(Random& random) {
  Axis axis;
  axis.w = random.Integer(1, 5);
  axis.stride = random.Integer(1, 4);
  axis.dilation = random.Integer(1, 3);
  axis.pad_begin = random.Integer(0, 3);
  const std::int64_t reach = (axis.w - 1) * axis.dilation;
  axis.y = random.Integer(1, 9);
  const std::int64_t end = ((axis.y - 1) * axis.stride) + reach + 1 - axis.pad_begin;
  axis.x = std::max<std::int64_t>(end + random.Integer(-2, 3), 1);
  axis.pad_end = std::max<std::int64_t>(end - axis.x, 0);
  return axis;
}

Task RandomTask(Random& random) {
  Task task;
  task.primitive = static_cast<Primitive>(random.Integer(0, 2));
  Problem& problem = task.problem;
  problem.type = random.Integer(0, 1) == 0 ? DataType::kMLFloat16 : DataType::kFloat;
  problem.batch = random.Integer(1, 2);
  problem.spatial_rank = kRank;
  problem.axes = {RandomAxis(random), RandomAxis(random), {}};
  constexpr std::array<std::int64_t, 5> kOfGroup = {2, 4, 8, 16, 3};
  if (random.Integer(0, 2) == 0) {
    problem.x_channels = random.Integer(1, 8);
    problem.y_channels = 8 * random.Integer(1, 8);
    if (task.primitive == Primitive::kForward) {
      std::swap(problem.x_channels, problem.y_channels);
    }
  } else {
    problem.group = std::int64_t{1} << random.Integer(1, 5);
    problem.x_channels = problem.group * kOfGroup.at(random.Integer(0, 4));
    problem.y_channels = problem.group * kOfGroup.at(random.Integer(0, 4));
  }
  for (const Operand operand : {kX, kW, kY}) {
    StridesOf(problem, operand) = ChannelsLastStrides(DimsOf(problem, operand));
  }
  return task;
}

/// How many tasks of a kind were followed: random ones must be of every kind.
struct Counts {
  int groups = 0;
  int merged = 0;
  int in_parts = 0;
  int slabs = 0;
  int by_cells = 0;
  int filters = 0;
};

void Count(const Correlation& correlation, Counts* counts) {
  const CorrelateArguments& p = correlation.arguments;
  counts->merged += p.is_merged ? 1 : 0;
  counts->groups += p.is_merged ? 0 : 1;
  counts->in_parts += correlation.launches() > 1 ? 1 : 0;
  counts->slabs += !p.is_merged && correlation.slabs > 1 ? 1 : 0;
  counts->by_cells += p.cell_sizes[0] * p.cell_sizes[1] > 1 ? 1 : 0;
}

Image& ResultOf(const Task& task, Operands* all) {
  switch (task.primitive) {
    case Primitive::kForward:
      return all->y;
    case Primitive::kBackwardData:
      return all->x;
    default:
      return all->w;
  }
}

void Define(const Task& task, Operands* all) {
  ForEachProduct(task.problem, all, [&](double& x, double& w, double& y) {
    switch (task.primitive) {
      case Primitive::kForward:
        y += x * w;
        break;
      case Primitive::kBackwardData:
        x += y * w;
        break;
      default:
        w += x * y;
    }
  });
}

/// False where the kernels do not take the task.
bool Follow(const Task& task, Operands* all, Counts* counts) {
  const std::int64_t vector = VectorOf(task.problem.type);
  if (task.primitive == Primitive::kBackwardFilter) {
    const std::optional<Filter> filter = MakeFilter(task, kMultiprocessors);
    if (filter) {
      ++counts->filters;
      EXPECT_LE(filter->shared_bytes, kMostShared);
      FollowFilter(*filter, vector, all);
    }
    return filter.has_value();
  }
  const std::optional<Correlation> correlation = MakeCorrelation(task);
  if (correlation) {
    Count(*correlation, counts);
    EXPECT_LE(correlation->shared_bytes, kMostShared);
    FollowCorrelation(*correlation, vector, all);
  }
  return correlation.has_value();
}

void FillWithIntegers(const Task& task, Random& random, Operands* all) {
  for (Image* image : {&all->x, &all->w, &all->y}) {
    for (double& value : image->values) {
      value = static_cast<double>(random.Integer(-4, 4));
    }
  }
  std::vector<double>& result = ResultOf(task, all).values;
  result.assign(result.size(), 0);
}

TEST(ConvWindowProblem, EveryProductIsAddedOnce) {
  Random random("conv window problem");
  Counts counts;
  for (int i = 0; i < 1000; ++i) {
    const Task task = RandomTask(random);
    if (!Fits(kCapability, task, true)) {
      continue;
    }
    SCOPED_TRACE(Describe(task));
    Operands all(task.problem);
    FillWithIntegers(task, random, &all);
    Operands expected = all;
    if (Follow(task, &all, &counts)) {
      Define(task, &expected);
      ASSERT_EQ(ResultOf(task, &all).values, ResultOf(task, &expected).values);
    }
  }
  EXPECT_GT(counts.groups, 50);
  EXPECT_GT(counts.merged, 50);
  EXPECT_GT(counts.in_parts, 5);
  EXPECT_GT(counts.slabs, 20);
  EXPECT_GT(counts.by_cells, 50);
  EXPECT_GT(counts.filters, 50);
}

}  // namespace
}  // namespace gradsmith::conv::window
