#include "batch_norm/cuda/own_slices.h"

#include <algorithm>

#include "batch_norm/cuda/arguments.h"
#include "core/tiles.h"

namespace gradsmith::batch_norm::own {
namespace {

using internal::CeilDivide;

/// Channels first: a tile is up to so many elements, which is so many rows at most.
constexpr std::int64_t kMaxTile = kMaxWidth * kVectorBytes / 2;

std::int64_t
ClampSlices(const Order& order, std::int64_t wanted, std::int64_t longest, std::int64_t shortest) {
  return std::clamp<std::int64_t>(
      std::max(std::min(wanted, shortest), longest), 1, order.most_slices);
}

}  // namespace

std::int64_t PerVector(DataType type) {
  return kVectorBytes / static_cast<std::int64_t>(SizeOf(type));
}

std::int64_t RowSlices(const Order& order, std::int64_t channels, std::int64_t samples) {
  return ClampSlices(
      order, CeilDivide(order.rows.blocks, channels),
      CeilDivide(samples, kThreads * order.longest_sum),
      CeilDivide(samples, order.rows.shortest_slice));
}

int ColumnWidth(const ColumnOrder& order, std::int64_t vectors) {
  return static_cast<int>(CeilDivide(vectors, CeilDivide(vectors, order.width)));
}

int NarrowWidth(const ColumnOrder& order, std::int64_t vectors, std::int64_t steps) {
  if (CeilDivide(vectors, ColumnWidth(order, vectors)) >= order.least_tiles) {
    return 0;
  }
  for (int width = order.narrow_width; width >= order.narrowest_width; width /= 2) {
    const std::int64_t least =
        width > order.narrowest_width ? order.narrow_tiles : order.fewest_narrow_tiles;
    if (CeilDivide(vectors, width) >= least && steps * width <= order.short_narrow_tile) {
      return width;
    }
  }
  return 0;
}

std::int64_t ColumnSlices(const Order& order, std::int64_t tiles, std::int64_t steps, int width) {
  const std::int64_t lanes = kThreads / width;
  return ClampSlices(
      order, order.columns.blocks / tiles, CeilDivide(steps, lanes * order.longest_sum),
      CeilDivide(steps, lanes * order.columns.shortest_sum));
}

std::int64_t
MostPartials(const Policy& policy, std::int64_t channels, std::int64_t samples, DataType type) {
  const Order& order = policy.order;
  const std::int64_t per_vector = PerVector(type);
  const auto last = [&](std::int64_t columns, std::int64_t steps, std::int64_t per_thread) {
    const int width = ColumnWidth(order.columns, CeilDivide(columns, per_thread));
    return columns * ColumnSlices(order, CeilDivide(columns, width * per_thread), steps, width);
  };
  // A tile's rows of some channels are half a block's vectors at least, for each lane.
  const std::int64_t most_blocks = order.columns.blocks * kMaxTile;
  const std::int64_t first = std::max(
      std::min(most_blocks, channels * (1 + (samples / order.columns.shortest_sum))),
      channels * (1 + (samples / order.longest_sum)));
  return std::max(
      {channels * RowSlices(order, channels, samples), last(channels, samples, 1),
       last(channels, samples, per_vector),
       last(channels * per_vector, samples / per_vector, per_vector), first});
}

}  // namespace gradsmith::batch_norm::own
