#include "core/channels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "gradsmith/context.h"
#include "gradsmith/tensor.h"
#include "support/test_tensor.h"

namespace gradsmith::internal {
namespace {

using support::Layout;
using support::TestTensor;
using Values = std::vector<double>;

Context ContextWith(int threads) {
  ContextOptions options;
  options.threads = threads;
  return Context(options);
}

double ValueOf(std::int64_t /*channel*/, const std::array<double, 1>& values) {
  return values[0];
}

TEST(ConstantChannels, AreThoseOfOneFiniteValue) {
  constexpr std::int64_t kBatch = 3;
  constexpr std::int64_t kChannels = 150;
  constexpr std::int64_t kPositions = 170;
  // A channel is constant but for one element, by its number: none, the first, one or the last.
  for (const double planted : {7.0, std::numeric_limits<double>::quiet_NaN()}) {
    Values values;
    std::vector<char> expected(kChannels);
    for (std::int64_t i = 0; i < kBatch * kChannels * kPositions; ++i) {
      values.push_back(static_cast<double>(i / kPositions % kChannels));
    }
    const auto element = [&](std::int64_t n, std::int64_t channel,
                             std::int64_t position) -> double& {
      return values.at((((n * kChannels) + channel) * kPositions) + position);
    };
    for (std::int64_t c = 0; c < kChannels; ++c) {
      expected[c] = c == 7 || c % 4 == 0 ? 1 : 0;
      if (c % 4 != 0) {
        element(c % 4 - 1, c, (c % 4 - 1) * (kPositions - 1) / 2) = c == 7 ? 7 : planted;
      }
    }
    for (const Layout layout : {Layout::kContiguous, Layout::kChannelsLast, Layout::kStrided}) {
      TestTensor tensor(DataType::kFloat, {kBatch, kChannels, kPositions}, layout);
      tensor.Fill(values);
      for (const int threads : {1, 4}) {
        const std::vector<char> all(kChannels, 1);
        EXPECT_EQ(
            (ConstantChannels<float, 1>(ContextWith(threads), {tensor.Ref()}, all, ValueOf)),
            expected);
      }
    }
  }
}

TEST(ConstantChannels, AnInfinityIsNone) {
  TestTensor tensor(DataType::kFloat, {4, 1, 5}, Layout::kContiguous);
  tensor.Fill(Values(20, std::numeric_limits<double>::infinity()));
  EXPECT_EQ(
      (ConstantChannels<float, 1>(ContextWith(1), {tensor.Ref()}, {1}, ValueOf)),
      std::vector<char>{0});
}

TEST(ConstantChannels, OfNoSamplesThereAreNone) {
  TestTensor tensor(DataType::kFloat, {0, 2, 5}, Layout::kContiguous);
  EXPECT_EQ(
      (ConstantChannels<float, 1>(ContextWith(1), {tensor.Ref()}, {1, 1}, ValueOf)),
      (std::vector<char>{0, 0}));
}

/// Nothing is read of a channel that cannot be constant, and no more of one that is seen not to be.
TEST(ConstantChannels, AreReadUntilTheyDiffer) {
  constexpr std::int64_t kPositions = 40000;
  for (const Layout layout : {Layout::kContiguous, Layout::kChannelsLast}) {
    TestTensor tensor(DataType::kFloat, {2, 3, kPositions}, layout);
    Values values(6 * kPositions, 5);
    values[2] = 6;  // of channel 0
    tensor.Fill(values);
    std::array<std::atomic<std::int64_t>, 3> reads{};
    const auto value = [&](std::int64_t channel, const std::array<double, 1>& each) {
      ++reads.at(channel);
      return each[0];
    };
    EXPECT_EQ(
        (ConstantChannels<float, 1>(ContextWith(1), {tensor.Ref()}, {1, 1, 0}, value)),
        (std::vector<char>{0, 1, 0}));
    EXPECT_EQ(reads[0], 1 + 3);
    EXPECT_EQ(reads[1], 1 + (2 * kPositions));
    EXPECT_EQ(reads[2], 0);
  }
}

}  // namespace
}  // namespace gradsmith::internal
