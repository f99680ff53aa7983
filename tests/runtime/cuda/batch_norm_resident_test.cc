#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "batch_norm/cuda/resident.h"
#include "runtime/cuda/gpu_tensor.h"

namespace gradsmith::batch_norm {
namespace {

class BatchNormResidentTest : public cuda::GpuTest {
 protected:
  BatchNormResidentTest() {
    walk_.channels = 64;
    walk_.places = 64;
    operands_.dY.data = memory_.data();
    operands_.X.data = memory_.data();
  }

  bool IsResident(std::int64_t blocks, std::int64_t slices) {
    walk_.slices = slices;
    return batch_norm::IsResident(
        device(), Activation::kRelu, DataType::kMLFloat16, blocks, walk_, operands_);
  }

  alignas(16) std::array<std::byte, 16> memory_{};
  own::Walk walk_{};
  own::Operands operands_{};
};

/// Four blocks of a compute capability 9.0 have room on a multiprocessor.
TEST_F(BatchNormResidentTest, BlocksThatWaitAreAsManyAsTheDeviceHolds) {
  if (device().compute_capability() != 90) {
    GTEST_SKIP() << "compute capability " << device().compute_capability() << ", not 90";
  }
  const int most = own::kResidentBlocks * device().multiprocessors();
  EXPECT_TRUE(IsResident(1, most));
  EXPECT_FALSE(IsResident(1, most + 1));
  EXPECT_TRUE(IsResident(2, most / 2));
  EXPECT_FALSE(IsResident(2, most / 2 + 1));
}

TEST_F(BatchNormResidentTest, BlocksWithChannelsToThemselvesAreAnyNumber) {
  EXPECT_TRUE(IsResident(100000, 1));
  walk_.places = 128;  // each channel in two tiles
  EXPECT_FALSE(IsResident(100000, 1));
}

TEST_F(BatchNormResidentTest, InputsAreAligned) {
  ASSERT_TRUE(IsResident(1, 2));
  operands_.X.data = memory_.data() + 8;
  EXPECT_FALSE(IsResident(1, 2));
  operands_.X.data = memory_.data();
  operands_.dY.data = memory_.data() + 8;
  EXPECT_FALSE(IsResident(1, 2));
}

}  // namespace
}  // namespace gradsmith::batch_norm
