#include "patterns/cuda/site_launch.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

/// How windows that are computed one by one, or in vectors of channels, are numbered for a GPU's
/// threads.
namespace gradsmith::cuda {
namespace {

using internal::PerDim;
using internal::WindowsTask;

/// Windows of one element each, in memory that is not touched.
WindowsTask TaskOf(std::int64_t batch, std::int64_t channels, std::int64_t rows) {
  WindowsTask task;
  task.batch = batch;
  task.channels = channels;
  task.axes[2] = {.input = rows, .output = rows};
  return task;
}

std::vector<std::int64_t> SizesOf(const WindowsLaunch& launch) {
  return {launch.sizes, launch.sizes + WindowsLaunch::kSizes};
}

constexpr PerDim<std::int64_t> kChannelsApart = {.channel = 99, .axes = {9, 9, 1}};
constexpr PerDim<std::int64_t> kNeighbouringChannels = {.channel = 1, .axes = {99, 99, 9}};

TEST(SiteLaunch, MoreWindowsThan32BitsCount) {
  constexpr std::int64_t kMany = std::int64_t{1} << 31U;
  for (const bool gathers : {false, true}) {
    const WindowsKind kind = {.kernels = "None", .gathers = gathers};
    // Divisors divide what is less than 2^31.
    WindowsLaunch launch = MakeSiteLaunch(kind, TaskOf(1, kMany - 1, 1), kNeighbouringChannels, 1);
    EXPECT_FALSE(launch.is_wide);
    EXPECT_EQ(launch.count, kMany - 1);
    EXPECT_EQ(launch.by_size[0].divisor, kMany - 1);
    launch = MakeSiteLaunch(kind, TaskOf(1, kMany, 1), kNeighbouringChannels, 1);
    EXPECT_TRUE(launch.is_wide);
    EXPECT_EQ(launch.count, kMany);
    EXPECT_EQ(SizesOf(launch), (std::vector<std::int64_t>{kMany, 1, 1, 1}));
    // No dim alone is as large.
    launch = MakeSiteLaunch(kind, TaskOf(8, 1 << 20, 1 << 8), kChannelsApart, 1);
    EXPECT_TRUE(launch.is_wide);
    EXPECT_FALSE(launch.channels_first);
    EXPECT_EQ(launch.count, kMany);
    EXPECT_EQ(SizesOf(launch), (std::vector<std::int64_t>{1 << 8, 1, 1, 1 << 20}));
    launch = MakeSiteLaunch(kind, TaskOf(4, kMany, 1), kNeighbouringChannels, 1);
    EXPECT_TRUE(launch.is_wide);
    EXPECT_TRUE(launch.channels_first);
    EXPECT_EQ(launch.count, 4 * kMany);
    EXPECT_EQ(SizesOf(launch), (std::vector<std::int64_t>{kMany, 1, 1, 1}));
  }
}

TEST(SiteLaunch, VectorsOfChannelsAreCountedOnce) {
  constexpr WindowsKind kKind = {.kernels = "None"};
  constexpr std::int64_t kMany = std::int64_t{1} << 31U;
  WindowsLaunch launch = MakeSiteLaunch(kKind, TaskOf(4, kMany - 4, 1), kNeighbouringChannels, 4);
  EXPECT_FALSE(launch.is_wide);
  EXPECT_TRUE(launch.channels_first);
  EXPECT_EQ(launch.count, kMany - 4);
  EXPECT_EQ(launch.by_size[0].divisor, kMany / 4 - 1);
  launch = MakeSiteLaunch(kKind, TaskOf(4, kMany, 1), kNeighbouringChannels, 4);
  EXPECT_TRUE(launch.is_wide);
  EXPECT_EQ(launch.count, kMany);
  EXPECT_EQ(SizesOf(launch), (std::vector<std::int64_t>{kMany / 4, 1, 1, 1}));
}

}  // namespace
}  // namespace gradsmith::cuda
