#include "core/overlap.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

namespace gradsmith::internal {
namespace {

ConstTensorRef View(const void* data, const Dims& dims, const Strides& strides) {
  return {DataType::kFloat, data, dims, strides};
}

/// Offsets in bytes of all elements, by counting through the indices.
std::vector<std::int64_t> Offsets(const ConstTensorRef& tensor) {
  std::vector<std::int64_t> offsets = {0};
  for (int i = 0; i < tensor.rank(); ++i) {
    std::vector<std::int64_t> next;
    for (const std::int64_t offset : offsets) {
      for (std::int64_t x = 0; x < tensor.dims[i]; ++x) {
        next.push_back(offset + x * tensor.strides[i] * 4);
      }
    }
    offsets = next;
  }
  return offsets;
}

TEST(OverlapsItself, KnowsDenseGappedAndInterwovenStrides) {
  std::array<float, 64> data{};
  EXPECT_FALSE(OverlapsItself(View(data.data(), {2, 3, 4}, {12, 4, 1})));
  EXPECT_FALSE(OverlapsItself(View(data.data(), {2, 3, 4}, {12, 1, 3})));
  EXPECT_FALSE(OverlapsItself(View(data.data(), {2, 3}, {3, 2})));  // 0 2 4 3 5 7
  EXPECT_FALSE(OverlapsItself(View(data.data(), {1, 3}, {0, 1})));
  EXPECT_TRUE(OverlapsItself(View(data.data(), {2, 3}, {0, 1})));
  EXPECT_TRUE(OverlapsItself(View(data.data(), {2, 4}, {3, 1})));
  EXPECT_FALSE(OverlapsItself(View(nullptr, {0, 4}, {0, 0})));
}

TEST(Overlap, TellsInterleavedSlicesFromSharedOnes) {
  std::array<float, 2 * 8 * 9> buffer{};
  const Strides channels_last = {72, 1, 24, 8};
  const ConstTensorRef low = View(buffer.data(), {2, 3, 3, 3}, channels_last);
  const ConstTensorRef high = View(buffer.data() + 3, {2, 5, 3, 3}, channels_last);
  const ConstTensorRef middle = View(buffer.data() + 2, {2, 2, 3, 3}, channels_last);
  EXPECT_FALSE(Overlap(low, high));
  EXPECT_FALSE(Overlap(high, low));
  EXPECT_TRUE(Overlap(low, middle));
  EXPECT_TRUE(Overlap(middle, high));
  EXPECT_TRUE(Overlap(low, low));
}

TEST(Overlap, TakesNoNoticeOfTheStrideOfASingleElement) {
  std::array<float, 64> buffer{};
  for (const std::int64_t stride : {std::int64_t{1} << 61, std::int64_t{1} << 62, INT64_MAX}) {
    const ConstTensorRef x = View(buffer.data(), {2, 1, 4}, {8, stride, 2});
    EXPECT_TRUE(Overlap(x, View(buffer.data() + 2, {2, 1, 4}, {8, stride, 2})));
    EXPECT_FALSE(Overlap(x, View(buffer.data() + 1, {2, 1, 4}, {8, stride, 2})));
    EXPECT_FALSE(OverlapsItself(x));
  }
}

TEST(Overlap, SeesAShareOfOneByte) {
  std::array<float, 16> buffer{};
  const auto* bytes = reinterpret_cast<const char*>(buffer.data());
  const ConstTensorRef first = View(bytes, {4}, {1});
  EXPECT_TRUE(Overlap(first, View(bytes + 15, {4}, {1})));
  EXPECT_TRUE(Overlap(View(bytes + 15, {4}, {1}), first));
  EXPECT_FALSE(Overlap(first, View(bytes + 16, {4}, {1})));
  EXPECT_FALSE(Overlap(View(bytes + 16, {4}, {1}), first));
}

/// All offsets of one are even and of the other odd, which the search does not see.
TEST(Overlap, IsAssumedWhereTheSearchGivesUp) {
  const Strides strides = {2 * 1009, 2 * 1013, 2 * 1019, 2 * 1021, 2 * 1031, 2 * 1033, 2 * 1039};
  const Dims dims = {9, 9, 9, 9, 9, 9, 9};
  std::array<float, 2> buffer{};
  EXPECT_TRUE(Overlap(View(buffer.data(), dims, strides), View(buffer.data() + 1, dims, strides)));
  EXPECT_FALSE(Overlap(View(buffer.data(), {9}, {2}), View(buffer.data() + 1, {9}, {2})));
}

TEST(Overlap, AgreesWithCountingOnRandomViews) {
  std::mt19937 random(7);
  const auto draw = [&random](int low, int high) {
    return static_cast<std::int64_t>(low + static_cast<int>(random() % (high - low + 1)));
  };
  std::vector<float> buffer(1024);
  int overlapping = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    std::vector<ConstTensorRef> views;
    for (int i = 0; i < 2; ++i) {
      const int rank = static_cast<int>(draw(1, 3));
      Dims dims;
      Strides strides;
      for (int axis = 0; axis < rank; ++axis) {
        dims.push_back(draw(1, 4));
        strides.push_back(draw(0, 12));
      }
      views.push_back(View(buffer.data() + draw(0, 20), dims, strides));
    }
    const std::vector<std::int64_t> a = Offsets(views[0]);
    const std::vector<std::int64_t> b = Offsets(views[1]);
    EXPECT_EQ(OverlapsItself(views[0]), std::set(a.begin(), a.end()).size() != a.size());
    const std::int64_t shift =
        static_cast<const char*>(views[1].data) - static_cast<const char*>(views[0].data);
    const std::set<std::int64_t> taken(a.begin(), a.end());
    bool shared = false;
    for (const std::int64_t offset : b) {
      shared = shared || taken.count(offset + shift) > 0;
    }
    EXPECT_EQ(Overlap(views[0], views[1]), shared)
        << ToString(views[0].dims) << ToString(views[0].strides) << ToString(views[1].dims)
        << ToString(views[1].strides) << shift;
    overlapping += shared ? 1 : 0;
  }
  EXPECT_GT(overlapping, 400);
  EXPECT_LT(overlapping, 3600);
}

TEST(LastOffset, RefusesWhatDoesNotFit) {
  const std::int64_t huge = std::int64_t{1} << 60;
  EXPECT_EQ(LastOffset(View(nullptr, {2, 3}, {3, 1})), 5);
  EXPECT_EQ(LastOffset(View(nullptr, {3}, {huge})), -1);
  EXPECT_EQ(LastOffset(View(nullptr, {9, 9}, {huge, huge})), -1);
}

}  // namespace
}  // namespace gradsmith::internal
