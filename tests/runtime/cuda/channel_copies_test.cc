#include "cuda/channel_copies.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cuda/gpu_tensor.h"

/// Copies that leave channels out or add some, beside an index by index copy on the host.
namespace gradsmith::cuda {
namespace {

using support::Layout;

class CudaChannelCopies : public GpuTest {
 protected:
  static constexpr std::array<DataType, 4> kTypes = {
      DataType::kFloat, DataType::kDouble, DataType::kMLFloat16, DataType::kBFloat16};

  /// What `to` should hold: zeros where `from` has no channel.
  static std::vector<double> Expected(const GpuTensor& from, const Sizes& dims, std::int64_t has) {
    const std::vector<double> values = from.HostValues();
    std::vector<double> expected;
    const std::int64_t positions = dims[2] * dims[3];
    for (std::int64_t image = 0; image < dims[0]; ++image) {
      for (std::int64_t channel = 0; channel < dims[1]; ++channel) {
        for (std::int64_t at = 0; at < positions; ++at) {
          expected.push_back(
              channel < has ? values[(((image * has) + channel) * positions) + at] : 0.0);
        }
      }
    }
    return expected;
  }

  struct Side {
    std::int64_t channels;
    Layout layout;
    std::size_t misaligned;
  };

  void Check(DataType type, const Sizes& image, const Side& from, const Side& to) {
    const auto make = [&](const Side& side) {
      const Sizes dims = {image[0], side.channels, image[1], image[2]};
      return GpuTensor(type, dims, support::StridesFor(side.layout, dims), side.misaligned);
    };
    GpuTensor source = make(from);
    GpuTensor target = make(to);
    source.FillRandom(random_);
    const Status status = CopyChannels(device(), kStream, source.GpuRef(), target.GpuRef());
    ASSERT_TRUE(status.ok()) << status.message();
    const Sizes dims = {image[0], to.channels, image[1], image[2]};
    const std::string what = std::string(ToString(type)) + ", " + std::to_string(from.channels) +
                             " to " + std::to_string(to.channels) + " channels of " +
                             std::to_string(image[1]) + " x " + std::to_string(image[2]);
    EXPECT_EQ(target.GpuValues(), Expected(source, dims, from.channels)) << what;
    EXPECT_TRUE(target.SurroundingsIntact()) << what;
  }

  reference::Random random_{"channel copies"};
};

TEST_F(CudaChannelCopies, AddAndLeaveOut) {
  const std::vector<std::pair<std::int64_t, std::int64_t>> channels = {
      {3, 4}, {3, 8}, {5, 8}, {12, 16}, {20, 24}, {33, 40}, {1, 2}};
  for (const DataType type : kTypes) {
    for (const auto& [fewer, more] : channels) {
      for (const Layout from : {Layout::kContiguous, Layout::kChannelsLast, Layout::kStrided}) {
        for (const Layout to : {Layout::kContiguous, Layout::kChannelsLast, Layout::kStrided}) {
          // Positions that go in fours, and some that do not.
          for (const Sizes& image : {Sizes{2, 6, 6}, Sizes{3, 5, 7}}) {
            Check(type, image, {fewer, from, 0}, {more, to, 0});
            Check(type, image, {more, from, 0}, {fewer, to, 0});
          }
        }
      }
    }
  }
}

TEST_F(CudaChannelCopies, GoOnThroughManyBlocks) {
  for (const DataType type : {DataType::kFloat, DataType::kMLFloat16}) {
    for (const Layout from : {Layout::kContiguous, Layout::kChannelsLast}) {
      for (const Layout to : {Layout::kContiguous, Layout::kChannelsLast}) {
        Check(type, {3, 61, 67}, {3, from, 0}, {4, to, 0});
        Check(type, {3, 64, 66}, {4, from, 0}, {3, to, 0});
      }
    }
  }
}

TEST_F(CudaChannelCopies, TakeWhatIsNotAligned) {
  for (const DataType type : kTypes) {
    for (const Layout from : {Layout::kContiguous, Layout::kChannelsLast}) {
      for (const Layout to : {Layout::kContiguous, Layout::kChannelsLast}) {
        for (const auto& [shift_from, shift_to] :
             {std::pair<std::size_t, std::size_t>{1, 0}, {0, 1}, {1, 3}}) {
          Check(type, {2, 4, 6}, {3, from, shift_from}, {8, to, shift_to});
          Check(type, {2, 4, 6}, {8, from, shift_from}, {3, to, shift_to});
        }
      }
    }
  }
}

/// Each channel several times, and the sum of these, beside loops on the host.
class CudaChannelRepeats : public GpuTest {
 protected:
  static constexpr std::array<DataType, 4> kTypes = {
      DataType::kFloat, DataType::kDouble, DataType::kMLFloat16, DataType::kBFloat16};

  static GpuTensor Make(DataType type, const Sizes& dims, Layout layout) {
    return GpuTensor(type, dims, support::StridesFor(layout, dims));
  }

  static std::int64_t PositionsOf(const Sizes& dims) {
    std::int64_t positions = 1;
    for (std::size_t i = 2; i < dims.size(); ++i) {
      positions *= dims[i];
    }
    return positions;
  }

  void CheckRepeats(DataType type, const Sizes& dims, std::int64_t times, Layout from, Layout to) {
    Sizes more = dims;
    more[1] *= times;
    GpuTensor source = Make(type, dims, from);
    GpuTensor target = Make(type, more, to);
    source.FillRandom(random_);
    target.Fill([] { return std::numeric_limits<double>::quiet_NaN(); });
    const Status status = RepeatChannels(device(), kStream, source.GpuRef(), target.GpuRef());
    ASSERT_TRUE(status.ok()) << status.message();
    const std::vector<double> values = source.HostValues();
    const std::vector<double> actual = target.GpuValues();
    const std::int64_t positions = PositionsOf(dims);
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(actual.size()); ++i) {
      const std::int64_t channel = i / positions / times;  // of all images
      ASSERT_EQ(actual[i], values[(channel * positions) + (i % positions)]) << "element " << i;
    }
    EXPECT_TRUE(target.SurroundingsIntact());
  }

  /// Integers, of which all sums are exact.
  void CheckSums(
      DataType type,
      const Sizes& dims,
      std::int64_t times,
      Layout from,
      Layout to,
      bool accumulate) {
    Sizes more = dims;
    more[1] *= times;
    GpuTensor source = Make(type, more, from);
    GpuTensor target = Make(type, dims, to);
    const auto integer = [&] { return static_cast<double>(random_.Integer(-9, 9)); };
    source.Fill(integer);
    target.Fill([&] { return accumulate ? integer() : std::numeric_limits<double>::quiet_NaN(); });
    std::vector<double> expected = target.HostValues();
    if (!accumulate) {
      expected.assign(expected.size(), 0.0);
    }
    const std::vector<double> values = source.HostValues();
    const std::int64_t positions = PositionsOf(dims);
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(values.size()); ++i) {
      expected[((i / positions / times) * positions) + (i % positions)] += values[i];
    }
    TensorRef to_ref = target.GpuRef();
    to_ref.accumulate = accumulate;
    const Status status = SumRepeatedChannels(device(), kStream, source.GpuRef(), to_ref);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(target.GpuValues(), expected);
    EXPECT_TRUE(target.SurroundingsIntact());
  }

  reference::Random random_{"channel repeats"};
};

TEST_F(CudaChannelRepeats, AreCopiedAndAddedUp) {
  constexpr std::array<Layout, 3> kLayouts = {
      Layout::kContiguous, Layout::kChannelsLast, Layout::kStrided};
  for (const DataType type : kTypes) {
    for (const Sizes& dims : {Sizes{2, 3, 5, 7}, Sizes{3, 8, 11}, Sizes{2, 4, 3, 4, 5}}) {
      for (const std::int64_t times : {1, 2, 3, 17}) {
        for (const Layout from : kLayouts) {
          for (const Layout to : kLayouts) {
            SCOPED_TRACE(
                std::string(ToString(type)) + ", " + std::to_string(dims.size() - 2) + "-D, " +
                std::to_string(times) + " times");
            ASSERT_NO_FATAL_FAILURE(CheckRepeats(type, dims, times, from, to));
            ASSERT_NO_FATAL_FAILURE(CheckSums(type, dims, times, from, to, /*accumulate=*/false));
            ASSERT_NO_FATAL_FAILURE(CheckSums(type, dims, times, from, to, /*accumulate=*/true));
          }
        }
      }
    }
  }
}

/// 2048 + 1 + 1 is 2050 in half, but 2048 where each sum is rounded.
TEST_F(CudaChannelRepeats, AreAddedUpInFloatAndRoundedOnce) {
  GpuTensor source(DataType::kMLFloat16, {1, 3, 2}, {6, 2, 1});
  GpuTensor target(DataType::kMLFloat16, {1, 1, 2}, {2, 2, 1});
  const std::array<double, 6> terms = {2048, 2048, 1, 1, 1, 1};
  std::size_t at = 0;
  source.Fill([&] { return terms.at(at++); });
  ASSERT_TRUE(SumRepeatedChannels(device(), kStream, source.GpuRef(), target.GpuRef()).ok());
  EXPECT_EQ(target.GpuValues(), (std::vector<double>{2050, 2050}));
}

TEST_F(CudaChannelRepeats, GoOnThroughManyBlocks) {
  for (const DataType type : {DataType::kFloat, DataType::kMLFloat16}) {
    for (const Layout layout : {Layout::kContiguous, Layout::kChannelsLast}) {
      CheckRepeats(type, {2, 70, 61, 67}, 2, layout, layout);
      CheckSums(type, {2, 70, 61, 67}, 2, layout, layout, /*accumulate=*/false);
    }
  }
}

TEST_F(CudaChannelRepeats, OfEmptyTensorsAreNothing) {
  const TensorRef none(DataType::kFloat, nullptr, Dims{0, 2, 3}, ContiguousStrides(Dims{0, 2, 3}));
  const TensorRef twice(DataType::kFloat, nullptr, Dims{0, 4, 3}, ContiguousStrides(Dims{0, 4, 3}));
  EXPECT_TRUE(RepeatChannels(device(), kStream, none, twice).ok());
  EXPECT_TRUE(SumRepeatedChannels(device(), kStream, twice, none).ok());
}

}  // namespace
}  // namespace gradsmith::cuda
