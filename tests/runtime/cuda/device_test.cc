#include "cuda/device.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "cuda/driver.h"
#include "runtime/cuda/gpu_tensor.h"

/// What tells one GPU from another. Most of it needs none.
namespace gradsmith::cuda {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;

DeviceTraits H100() {
  return {
      .name = "NVIDIA H100 80GB HBM3",
      .major = 9,
      .minor = 0,
      .multiprocessors = 132,
      .memory_bytes = 81559 * kMiB,
      .driver = 12040};
}

TEST(DeviceTraits, AreDescribed) {
  EXPECT_EQ(
      DescriptionOf(H100()),
      "NVIDIA H100 80GB HBM3, compute capability 9.0, 132 multiprocessors, 81559 MiB");
}

/// The number is kept in files.
TEST(DeviceTraits, OfTheSameDeviceGiveTheSameFingerprint) {
  EXPECT_EQ(FingerprintOf(H100()), FingerprintOf(H100()));
  EXPECT_EQ(FingerprintOf(H100()), -4984380823748996543);
}

TEST(DeviceTraits, EachCountsInTheFingerprint) {
  const std::vector<std::function<void(DeviceTraits&)>> changes = {
      [](DeviceTraits&) {},
      [](DeviceTraits& traits) { traits.name = "NVIDIA H100 PCIe"; },
      [](DeviceTraits& traits) { traits.major = 10; },
      [](DeviceTraits& traits) { traits.minor = 1; },
      [](DeviceTraits& traits) { traits.multiprocessors = 114; },
      [](DeviceTraits& traits) { traits.memory_bytes += kMiB; },
      [](DeviceTraits& traits) { traits.driver = 12080; }};
  std::set<std::int64_t> fingerprints;
  for (const auto& change : changes) {
    DeviceTraits traits = H100();
    change(traits);
    EXPECT_TRUE(fingerprints.insert(FingerprintOf(traits)).second)
        << DescriptionOf(traits) << ", driver " << traits.driver;
  }
}

class CudaDevice : public GpuTest {};

TEST_F(CudaDevice, IsToldByItsTraits) {
  DeviceTraits traits;
  std::array<char, 256> name{};
  CUdevice handle = 0;
  ASSERT_EQ(Driver().cuDeviceGet(&handle, device().ordinal()), CUDA_SUCCESS);
  Driver().cuDeviceGetName(name.data(), static_cast<int>(name.size()), handle);
  traits.name = name.data();
  traits.major = device().compute_capability() / 10;
  traits.minor = device().compute_capability() % 10;
  traits.multiprocessors = device().multiprocessors();
  Driver().cuDeviceTotalMem(&traits.memory_bytes, handle);
  Driver().cuDriverGetVersion(&traits.driver);
  EXPECT_EQ(device().description(), DescriptionOf(traits));
  EXPECT_EQ(device().fingerprint(), FingerprintOf(traits));
}

}  // namespace
}  // namespace gradsmith::cuda
