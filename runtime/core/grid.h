#ifndef GRADSMITH_CORE_GRID_H_
#define GRADSMITH_CORE_GRID_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace gradsmith::internal {

/// Grid is an index space of up to four of a tensor's dims, flattened to one index, the last dim
/// fastest. It knows how far apart its elements lie in memory.
struct Grid {
  static constexpr int kRank = 4;
  static constexpr int kLast = kRank - 1;
  std::array<std::int64_t, kRank> counts{1, 1, 1, 1};
  std::array<std::int64_t, kRank> strides{};

  /// The other counts of an empty grid may be too large to multiply.
  [[nodiscard]] bool empty() const { return std::ranges::find(counts, 0) != counts.end(); }
  [[nodiscard]] std::int64_t size() const {
    return empty() ? 0 : counts[0] * counts[1] * counts[2] * counts[3];
  }
};

/// Collapse makes neighbouring dims one wherever, in every grid, one stride serves both. The grids
/// have the same counts, before and after.
inline void Collapse(std::span<Grid> grids) {
  if (grids.front().empty()) {
    std::ranges::fill(grids, Grid{.counts = {1, 1, 1, 0}});
    return;
  }
  const std::array<std::int64_t, Grid::kRank> counts = grids.front().counts;
  int last = Grid::kRank;
  for (int i = Grid::kLast; i >= 0; --i) {
    if (counts[i] == 1) {
      continue;
    }
    const bool joins = last < Grid::kRank && std::ranges::all_of(grids, [&](const Grid& grid) {
                         return grid.strides[i] == grid.strides[last] * grid.counts[last];
                       });
    last -= joins ? 0 : 1;
    for (Grid& grid : grids) {
      grid.counts[last] = joins ? grid.counts[last] * counts[i] : counts[i];
      grid.strides[last] = joins ? grid.strides[last] : grid.strides[i];
    }
  }
  for (Grid& grid : grids) {
    std::fill_n(grid.counts.begin(), last, 1);
    std::fill_n(grid.strides.begin(), last, 0);
  }
}

inline Grid Collapsed(Grid grid) {
  Collapse({&grid, 1});
  return grid;
}

/// GridCursor walks a grid in the order of its flattened index.
class GridCursor {
 public:
  GridCursor(const Grid& grid, std::int64_t index) : grid_(grid) {
    for (int i = Grid::kLast; i >= 0; --i) {
      Step(i, index % grid.counts[i]);
      index /= grid.counts[i];
    }
  }

  /// Where the current element lies, in elements.
  [[nodiscard]] std::int64_t offset() const { return offset_; }
  [[nodiscard]] std::int64_t position(int dim) const { return position_[dim]; }
  /// How many elements are left along the last dim, the current one among them.
  [[nodiscard]] std::int64_t run() const {
    return grid_.counts[Grid::kLast] - position_[Grid::kLast];
  }

  /// Advance moves on by no more than run() elements.
  void Advance(std::int64_t count) {
    Step(Grid::kLast, count);
    for (int i = Grid::kLast; i > 0 && position_[i] == grid_.counts[i]; --i) {
      Step(i, -position_[i]);
      Step(i - 1, 1);
    }
  }

 private:
  void Step(int dim, std::int64_t count) {
    position_[dim] += count;
    offset_ += count * grid_.strides[dim];
  }

  Grid grid_;
  std::array<std::int64_t, Grid::kRank> position_{};
  std::int64_t offset_ = 0;
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_GRID_H_
