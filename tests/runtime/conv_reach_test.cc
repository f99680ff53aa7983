#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <set>
#include <vector>

#include "conv/reach.h"
#include "reference/random.h"

namespace gradsmith::conv {
namespace {

using reference::Random;
using Index = std::vector<std::int64_t>;

/// One product of a convolution: an element of each operand.
struct Product {
  std::array<Index, kOperands> index;
};

Problem RandomProblem(Random& random) {
  Problem problem;
  problem.batch = random.Integer(1, 3);
  problem.group = random.Integer(1, 2);
  problem.x_channels = problem.group * random.Integer(1, 2);
  problem.y_channels = problem.group * random.Integer(1, 3);
  problem.spatial_rank = static_cast<int>(random.Integer(1, 2));
  for (int i = 0; i < problem.spatial_rank; ++i) {
    Axis& axis = problem.axes.at(i);
    axis.w = random.Integer(1, 4);
    axis.stride = random.Integer(1, 3);
    axis.dilation = random.Integer(1, 3);
    axis.pad_begin = random.Integer(0, 5);
    axis.pad_end = random.Integer(0, 5);
    axis.x = ((axis.w - 1) * axis.dilation) + random.Integer(1, 5);
    axis.y = ((axis.x + axis.pad_begin + axis.pad_end - ((axis.w - 1) * axis.dilation) - 1) /
              axis.stride) +
             1;
  }
  return problem;
}

/// All products along the axes from `axis` on.
void AddAlong(const Problem& problem, int axis, Product& product, std::vector<Product>* products) {
  if (axis == problem.spatial_rank) {
    products->push_back(product);
    return;
  }
  const Axis& along = problem.axes.at(axis);
  for (std::int64_t o = 0; o < along.y; ++o) {
    for (std::int64_t k = 0; k < along.w; ++k) {
      const std::int64_t p = (o * along.stride) + (k * along.dilation) - along.pad_begin;
      if (p < 0 || p >= along.x) {
        continue;
      }
      Product longer = product;
      longer.index[kX].push_back(p);
      longer.index[kW].push_back(k);
      longer.index[kY].push_back(o);
      AddAlong(problem, axis + 1, longer, products);
    }
  }
}

std::vector<Product> AllProducts(const Problem& problem) {
  std::vector<Product> products;
  const std::int64_t inner = problem.x_channels / problem.group;
  const std::int64_t outer = problem.y_channels / problem.group;
  for (std::int64_t n = 0; n < problem.batch; ++n) {
    for (std::int64_t m = 0; m < problem.y_channels; ++m) {
      for (std::int64_t c = 0; c < inner; ++c) {
        Product product;
        product.index[kX] = {n, (m / outer * inner) + c};
        product.index[kW] = {m, c};
        product.index[kY] = {n, m};
        AddAlong(problem, 0, product, &products);
      }
    }
  }
  return products;
}

TEST(ConvReach, CountsTheElementsThatHaveAProductWithAPlace) {
  Random random("conv reach");
  int places = 0;
  for (int i = 0; i < 60; ++i) {
    const Problem problem = RandomProblem(random);
    const std::vector<Product> products = AllProducts(problem);
    for (const Operand operand : {kX, kW, kY}) {
      for (const Place& place : PlacesToTry(problem, operand)) {
        for (const Operand result : {kX, kW, kY}) {
          std::set<Index> reached;
          for (const Product& product : products) {
            if (product.index.at(operand) == place.index) {
              reached.insert(product.index.at(result));
            }
          }
          if (result != operand) {
            EXPECT_EQ(ReachedElements(problem, place), static_cast<std::int64_t>(reached.size()))
                << Describe({.primitive = Primitive::kForward, .problem = problem}) << ", operand "
                << operand << ", result " << result;
            ++places;
          }
        }
      }
    }
  }
  EXPECT_GT(places, 500);
}

TEST(ConvReach, PlacesAreTheFirstTheMiddleAndTheLast) {
  Problem problem;
  problem.batch = 3;
  problem.x_channels = 1;
  problem.y_channels = 1;
  problem.spatial_rank = 1;
  problem.axes[0] = {.x = 7, .w = 1, .y = 7};
  const std::vector<Place> places = PlacesToTry(problem, kX);
  ASSERT_EQ(places.size(), 3U);
  EXPECT_EQ(places[0].index, (Index{0, 0, 0}));
  EXPECT_EQ(places[1].index, (Index{1, 0, 3}));
  EXPECT_EQ(places[2].index, (Index{2, 0, 6}));
  EXPECT_EQ(PlacesToTry(problem, kW).size(), 1U) << "of one element";
}

TEST(ConvReach, OffsetsGoByStrides) {
  Problem problem;
  problem.batch = 3;
  problem.x_channels = 2;
  problem.spatial_rank = 1;
  problem.axes[0] = {.x = 7, .w = 1, .y = 7};
  problem.x_strides = Strides({14, 1, 2});
  EXPECT_EQ(OffsetOf(problem, {.operand = kX, .index = {2, 1, 5}}), 28 + 1 + 10);
}

}  // namespace
}  // namespace gradsmith::conv
