#include "core/grid.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>

namespace gradsmith::internal {
namespace {

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max() - 1;

TEST(Grid, CountsItsElements) {
  EXPECT_EQ((Grid{.counts = {2, 3, 1, 5}}).size(), 30);
  EXPECT_EQ((Grid{.counts = {kHuge, 3, 0, kHuge}}).size(), 0);
  EXPECT_EQ((Grid{.counts = {kHuge, 1, 1, 1}}).size(), kHuge);
}

TEST(Grid, NeighboursJoinWhereOneStrideServes) {
  EXPECT_EQ(Collapsed({.counts = {2, 3, 1, 5}, .strides = {15, 5, 7, 1}}).counts[Grid::kLast], 30);
  std::array<Grid, 2> grids{
      {{.counts = {1, 2, 3, 4}, .strides = {0, 12, 4, 1}},
       {.counts = {1, 2, 3, 4}, .strides = {0, 100, 4, 1}}}};
  Collapse(grids);
  for (const Grid& grid : grids) {
    EXPECT_EQ(grid.counts, (std::array<std::int64_t, Grid::kRank>{1, 1, 2, 12}));
  }
}

/// Products of an empty grid's other counts and strides need not fit 64 bits.
TEST(Grid, EmptyOnesAreNotMultiplied) {
  const Grid grid = Collapsed({.counts = {kHuge, 0, kHuge, 3}, .strides = {kHuge, kHuge, 3, 1}});
  EXPECT_EQ(grid.size(), 0);
  const Grid first = Collapsed({.counts = {0, 2, kHuge, 3}, .strides = {kHuge, kHuge, 3, 1}});
  EXPECT_EQ(first.size(), 0);
}

}  // namespace
}  // namespace gradsmith::internal
