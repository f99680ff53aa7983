#include "conv/cuda/tensor_cores_variants.h"

#include <algorithm>

#include "core/candidate_name.h"
#include "core/tiles.h"

namespace gradsmith::conv::tensor_cores {

namespace {

using internal::CeilDivide;

constexpr const char* kSlices = "/slices";

Math MathFor(DataType type, bool in_tf32) {
  switch (type) {
    case DataType::kDouble:
      return Math::kDouble;
    case DataType::kMLFloat16:
      return Math::kHalf;
    case DataType::kBFloat16:
      return Math::kBfloat16;
    default:
      return in_tf32 ? Math::kTf32 : Math::kFloat;
  }
}

std::int64_t RoomFor(const cuda::DeviceInfo& device, Tile tile) {
  return std::int64_t{device.multiprocessors()} * tile.blocks;
}

double RoundsOf(std::int64_t blocks, std::int64_t room, std::int64_t slices) {
  return static_cast<double>(CeilDivide(blocks * slices, room)) / static_cast<double>(slices);
}

}  // namespace

std::string Variant::Id() const {
  return std::string(kMathNames.at(static_cast<std::size_t>(math))) + (by_lines ? "/lines/" : "/") +
         std::to_string(tile.rows) + "x" + std::to_string(tile.columns) +
         (most_slices < kMostSlices ? kSlices + std::to_string(most_slices) : "");
}

bool ReadAs(std::string_view text, Variant* variant) {
  const std::string id = variant->Id();
  if (!text.starts_with(id)) {
    return false;
  }
  text.remove_prefix(id.size());
  return text.empty() ||
         (internal::TakeNumber(&text, kSlices, &variant->most_slices) && text.empty() &&
          variant->most_slices >= 1 && variant->most_slices < kMostSlices);
}

std::vector<Variant> VariantsOf(const Task& task, bool in_tf32) {
  const Math math = MathFor(task.problem.type, in_tf32);
  std::vector<Variant> variants;
  variants.reserve(kTiles);
  for (int place = 0; place < kTiles; ++place) {
    variants.push_back({math, place, TileAt(math, IsFilter(task), place)});
  }
  if (SizeOf(task.problem.type) > 2) {
    return variants;
  }
  if (IsFilter(task)) {
    variants.push_back({math, 0, kFilterLineTile, /*by_lines=*/true});
  } else {
    for (int place = 0; place < kLineTiles; ++place) {
      variants.push_back({math, place, kLineTilesOfHalf[place], /*by_lines=*/true});
    }
  }
  return variants;
}

int ColumnTilesOf(const FilterArguments& arguments, const Variant& variant) {
  std::int64_t columns = arguments.columns;
  if (variant.by_lines) {
    const std::int64_t lines = columns / arguments.channels / kFilterLineTaps;
    const std::int64_t units = lines * CeilDivide(arguments.channels, kFilterLineChannels);
    columns = CeilDivide(units, kFilterLineUnits) * variant.tile.columns;
  }
  return static_cast<int>(CeilDivide(columns, variant.tile.columns));
}

int PositionsOfSlice(const Task& task, const FilterArguments& arguments, std::int64_t slices) {
  const int depth = DepthOf(task);
  return static_cast<int>(CeilDivide(CeilDivide(arguments.positions, slices), depth) * depth);
}

Grid GridOf(
    const cuda::DeviceInfo& device,
    const Task& task,
    const FilterArguments& arguments,
    const Variant& variant) {
  constexpr std::int64_t kFewestStages = 8;
  constexpr double kWorthMore = 0.97;
  const Tile tile = variant.tile;
  const std::int64_t room = RoomFor(device, tile);
  const std::int64_t most = std::clamp<std::int64_t>(
      arguments.positions / (kFewestStages * DepthOf(task)), 1, variant.most_slices);
  Grid grid;
  grid.blocks = CeilDivide(arguments.rows, tile.rows) * arguments.column_tiles;
  const std::int64_t blocks = grid.blocks * task.problem.group;
  grid.rounds = RoundsOf(blocks, room, 1);
  for (std::int64_t slices = 2; slices <= most; ++slices) {
    const double rounds = RoundsOf(blocks, room, slices);
    if (rounds < kWorthMore * grid.rounds) {
      grid.slices = slices;
      grid.rounds = rounds;
    }
  }
  // There may be fewer than were asked for.
  grid.slices = CeilDivide(arguments.positions, PositionsOfSlice(task, arguments, grid.slices));
  return grid;
}

Grid GridOf(
    const cuda::DeviceInfo& device,
    const Task& task,
    const Correlation& correlation,
    Tile tile) {
  const std::int64_t column_tiles = CeilDivide(correlation.arguments.columns, tile.columns);
  Grid grid;
  for (int i = 0; i < correlation.parts; ++i) {
    const Part& part = correlation.arguments.parts[i];
    const std::int64_t blocks = CeilDivide(part.rows, tile.rows) * column_tiles;
    grid.blocks = std::max(grid.blocks, blocks);
    grid.rounds += RoundsOf(blocks * task.problem.group, RoomFor(device, tile), 1) * part.taps;
  }
  return grid;
}

bool IsWhole(const Grid& grid, const Variant& variant) {
  return grid.slices == 1 && !variant.by_lines;
}

std::size_t SliceBytes(const Task& task) {
  return static_cast<std::size_t>(NumElements(DimsOf(task.problem, kW))) *
         std::max(SizeOf(task.problem.type), sizeof(float));
}

std::size_t FilterWorkspace(const Task& task, const Grid& grid, const Variant& variant) {
  return IsWhole(grid, variant) ? 0 : static_cast<std::size_t>(grid.slices) * SliceBytes(task);
}

}  // namespace gradsmith::conv::tensor_cores
