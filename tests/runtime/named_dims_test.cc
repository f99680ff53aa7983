#include "patterns/named_dims.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "patterns/rows.h"

namespace gradsmith::internal {
namespace {

/// The dims [2, 3, 4, 5], of which the ones between the first and the last have one name.
NamedDims DimsOfThreeNames() {
  constexpr std::array<std::int64_t, 3> kLengths = {1, NamedDims::kRest, 1};
  return {{2, 3, 4, 5}, kLengths};
}

TEST(NamedDims, AreCountedAndListedByTheirNames) {
  const NamedDims dims = DimsOfThreeNames();
  EXPECT_EQ(dims.Count(0b010), 12);
  EXPECT_EQ(dims.Count(0b101), 10);
  EXPECT_EQ(dims.DimsOf({1, 0}), (Dims{3, 4, 2}));
  // Where the largest tensor lacks a name, the dims behind that come sooner.
  EXPECT_EQ(dims.Axes(0b010, 0b111).dims, 0b0110U);
  EXPECT_EQ(dims.Axes(0b100, 0b111).dims, 0b1000U);
  EXPECT_EQ(dims.Axes(0b100, 0b101).dims, 0b0010U);
}

/// A dim of 1 may have no name.
TEST(NamedDims, ATensorIsSpreadAlongThoseThatItLacks) {
  std::array<float, 1> data{};
  const TensorRef tensor(DataType::kFloat, data.data(), {2, 1, 5}, {7, 99, 3}, {});
  const TensorRef spread = DimsOfThreeNames().Spread(tensor, {0, kUnnamed, 2}, /*names=*/0b111);
  EXPECT_EQ(spread.dims, (Dims{2, 3, 4, 5}));
  EXPECT_EQ(spread.strides, (Strides{7, 0, 0, 3}));
  const TensorRef some = DimsOfThreeNames().Spread(tensor, {0, kUnnamed, 2}, /*names=*/0b110);
  EXPECT_EQ(some.dims, (Dims{3, 4, 5}));
  EXPECT_EQ(some.strides, (Strides{0, 0, 3}));
}

}  // namespace
}  // namespace gradsmith::internal
