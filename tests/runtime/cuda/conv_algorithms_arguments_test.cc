#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "gradsmith/conv_algorithms.h"

/// What the choice by hand refuses before it asks for a GPU.
namespace gradsmith {
namespace {

class ConvAlgorithmsArguments : public testing::Test {
 protected:
  static constexpr Device kGpu = {Backend::kCuda, 0};

  [[nodiscard]] std::string Error(ConvPrimitive primitive = ConvPrimitive::kBackwardFilter) const {
    return Error(Context({.device = kGpu}), primitive);
  }
  [[nodiscard]] std::string Error(
      const Context& context,
      ConvPrimitive primitive = ConvPrimitive::kBackwardFilter) const {
    const Status status = ConvAlgorithms::Prepare(context, primitive, x_, w_, y_, {}).status();
    EXPECT_TRUE(
        status.ok() || CheckDevice(kGpu).code() == status.code() ||
        status.code() == StatusCode::kInvalidArgument)
        << status.message();
    return status.message();
  }
  /// Whether the arguments are good: then there is no error, or that there is no GPU.
  [[nodiscard]] bool Passes() const { return Error() == CheckDevice(kGpu).message(); }

  std::vector<float> x_data_ = std::vector<float>(3 * 25 * 2);
  std::vector<float> w_data_ = std::vector<float>(4 * 3 * 9 * 2);
  std::vector<float> y_data_ = std::vector<float>(4 * 9 * 2);
  TensorRef x_{DataType::kFloat, x_data_.data(), {1, 3, 5, 5}, kGpu};
  TensorRef w_{DataType::kFloat, w_data_.data(), {4, 3, 3, 3}, kGpu};
  TensorRef y_{DataType::kFloat, y_data_.data(), {1, 4, 3, 3}, kGpu};
};

TEST_F(ConvAlgorithmsArguments, OverlapsAreRefused) {
  EXPECT_TRUE(Passes());
  w_.data = x_data_.data() + 74;
  EXPECT_EQ(Error(), "output w overlaps input x in memory; expected memory of its own");
  EXPECT_EQ(
      Error(ConvPrimitive::kBackwardData),
      "output x overlaps input w in memory; expected memory of its own");
  w_.data = x_data_.data() + 75;
  EXPECT_NE(Error(), "output w overlaps input x in memory; expected memory of its own");
  w_.data = y_data_.data();
  EXPECT_EQ(Error(), "output w overlaps input y in memory; expected memory of its own");
}

TEST_F(ConvAlgorithmsArguments, InputsMayShareMemory) {
  x_data_.resize(200);
  x_.data = x_data_.data();
  y_.data = x_data_.data();
  EXPECT_TRUE(Passes());
}

TEST_F(ConvAlgorithmsArguments, ElementsOfTheOutputShareNothing) {
  w_.strides = {27, 9, 3, 0};
  EXPECT_EQ(
      Error(),
      "output w has dims [4, 3, 3, 3] and strides [27, 9, 3, 0], in which elements share memory; "
      "expected strides that do not overlap");
  // Of what is read they may.
  w_.strides = {27, 9, 3, 1};
  y_.strides = {36, 9, 3, 0};
  EXPECT_TRUE(Passes());
}

TEST_F(ConvAlgorithmsArguments, StridesAndAddressesAreChecked) {
  x_.strides = {75, 25, -5, 1};
  EXPECT_EQ(Error(), "x has strides [75, 25, -5, 1], negative at dimension 2; expected 0 or more");
  x_.strides = {75, 25, 5};
  EXPECT_EQ(Error(), "x has 3 strides [75, 25, 5] for 4 dims [1, 3, 5, 5]; expected one for each");
  x_.strides = {75, 25, 5, 1};
  x_.dims = {1, 3, -5, 5};
  EXPECT_EQ(Error(), "x has dims [1, 3, -5, 5], negative at dimension 2; expected 0 or more");
  x_.dims = {0, 3, 5, 5};
  EXPECT_EQ(Error(), "x has dims [0, 3, 5, 5]; expected 1 or more");
  x_.dims = {1, 3, 5, 5};
  y_.data = reinterpret_cast<std::byte*>(y_data_.data()) + 3;
  EXPECT_EQ(
      Error(),
      "y has data 3 bytes past a multiple of 4; expected it aligned to its elements of 4 "
      "bytes (float)");
}

TEST_F(ConvAlgorithmsArguments, OnlyTheResultIsAddedTo) {
  w_ = w_.Accumulating();
  EXPECT_TRUE(Passes());
  EXPECT_EQ(
      Error(ConvPrimitive::kForward), "w is to be added to; only y, which is computed, can be");
}

TEST_F(ConvAlgorithmsArguments, TheCallersWorkspaceIsChecked) {
  alignas(256) static std::byte block[512];
  const Context context({.device = kGpu, .workspace = block + 8, .workspace_size = 256});
  EXPECT_EQ(
      Error(context),
      "the context's workspace is 8 bytes past a multiple of 256; expected it "
      "aligned to 256 bytes");
}

}  // namespace
}  // namespace gradsmith
