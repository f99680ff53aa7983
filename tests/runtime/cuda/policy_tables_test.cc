#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <limits>

#include "batch_norm/cuda/own_plan.h"
#include "batch_norm/cuda/policy.h"
#include "cuda/policy.h"
#include "gradsmith/tensor.h"
#include "patterns/cuda/map_policy.h"
#include "patterns/cuda/rows_policy.h"
#include "patterns/cuda/windows_policy.h"

/// The tables of policies by which kernels cut their work, and how one is picked, without a GPU.
namespace gradsmith::cuda {
namespace {

struct SamplePolicy {
  int compute_capability = 0;
  int order = 0;
};

TEST(PolicyTables, ADeviceHasTheLatestPolicyThatItReaches) {
  constexpr std::array<SamplePolicy, 3> kTable = {{{0}, {80}, {90}}};
  EXPECT_EQ(LatestPolicy(kTable, 75).compute_capability, 0);
  EXPECT_EQ(LatestPolicy(kTable, 80).compute_capability, 80);
  EXPECT_EQ(LatestPolicy(kTable, 89).compute_capability, 80);
  EXPECT_EQ(LatestPolicy(kTable, 90).compute_capability, 90);
  EXPECT_EQ(LatestPolicy(kTable, 120).compute_capability, 90);
}

TEST(PolicyTables, TheOrderOfRowsHasNoSayInIt) {
  constexpr std::array<SamplePolicy, 3> kTable = {{{0}, {90}, {80}}};
  EXPECT_EQ(LatestPolicy(kTable, 86).compute_capability, 80);
  EXPECT_EQ(LatestPolicy(kTable, 100).compute_capability, 90);
}

TEST(PolicyTables, OneOrderIsThatOfAllRows) {
  constexpr std::array<SamplePolicy, 2> kAlike = {{{0, 5}, {90, 5}}};
  constexpr std::array<SamplePolicy, 2> kApart = {{{0, 5}, {90, 6}}};
  EXPECT_TRUE(HaveOneOrder(kAlike));
  EXPECT_FALSE(HaveOneOrder(kApart));
}

/// The first row is for all devices, and no two are for the same.
template <typename Policy, std::size_t kRows>
void ExpectOnePolicyForEach(const std::array<Policy, kRows>& table) {
  EXPECT_EQ(table.front().compute_capability, 0);
  for (std::size_t i = 1; i < kRows; ++i) {
    EXPECT_GT(table[i].compute_capability, table[i - 1].compute_capability);
  }
}

TEST(PolicyTables, EveryDeviceHasOne) {
  ExpectOnePolicyForEach(kMapPolicies);
  ExpectOnePolicyForEach(kRowsPolicies);
  ExpectOnePolicyForEach(kWindowsPolicies);
  ExpectOnePolicyForEach(batch_norm::own::kPolicies);
}

bool IsPowerOfTwo(int number) {
  return number > 0 && (number & (number - 1)) == 0;
}

/// Kernels take no other numbers of threads that share a channel.
TEST(PolicyTables, ThreadsThatShareAChannelAreAPowerOfTwoAndOfOneBlock) {
  for (const WindowsPolicy& policy : kWindowsPolicies) {
    const WholeOrder& order = policy.order;
    for (const SharingRange& range :
         {order.of_vectors, order.of_elements, order.of_channels, order.of_channel_vectors}) {
      EXPECT_TRUE(IsPowerOfTwo(range.least));
      EXPECT_TRUE(IsPowerOfTwo(range.usual));
      EXPECT_TRUE(IsPowerOfTwo(range.most));
      EXPECT_LE(range.least, range.usual);
      EXPECT_LE(range.usual, range.most);
      EXPECT_LE(range.most, kWindowsThreads);
    }
  }
}

TEST(PolicyTables, TilesFitTheSharedMemoryThatKernelsHave) {
  for (const WindowsPolicy& policy : kWindowsPolicies) {
    EXPECT_LE(policy.tile_bytes, policy.most_tile_bytes);
    EXPECT_LE(policy.volume_bytes, kMostTileBytes);
    EXPECT_LE(policy.most_tile_bytes, kMostTileBytes);
  }
}

TEST(PolicyTables, BatchNormalizationFitsItsKernels) {
  for (const batch_norm::own::Policy& policy : batch_norm::own::kPolicies) {
    const batch_norm::own::Order& order = policy.order;
    EXPECT_LE(order.most_slices, std::numeric_limits<unsigned short>::max());
    EXPECT_LE(order.columns.width, batch_norm::own::kMaxWidth);
    EXPECT_LE(order.columns.narrow_width, batch_norm::own::kMaxWidth);
    EXPECT_GT(order.columns.narrowest_width, 0);
    EXPECT_TRUE(IsPowerOfTwo(order.held.least_threads));
    EXPECT_LE(order.held.least_threads, batch_norm::own::kHeldThreads);
    EXPECT_LE(order.held.least_channels, batch_norm::own::kMostHeldChannels);
  }
}

/// Another policy cuts work otherwise: what decides is in the table.
TEST(PolicyTables, BatchNormalizationIsCutByItsPolicy) {
  const ConstTensorRef X = {DataType::kFloat, nullptr, {64, 33, 55, 57}};
  batch_norm::own::Policy policy = batch_norm::own::kPolicies.front();
  EXPECT_EQ(MakePlan(policy, {nullptr, &X, nullptr}).walk.slices, 32);
  policy.order.rows.blocks /= 4;
  EXPECT_EQ(MakePlan(policy, {nullptr, &X, nullptr}).walk.slices, 8);
  const ConstTensorRef few = {DataType::kFloat, nullptr, {20, 64}};
  EXPECT_TRUE(IsShort(policy, few));
  policy.order.of_short.most_samples = 19;
  EXPECT_FALSE(IsShort(policy, few));
}

}  // namespace
}  // namespace gradsmith::cuda
