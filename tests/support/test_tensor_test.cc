#include "support/test_tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/elements.h"

namespace gradsmith::support {
namespace {

using Strides = std::vector<std::int64_t>;

TEST(TestTensorTest, StridesOfLayouts) {
  EXPECT_EQ(StridesFor(Layout::kContiguous, {2, 3, 4, 5}), (Strides{60, 20, 5, 1}));
  EXPECT_EQ(StridesFor(Layout::kChannelsLast, {2, 3, 4, 5}), (Strides{60, 1, 15, 3}));
  EXPECT_EQ(StridesFor(Layout::kChannelsLast, {2, 3}), (Strides{3, 1}));
  EXPECT_EQ(StridesFor(Layout::kStrided, {2, 3}), (Strides{7, 2}));
  EXPECT_EQ(StridesFor(Layout::kBroadcast, {2, 3, 4}), (Strides{0, 4, 0}));
}

TEST(TestTensorTest, ReadsBackWhatItHolds) {
  for (const Layout layout : {Layout::kContiguous, Layout::kChannelsLast, Layout::kStrided}) {
    TestTensor tensor(DataType::kFloat, {2, 2, 3}, layout);
    const std::vector<double> values{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    tensor.Fill(values);
    EXPECT_EQ(tensor.Values(), values);
    const TensorRef ref = tensor.Ref();
    const auto* data = static_cast<const float*>(ref.data);
    EXPECT_EQ(data[ref.strides[0] + 2 * ref.strides[2]], 9);
  }
}

TEST(TestTensorTest, ElementsThatShareMemoryAreEqual) {
  TestTensor tensor(DataType::kFloat, {2, 2, 2}, Layout::kBroadcast);
  tensor.Fill({1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(tensor.Values(), (std::vector<double>{6, 6, 8, 8, 6, 6, 8, 8}));
}

TEST(TestTensorTest, IsPoisonedUntilFilled) {
  for (const DataType type :
       {DataType::kFloat, DataType::kDouble, DataType::kMLFloat16, DataType::kBFloat16}) {
    TestTensor tensor(type, {2, 2}, Layout::kStrided);
    EXPECT_TRUE(std::isnan(tensor.Values()[3])) << ToString(type);
    tensor.Fill({1, 2, 3, 4});
    EXPECT_EQ(tensor.Values()[3], 4);
    tensor.Poison();
    EXPECT_TRUE(std::isnan(tensor.Values()[3])) << ToString(type);
  }
}

TEST(TestTensorTest, NoticesWritesAroundItsElements) {
  const auto intact_after_writing = [](std::int64_t offset) {
    TestTensor tensor(DataType::kFloat, {2, 2}, Layout::kStrided);  // elements at 0, 2, 5 and 7
    tensor.Fill({1, 2, 3, 4});
    static_cast<float*>(tensor.Ref().data)[offset] = 0;
    return tensor.SurroundingsIntact();
  };
  for (const std::int64_t element : {0, 2, 5, 7}) {
    EXPECT_TRUE(intact_after_writing(element)) << element;
  }
  for (const std::int64_t other : {-2, -1, 1, 3, 4, 6, 8, 9}) {
    EXPECT_FALSE(intact_after_writing(other)) << other;
  }
}

TEST(TestTensorTest, MayBeEmpty) {
  TestTensor tensor(DataType::kDouble, {0, 3}, Layout::kContiguous);
  tensor.Fill({});
  EXPECT_EQ(tensor.Values(), std::vector<double>());
  EXPECT_TRUE(tensor.SurroundingsIntact());
}

}  // namespace
}  // namespace gradsmith::support
