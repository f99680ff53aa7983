#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "conv/merged_axes.h"
#include "conv/task.h"

/// Convolutions of volumes as those of images.
namespace gradsmith::conv {
namespace {

/// Where the three elements of a product lie: of x, w and y.
using Product = std::array<std::int64_t, kOperands>;

/// Adds the products along the axes from `axis` on.
void AddAlong(const Problem& problem, int axis, Product at, std::vector<Product>* products) {
  if (axis == problem.spatial_rank) {
    products->push_back(at);
    return;
  }
  const Axis& along = problem.axes.at(axis);
  for (std::int64_t o = 0; o < along.y; ++o) {
    for (std::int64_t k = 0; k < along.w; ++k) {
      const std::int64_t p = (o * along.stride) + (k * along.dilation) - along.pad_begin;
      if (p >= 0 && p < along.x) {
        AddAlong(
            problem, axis + 1,
            {at[kX] + (p * problem.x_strides[axis + 2]), at[kW] + (k * problem.w_strides[axis + 2]),
             at[kY] + (o * problem.y_strides[axis + 2])},
            products);
      }
    }
  }
}

/// All products of a convolution of one group, sorted.
std::vector<Product> ProductsOf(const Problem& problem) {
  std::vector<Product> products;
  for (std::int64_t n = 0; n < problem.batch; ++n) {
    for (std::int64_t c = 0; c < problem.x_channels; ++c) {
      for (std::int64_t m = 0; m < problem.y_channels; ++m) {
        const Product first = {
            (n * problem.x_strides[0]) + (c * problem.x_strides[1]),
            (m * problem.w_strides[0]) + (c * problem.w_strides[1]),
            (n * problem.y_strides[0]) + (m * problem.y_strides[1])};
        AddAlong(problem, 0, first, &products);
      }
    }
  }
  std::ranges::sort(products);
  return products;
}

constexpr Axis kIdle = {.x = 5, .w = 1, .y = 5};
constexpr Axis kOfThreeTaps = {.x = 4, .w = 3, .y = 4, .pad_begin = 1, .pad_end = 1};

Problem Dense(std::vector<Axis> axes, bool channels_last) {
  Problem problem;
  problem.batch = 2;
  problem.x_channels = 3;
  problem.y_channels = 2;
  problem.spatial_rank = static_cast<int>(axes.size());
  std::ranges::copy(axes, problem.axes.begin());
  for (const Operand operand : {kX, kW, kY}) {
    const Dims dims = DimsOf(problem, operand);
    StridesOf(problem, operand) =
        channels_last ? ChannelsLastStrides(dims) : ContiguousStrides(dims);
  }
  return problem;
}

struct Expected {
  int spatial_rank;
  std::int64_t batch;
  std::int64_t first;
  std::int64_t second;
};

/// What the merged problem is like; it has the products that the problem has.
void Expect(const Problem& problem, const Expected& expected) {
  const Problem merged = WithMergedAxes(problem);
  EXPECT_EQ(merged.spatial_rank, expected.spatial_rank);
  EXPECT_EQ(merged.batch, expected.batch);
  EXPECT_EQ(merged.axes[0].x, expected.first);
  EXPECT_EQ(merged.axes[1].x, expected.second);
  for (const Operand operand : {kX, kW, kY}) {
    EXPECT_EQ(StridesOf(merged, operand).size(), 2 + merged.spatial_rank);
  }
  EXPECT_EQ(ProductsOf(merged), ProductsOf(problem));
}

TEST(MergedAxes, AreTwoThatAFilterDoesNothingAlong) {
  Axis other = kIdle;
  other.x = other.y = 6;
  for (const bool channels_last : {false, true}) {
    Expect(Dense({kIdle, other, kOfThreeTaps}, channels_last), {2, 2, 30, 4});
    Expect(Dense({kOfThreeTaps, kIdle, other}, channels_last), {2, 2, 4, 30});
    Expect(Dense({kIdle, other, kIdle}, channels_last), {2, 2, 30, 5});
  }
}

TEST(MergedAxes, AreAFirstOneWithTheBatchWhereChannelsComeLast) {
  Expect(Dense({kIdle, kOfThreeTaps, kOfThreeTaps}, true), {2, 10, 4, 4});
  Expect(Dense({kIdle, kOfThreeTaps, kOfThreeTaps}, false), {3, 2, 5, 4});
}

TEST(MergedAxes, AreNoneWhereAFilterDoesSomething) {
  Axis by_steps = {.x = 5, .w = 1, .y = 3, .stride = 2};
  Axis padded = {.x = 5, .w = 1, .y = 7, .pad_begin = 1, .pad_end = 1};
  for (const bool channels_last : {false, true}) {
    for (const Axis& axis : {by_steps, padded, kOfThreeTaps}) {
      Expect(Dense({axis, axis, axis}, channels_last), {3, 2, axis.x, axis.x});
      Expect(Dense({axis, kIdle, axis}, channels_last), {3, 2, axis.x, 5});
    }
    Expect(Dense({kIdle, kIdle}, channels_last), {2, 2, 5, 5});
  }
}

/// A part of larger tensors, whose rows or planes are further apart.
TEST(MergedAxes, AreNoneThatStridesKeepApart) {
  Problem problem = Dense({kIdle, kIdle, kOfThreeTaps}, false);
  problem.x_strides[2] += 4;
  Expect(problem, {3, 2, 5, 5});
  problem = Dense({kIdle, kOfThreeTaps, kOfThreeTaps}, true);
  problem.y_strides[0] += 6;
  Expect(problem, {3, 2, 5, 4});
}

}  // namespace
}  // namespace gradsmith::conv
