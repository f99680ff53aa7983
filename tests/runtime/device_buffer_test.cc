#include "gradsmith/device_buffer.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace gradsmith {
namespace {

std::vector<std::uint8_t> Counting(std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{1});
  return bytes;
}

TEST(DeviceBuffer, IsEmptyByDefault) {
  const DeviceBuffer buffer;
  EXPECT_EQ(buffer.data(), nullptr);
  EXPECT_EQ(buffer.size(), 0U);
  EXPECT_EQ(buffer.device(), Device());
}

TEST(DeviceBuffer, HasTheSizeAndAlignmentThatItSays) {
  for (const std::size_t size : {1U, 63U, 64U, 1000003U}) {
    const Result<DeviceBuffer> buffer = DeviceBuffer::Allocate({}, size);
    ASSERT_TRUE(buffer.ok()) << buffer.status().message();
    EXPECT_EQ(buffer->size(), size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % 64, 0U);
  }
}

TEST(DeviceBuffer, OfNoBytesIsOne) {
  Result<DeviceBuffer> buffer = DeviceBuffer::Allocate({}, 0);
  ASSERT_TRUE(buffer.ok()) << buffer.status().message();
  EXPECT_EQ(buffer->size(), 0U);
  EXPECT_TRUE(buffer->CopyFromHost(Context(), nullptr, 0).ok());
  EXPECT_TRUE(buffer->CopyToHost(Context(), nullptr, 0).ok());
}

TEST(DeviceBuffer, TooLargeIsAnError) {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  for (const std::size_t size : {kMost, kMost - 62, kMost / 2 + 1, kMost / 4}) {
    const Result<DeviceBuffer> buffer = DeviceBuffer::Allocate({}, size);
    ASSERT_FALSE(buffer.ok()) << size;
    EXPECT_EQ(buffer.status().code(), StatusCode::kOutOfMemory);
    EXPECT_EQ(buffer.status().message(), "no " + std::to_string(size) + " bytes of memory");
  }
}

TEST(DeviceBuffer, CopiesItsBeginning) {
  const Context context({.threads = 1});
  Result<DeviceBuffer> buffer = DeviceBuffer::Allocate({}, 100);
  ASSERT_TRUE(buffer.ok()) << buffer.status().message();
  const std::vector<std::uint8_t> bytes = Counting(100);
  ASSERT_TRUE(buffer->CopyFromHost(context, bytes.data(), 100).ok());
  const std::vector<std::uint8_t> zeros(40);
  ASSERT_TRUE(buffer->CopyFromHost(context, zeros.data(), 40).ok());
  std::vector<std::uint8_t> read(100, 255);
  ASSERT_TRUE(buffer->CopyToHost(context, read.data(), 70).ok());
  ASSERT_TRUE(Synchronize(context).ok());
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(read[i], i < 40 ? 0 : i < 70 ? bytes[i] : 255) << i;
  }
}

TEST(DeviceBuffer, RefusesCopiesOfMoreThanThereIs) {
  const Context context({.threads = 1});
  Result<DeviceBuffer> buffer = DeviceBuffer::Allocate({}, 10);
  ASSERT_TRUE(buffer.ok()) << buffer.status().message();
  std::vector<std::uint8_t> bytes = Counting(11);
  for (const Status& status :
       {buffer->CopyFromHost(context, bytes.data(), 11),
        buffer->CopyToHost(context, bytes.data(), 11)}) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), "11 bytes are to be copied; the buffer has 10");
  }
  EXPECT_EQ(bytes, Counting(11));
  EXPECT_FALSE(DeviceBuffer().CopyToHost(context, bytes.data(), 1).ok());
}

TEST(DeviceBuffer, RefusesAContextOnAnotherDevice) {
  Result<DeviceBuffer> buffer = DeviceBuffer::Allocate({}, 10);
  ASSERT_TRUE(buffer.ok()) << buffer.status().message();
  std::vector<std::uint8_t> bytes = Counting(10);
  for (const Device other : {Device{Backend::kCuda, 0}, Device{Backend::kCpu, 1}}) {
    const Context elsewhere({.device = other, .threads = 1});
    for (const Status& status :
         {buffer->CopyFromHost(elsewhere, bytes.data(), 10),
          buffer->CopyToHost(elsewhere, bytes.data(), 10)}) {
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
      EXPECT_EQ(status.message(), "the buffer is on another device than the context");
    }
  }
}

TEST(DeviceBuffer, MovesWithItsMemory) {
  Result<DeviceBuffer> first = DeviceBuffer::Allocate({}, 10);
  ASSERT_TRUE(first.ok()) << first.status().message();
  void* address = first->data();
  DeviceBuffer second = std::move(*first);
  EXPECT_EQ(second.data(), address);
  EXPECT_EQ(second.size(), 10U);
  DeviceBuffer third;
  third = std::move(second);
  EXPECT_EQ(third.data(), address);
  EXPECT_EQ(third.size(), 10U);
}

TEST(DeviceBuffer, OnADeviceThatIsNotThereIsAnErrorThatSaysWhy) {
  const Device absent{Backend::kCuda, 1000};
  const Status missing = CheckDevice(absent);
  ASSERT_FALSE(missing.ok());
  const Result<DeviceBuffer> buffer = DeviceBuffer::Allocate(absent, 10);
  ASSERT_FALSE(buffer.ok());
  EXPECT_EQ(buffer.status().message(), missing.message());
}

}  // namespace
}  // namespace gradsmith
