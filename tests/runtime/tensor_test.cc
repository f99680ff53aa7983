#include "gradsmith/tensor.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <type_traits>

namespace gradsmith {
namespace {

TEST(IntList, HoldsUpToEightAndRemembersThatThereWereMore) {
  const IntList eight = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(eight.size(), 8);
  EXPECT_FALSE(eight.too_long());
  const IntList nine = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_EQ(nine.size(), 8);
  EXPECT_TRUE(nine.too_long());
  EXPECT_EQ(ToString(nine), "[1, 2, 3, 4, 5, 6, 7, 8, ...]");
  EXPECT_EQ(ToString(IntList{}), "[]");
  EXPECT_EQ(IntList::Filled(3, 7), (IntList{7, 7, 7}));
  EXPECT_FALSE((IntList{1, 2}) == (IntList{1, 2, 3}));
}

TEST(Strides, OfDenseLayouts) {
  EXPECT_EQ(ContiguousStrides({2, 3, 4, 5}), (Strides{60, 20, 5, 1}));
  EXPECT_EQ(ChannelsLastStrides({2, 3, 4, 5}), (Strides{60, 1, 15, 3}));
  EXPECT_EQ(ChannelsLastStrides({2, 3, 4}), (Strides{12, 1, 3}));
  EXPECT_EQ(ChannelsLastStrides({7}), (Strides{1}));
  EXPECT_EQ(ContiguousStrides({}), Strides{});
}

TEST(Strides, OfAbsurdDimsSaturateInsteadOfWrapping) {
  const std::int64_t huge = std::int64_t{1} << 62;
  EXPECT_EQ(ContiguousStrides({2, huge, 4})[0], INT64_MAX);
  EXPECT_EQ(ChannelsLastStrides({2, huge, 4})[0], INT64_MAX);
}

TEST(NumElements, CountsOrRefuses) {
  const std::int64_t huge = std::int64_t{1} << 62;
  EXPECT_EQ(NumElements({2, 3, 4}), 24);
  EXPECT_EQ(NumElements({}), 1);
  EXPECT_EQ(NumElements({huge, 4}), -1);
  EXPECT_EQ(NumElements({huge, 4, 0}), 0);
  EXPECT_EQ(NumElements({2, -1}), -1);
}

TEST(TensorView, IsAbsentByDefault) {
  EXPECT_FALSE(TensorView<float>().present());
  EXPECT_FALSE(ConstTensorRef().present);
}

TEST(TensorView, CarriesItsElementType) {
  std::array<double, 6> data{};
  const TensorView<double> view(data.data(), {2, 3});
  EXPECT_EQ(view.ref().type, DataType::kDouble);
  EXPECT_EQ(view.strides(), (Strides{3, 1}));
  const TensorView<const double> reading = view;
  EXPECT_EQ(reading.data(), data.data());
  static_assert(!std::is_convertible_v<TensorView<const double>, TensorView<double>>);
  static_assert(!std::is_convertible_v<TensorView<double>, TensorView<float>>);
  static_assert(!std::is_convertible_v<ConstTensorRef, TensorRef>);
}

}  // namespace
}  // namespace gradsmith
