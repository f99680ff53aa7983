#include "cuda/channel_copies.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
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

}  // namespace
}  // namespace gradsmith::cuda
