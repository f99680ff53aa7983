#include <gtest/gtest.h>

#include <optional>

#include "batch_norm/cuda/held.h"
#include "gradsmith/tensor.h"
#include "gradsmith/types.h"

namespace gradsmith::batch_norm {
namespace {

ConstTensorRef Tensor(DataType type, const Dims& dims, bool channels_last) {
  return {type, nullptr, dims, channels_last ? ChannelsLastStrides(dims) : ContiguousStrides(dims)};
}

std::optional<HeldShape> ShapeOf(DataType type, const Dims& dims, bool channels_last = false) {
  const ConstTensorRef tensor = Tensor(type, dims, channels_last);
  return HeldShapeOf(own::kPolicies.front(), tensor, tensor, &tensor);
}

TEST(BatchNormHeld, ABlockHasAChannelOfPlanes) {
  const std::optional<HeldShape> shape = ShapeOf(DataType::kFloat, {32, 256, 7, 7});
  ASSERT_TRUE(shape);
  EXPECT_EQ(shape->plan.blocks_x, 256);
  EXPECT_EQ(shape->walk.channels, 1);
  EXPECT_EQ(shape->threads, 512);
  EXPECT_EQ(shape->walk.lanes, 512);
}

/// A block has as many channels as a sector of memory holds, and more where blocks are many.
TEST(BatchNormHeld, ABlockHasNeighbouringChannels) {
  const auto channels_of = [](DataType type, const Dims& dims) {
    const std::optional<HeldShape> shape = ShapeOf(type, dims, true);
    return shape ? shape->walk.channels : 0;
  };
  EXPECT_EQ(channels_of(DataType::kMLFloat16, {64, 1536}), 16);
  EXPECT_EQ(channels_of(DataType::kFloat, {64, 1536}), 8);
  EXPECT_EQ(channels_of(DataType::kDouble, {64, 1536}), 8);
  EXPECT_EQ(channels_of(DataType::kFloat, {64, 8192}), 32);
  EXPECT_EQ(channels_of(DataType::kFloat, {128, 2048, 3, 3}), 4) << "samples are many";
  EXPECT_EQ(channels_of(DataType::kMLFloat16, {64, 512}), 8) << "blocks are few";
  EXPECT_EQ(channels_of(DataType::kFloat, {64, 3}), 4) << "there are no more";
}

TEST(BatchNormHeld, AllSamplesAreHeld) {
  for (const DataType type :
       {DataType::kFloat, DataType::kDouble, DataType::kMLFloat16, DataType::kBFloat16}) {
    const auto bytes = static_cast<std::int64_t>(SizeOf(type));
    const std::int64_t most = own::kMostHeldBytes / 2 / bytes;
    for (const bool channels_last : {false, true}) {
      for (std::int64_t samples = 2; samples <= most; samples += 1 + samples / 7) {
        for (const std::int64_t channels : {1, 3, 40, 2000}) {
          const std::optional<HeldShape> shape =
              ShapeOf(type, {samples, channels, 1, 1}, channels_last);
          if (!shape) {
            EXPECT_TRUE(samples * 4 > most || samples * channels > (1 << 24));
            continue;
          }
          const std::int64_t of_thread = (samples + shape->walk.lanes - 1) / shape->walk.lanes;
          EXPECT_EQ(shape->shared_bytes, 2 * of_thread * shape->threads * bytes);
          EXPECT_LE(shape->shared_bytes, own::kMostHeldBytes);
          EXPECT_GE(shape->plan.blocks_x * shape->walk.channels, channels);
          EXPECT_EQ(shape->walk.lanes * shape->walk.channels, shape->threads);
          EXPECT_EQ(shape->threads % 32, 0);
        }
      }
    }
  }
}

TEST(BatchNormHeld, WhatIsTooMuchIsLeftToOthers) {
  EXPECT_TRUE(ShapeOf(DataType::kFloat, {1, 8, 8192}));
  EXPECT_FALSE(ShapeOf(DataType::kFloat, {1, 8, 8193}));
  EXPECT_TRUE(ShapeOf(DataType::kMLFloat16, {1, 8, 16384}));
  EXPECT_FALSE(ShapeOf(DataType::kDouble, {1, 8, 4097}));
  EXPECT_FALSE(ShapeOf(DataType::kFloat, {1, 8, 1})) << "one value has no variance";
  EXPECT_FALSE(ShapeOf(DataType::kFloat, {0, 8, 7}));
  EXPECT_FALSE(ShapeOf(DataType::kFloat, {8, 0, 7}));
  EXPECT_FALSE(ShapeOf(DataType::kFloat, {64, 8192, 7, 7})) << "25 million elements";
}

/// The samples of dX do as well: a place in it is found by one division.
TEST(BatchNormHeld, SamplesLieAlongTwoDims) {
  const Dims dims = {3, 8, 4, 6};
  const ConstTensorRef dense = Tensor(DataType::kFloat, dims, false);
  const ConstTensorRef rows_apart = {DataType::kFloat, nullptr, dims, {320, 40, 8, 1}};
  EXPECT_TRUE(HeldShapeOf(own::kPolicies.front(), dense, dense, nullptr));
  EXPECT_FALSE(HeldShapeOf(own::kPolicies.front(), dense, dense, &rows_apart));
  EXPECT_FALSE(HeldShapeOf(own::kPolicies.front(), rows_apart, dense, nullptr));
}

}  // namespace
}  // namespace gradsmith::batch_norm
