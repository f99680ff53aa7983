#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <limits>

#include "batch_norm/cuda/own_plan.h"
#include "batch_norm/cuda/policy.h"
#include "cuda/module.h"
#include "cuda/policy.h"
#include "gradsmith/tensor.h"
#include "patterns/cuda/map_launch.h"
#include "patterns/cuda/map_policy.h"
#include "patterns/cuda/rows_launch.h"
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

constexpr int kWarp = 32;

/// Whether so many threads are a power of two of whole warps, as blocks are halved.
bool AreWarps(int threads) {
  return threads >= kWarp && IsPowerOfTwo(threads);
}

/// Whether each device has the latest policy that it reaches: older devices than any in the table,
/// newer ones, and those in between.
template <typename Policy, std::size_t kRows>
void ExpectLatest(const std::array<Policy, kRows>& table) {
  for (const int device : {0, 50, 75, 80, 86, 89, 90, 100, 103, 120, 999}) {
    const int found = LatestPolicy(table, device).compute_capability;
    EXPECT_LE(found, device);
    for (const Policy& policy : table) {
      EXPECT_TRUE(policy.compute_capability <= found || policy.compute_capability > device);
    }
  }
}

TEST(PolicyTables, EachDeviceHasTheLatest) {
  ExpectLatest(kMapPolicies);
  ExpectLatest(kRowsPolicies);
  ExpectLatest(kWindowsPolicies);
  ExpectLatest(batch_norm::own::kPolicies);
  // As it would be with more than the one policy that there is.
  ExpectLatest(
      std::array<MapPolicy, 3>{{{}, {.compute_capability = 80}, {.compute_capability = 90}}});
  ExpectLatest(
      std::array<RowsPolicy, 3>{{{}, {.compute_capability = 86}, {.compute_capability = 100}}});
}

TEST(PolicyTables, MapsFitTheirKernels) {
  for (const MapPolicy& policy : kMapPolicies) {
    EXPECT_TRUE(AreWarps(policy.threads));
    EXPECT_LE(policy.threads, kMostMapThreads);
    EXPECT_TRUE(AreWarps(policy.summing_threads));
    EXPECT_LE(policy.summing_threads, kMostMapThreads);
    EXPECT_TRUE(IsPowerOfTwo(static_cast<int>(policy.place_lanes)));
    EXPECT_LE(policy.place_lanes, policy.summing_threads);
    EXPECT_GE(policy.least_steps, 1);
    EXPECT_GT(policy.summing_blocks, 0);
    for (const int at_once : {2, 3, 4, 6}) {
      EXPECT_EQ(policy.summing_blocks % at_once, 0) << at_once;
    }
  }
}

TEST(PolicyTables, BlocksOfRowsFitTheirKernels) {
  for (const RowsPolicy& policy : kRowsPolicies) {
    EXPECT_TRUE(AreWarps(policy.threads));
    EXPECT_LE(policy.threads, kFewerRowsThreads);
    EXPECT_TRUE(AreWarps(policy.threads_of_flat_row));
    EXPECT_LE(policy.threads_of_flat_row, kMostFlatThreads);
    EXPECT_TRUE(AreWarps(policy.threads_of_few_rows));
    EXPECT_LE(policy.threads_of_few_rows, kFewerRowsThreads);
    EXPECT_TRUE(policy.threads_by_columns == 0 || AreWarps(policy.threads_by_columns));
    EXPECT_LE(policy.threads_by_columns, kFewerRowsThreads);
    EXPECT_TRUE(IsPowerOfTwo(policy.least_members));
    EXPECT_TRUE(IsPowerOfTwo(policy.least_members_of_elements));
    EXPECT_LE(policy.least_members, policy.least_members_of_elements);
    EXPECT_LE(policy.least_members_of_elements, kFewerRowsThreads);
    // A block of the most threads is there at once, at least.
    EXPECT_GE(policy.resident_threads, kMostRowsThreads);
    EXPECT_GE(policy.summing_threads, kMostRowsThreads);
    EXPECT_GE(policy.summing_threads_by_columns, policy.threads_by_columns);
    EXPECT_GE(policy.most_threads_by_columns, policy.threads_by_columns);
    EXPECT_LE(policy.most_threads_by_columns, kFewerRowsThreads);
    EXPECT_GE(policy.most_bytes_along, 0);
    // A part has a warp at least, whatever its elements.
    EXPECT_GE(policy.least_columns_of_part, 32 * ColumnsOfThread(sizeof(float)));
  }
}

TEST(PolicyTables, ThreadsOfRowsHaveSomethingToDo) {
  for (const RowsPolicy& policy : kRowsPolicies) {
    EXPECT_GE(policy.vectors_of_summing_thread, 1);
    EXPECT_GE(policy.elements_of_summing_thread, 1);
    // Where columns are summed, more threads have less each.
    EXPECT_LE(policy.vectors_of_summing_thread, policy.vectors_of_thread);
    EXPECT_LE(policy.elements_of_summing_thread, policy.elements_of_thread);
    EXPECT_GE(policy.most_of_single_thread, 0);
    EXPECT_GE(policy.blocks_of_parts, 1);
    EXPECT_TRUE(IsPowerOfTwo(policy.most_threads_of_part));
    EXPECT_GE(policy.most_threads_of_part, 32);
    EXPECT_LE(policy.most_threads_of_part, kMostRowsThreads);
    EXPECT_GE(policy.vectors_of_part, 1);
    EXPECT_GE(policy.elements_of_part, 1);
    EXPECT_GE(policy.most_parts, 1);
    EXPECT_LE(policy.most_parts, static_cast<int>(kMostBlocksYz));
    EXPECT_GE(policy.most_ragged, 0);
  }
}

TEST(PolicyTables, RowsFitTheMemoryThatKernelsHave) {
  constexpr int kMostOfBlock = 227 << 10;  // of compute capability 9.0, the most that there is
  for (const RowsPolicy& policy : kRowsPolicies) {
    EXPECT_GT(policy.most_shared_bytes, 0);
    EXPECT_LE(policy.most_shared_bytes + kRowsStaticBytes, kMostOfBlock);
    EXPECT_GT(policy.most_columns_bytes, 0);
  }
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
