#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "batch_norm/cuda/own_plan.h"
#include "gradsmith/tensor.h"
#include "support/elements.h"
#include "support/test_tensor.h"

/// How our own batch normalization goes along rows that are no whole vectors, without a GPU.
namespace gradsmith::batch_norm::own {
namespace {

alignas(kVectorBytes) constexpr std::array<std::byte, 32> kMemory{};

constexpr DataType kTypes[] = {
    DataType::kFloat, DataType::kDouble, DataType::kMLFloat16, DataType::kBFloat16};

ConstTensorRef Tensor(DataType type, const Dims& dims) {
  return {type, kMemory.data(), dims};
}

/// The channels of a dense tensor lie `gap` elements further apart than they must.
ConstTensorRef WithGaps(DataType type, const Dims& dims, std::int64_t gap) {
  Strides strides = ContiguousStrides(dims);
  strides[1] += gap;
  strides[0] = strides[1] * dims[1];
  return {type, kMemory.data(), dims, strides};
}

std::int64_t Vectors(DataType type, const Plan& plan) {
  return plan.walk.counts[kInner] / (kVectorBytes / static_cast<std::int64_t>(SizeOf(type)));
}

/// The vectors of the thread that has the most of a slice of so many rows, counted.
std::int64_t MostOfAThread(std::int64_t rows, std::int64_t vectors, int width) {
  const int lanes = kThreads / width;
  std::vector<std::int64_t> of_thread(kThreads);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < vectors; ++i) {
      ++of_thread[(row % lanes * width) + (i % width)];
    }
  }
  return *std::ranges::max_element(of_thread);
}

/// Two rows of 3,135 elements for each block: as many threads as there are take part in them. (By
/// the vectors alone a row is best for 32, which leaves six warps of eight with nothing to do.)
TEST(BatchNormPlan, FewRowsOfABlockAreForAllItsThreads) {
  for (const DataType type : kTypes) {
    const ConstTensorRef X = Tensor(type, {64, 33, 55, 57});
    const Plan plan = MakePlan(kPolicies.front(), {nullptr, &X, nullptr});
    ASSERT_EQ(plan.path, Path::kRows);
    EXPECT_EQ(plan.walk.slices, 32);
    EXPECT_EQ(plan.walk.width, kThreads / 2) << ToString(type);
  }
}

/// No other power of two that is a line wide or more leaves the thread with the most much less.
TEST(BatchNormPlan, WidthsOfRowsShareOutTheWork) {
  const std::vector<Dims> shapes = {{64, 33, 55, 57},   {32, 288, 17, 17}, {128, 48, 35, 35},
                                    {16, 64, 149, 149}, {8, 5, 73, 73},    {256, 3, 21, 21},
                                    {64, 768, 17, 17},  {3, 7, 63, 63}};
  for (const Dims& dims : shapes) {
    for (const DataType type : kTypes) {
      SCOPED_TRACE(ToString(dims) + " " + std::string(ToString(type)));
      const ConstTensorRef X = Tensor(type, dims);
      const Plan plan = MakePlan(kPolicies.front(), {nullptr, &X, nullptr});
      ASSERT_EQ(plan.path, Path::kRows);
      const Walk& walk = plan.walk;
      if (walk.pieces > 1) {
        EXPECT_GE(walk.width, 128);
        continue;
      }
      const std::int64_t rows = (dims[0] + walk.slices - 1) / walk.slices;
      const std::int64_t vectors = Vectors(type, plan);
      std::int64_t least = std::numeric_limits<std::int64_t>::max();
      for (int width = 8; width <= kThreads; width *= 2) {
        least = std::min(least, MostOfAThread(rows, vectors, width));
      }
      const auto most = static_cast<double>(MostOfAThread(rows, vectors, walk.width));
      EXPECT_LE(most, 1.5 * static_cast<double>(least)) << "width " << walk.width;
      EXPECT_GE(walk.width, 8);
    }
  }
}

/// Where a row has no vectors, its elements are shared out.
TEST(BatchNormPlan, ShortRowsAreElements) {
  const ConstTensorRef X = Tensor(DataType::kMLFloat16, {90, 7, 1, 5});
  const Plan plan = MakePlan(kPolicies.front(), {nullptr, &X, nullptr});
  ASSERT_EQ(plan.path, Path::kRows);
  EXPECT_EQ(plan.walk.width, 8);
}

/// Which addresses tensors have does not change the order of sums, but how they are loaded.
TEST(BatchNormPlan, VectorsAreAlikeByStridesAndAddresses) {
  const Dims dims = {6, 5, 9, 7};
  for (const DataType type : kTypes) {
    SCOPED_TRACE(ToString(type));
    const auto size = static_cast<std::int64_t>(SizeOf(type));
    const std::int64_t per_vector = kVectorBytes / size;
    const ConstTensorRef X = Tensor(type, dims);
    const ConstTensorRef dY = WithGaps(type, dims, per_vector);
    const ConstTensorRef odd = WithGaps(type, dims, 1);
    ConstTensorRef moved = X;
    moved.data = kMemory.data() + size;
    const Plan alike = MakePlan(kPolicies.front(), {&dY, &X, &X});
    EXPECT_TRUE(alike.walk.vectors_alike);
    EXPECT_EQ(MakePlan(kPolicies.front(), {nullptr, &moved, nullptr}).walk.width, alike.walk.width);
    EXPECT_FALSE(MakePlan(kPolicies.front(), {&odd, &X, &X}).walk.vectors_alike);
    EXPECT_FALSE(MakePlan(kPolicies.front(), {&X, &odd, &X}).walk.vectors_alike);
    EXPECT_FALSE(MakePlan(kPolicies.front(), {&X, &X, &odd}).walk.vectors_alike);
    EXPECT_FALSE(MakePlan(kPolicies.front(), {&moved, &X, nullptr}).walk.vectors_alike);
    EXPECT_FALSE(MakePlan(kPolicies.front(), {nullptr, &moved, nullptr}).walk.vectors_alike);
    EXPECT_FALSE(MakePlan(kPolicies.front(), {&X, &X, &moved}).walk.vectors_alike);
    ConstTensorRef apart = X;
    apart.strides = {630, 126, 14, 2};
    EXPECT_FALSE(MakePlan(kPolicies.front(), {&X, &apart, nullptr}).walk.vectors_alike);
  }
}

/// Small problems with channels last: no block waits for another, and there are several.
TEST(BatchNormPlan, SmallProblemsAreOneLaunchOfManyBlocks) {
  for (const DataType type : kTypes) {
    for (const Dims& dims :
         {Dims{64, 1536}, Dims{128, 256}, Dims{256, 1024}, Dims{1024, 128}, Dims{40, 3072}}) {
      SCOPED_TRACE(ToString(dims) + " " + std::string(ToString(type)));
      const ConstTensorRef X = Tensor(type, dims);
      const Plan plan = MakePlan(kPolicies.front(), {&X, &X, &X});
      ASSERT_EQ(plan.path, Path::kVectors);
      EXPECT_TRUE(plan.whole);
      EXPECT_EQ(plan.walk.slices, 1);
      EXPECT_GE(plan.blocks_x, 8);
      EXPECT_LE(plan.walk.steps * plan.walk.width / kThreads, 16);
      EXPECT_TRUE(SumAlike(plan, MakePlan(kPolicies.front(), {&X, &X, nullptr})));
    }
  }
}

/// Where narrow tiles would be long, or few, wide ones are cut.
TEST(BatchNormPlan, LongOrFewTilesAreCut) {
  const auto slices_of = [](const Dims& dims) {
    const ConstTensorRef X = Tensor(DataType::kMLFloat16, dims);
    return MakePlan(kPolicies.front(), {&X, &X, &X}).walk.slices;
  };
  EXPECT_EQ(slices_of({2048, 1024}), 1);
  EXPECT_GT(slices_of({2049, 1024}), 1);
  EXPECT_EQ(slices_of({2048, 120}), 1);
  EXPECT_GT(slices_of({2048, 112}), 1);
}

TEST(BatchNormPlan, AThreadHasFewSamplesToItself) {
  EXPECT_TRUE(IsShort(kPolicies.front(), Tensor(DataType::kFloat, {20, 64})));
  EXPECT_FALSE(IsShort(kPolicies.front(), Tensor(DataType::kFloat, {21, 64})));
  EXPECT_TRUE(IsShort(kPolicies.front(), Tensor(DataType::kFloat, {1, 70, 4, 5})));
  EXPECT_FALSE(
      IsShort(kPolicies.front(), Tensor(DataType::kFloat, {2, 70, 3, 3})));  // at two distances
}

}  // namespace
}  // namespace gradsmith::batch_norm::own
