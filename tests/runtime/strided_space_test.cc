#include "patterns/strided_space.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace gradsmith::internal {
namespace {

struct Written {
  int rank = 0;
  std::int64_t sizes[3] = {};
  std::int64_t strides[2][3] = {};
};

Written Write(StridedSpace<2, 3> space) {
  Written written;
  written.rank = space.WriteTo(0, written.sizes, written.strides);
  return written;
}

TEST(StridedSpace, DimsThatOneStrideServesBecomeOne) {
  StridedSpace<2, 3> space;
  space.Add({.size = 4, .strides = {5, 10}});
  space.Add({.size = 1, .strides = {7, 7}});
  space.Add({.size = 5, .strides = {1, 2}});
  const Written written = Write(space);
  ASSERT_EQ(written.rank, 1);
  EXPECT_EQ(written.sizes[0], 20);
  EXPECT_EQ(written.strides[0][0], 1);
  EXPECT_EQ(written.strides[1][0], 2);
}

TEST(StridedSpace, DimsLieInTheOrderOfTheLeadWhateverItsStridesSigns) {
  StridedSpace<2, 3> space;
  space.Add({.size = 2, .strides = {1, 100}});
  space.Add({.size = 3, .strides = {-50, 1}});
  space.Add({.size = 4, .strides = {INT64_MIN, 7}});
  const Written written = Write(space);
  ASSERT_EQ(written.rank, 3);
  EXPECT_EQ(written.sizes[0], 4);
  EXPECT_EQ(written.sizes[1], 3);
  EXPECT_EQ(written.sizes[2], 2);
}

TEST(StridedSpace, DimsWhoseProductOverflowsAreNotOne) {
  StridedSpace<2, 3> space;  // of a tensor without elements
  space.Add({.size = INT64_MAX, .strides = {0, 0}});
  space.Add({.size = INT64_MAX, .strides = {0, 0}});
  space.Add({.size = 0, .strides = {0, 0}});
  const Written written = Write(space);
  ASSERT_EQ(written.rank, 2);
  EXPECT_EQ(written.sizes[0], INT64_MAX);
  EXPECT_EQ(written.sizes[1], 0);
}

TEST(StridedSpace, StridesWhoseProductOverflowsAreNotOne) {
  StridedSpace<2, 3> space;
  space.Add({.size = 3, .strides = {2, -2}});
  space.Add({.size = 2, .strides = {1, INT64_MAX}});  // 2 * INT64_MAX wraps to -2
  EXPECT_EQ(Write(space).rank, 2);
}

}  // namespace
}  // namespace gradsmith::internal
