#include "support/elements.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

namespace gradsmith::support {
namespace {

std::uint64_t Bits(DataType type, double value) {
  std::array<std::byte, 8> element{};
  Encode(type, value, element.data());
  std::uint64_t bits = 0;
  std::memcpy(&bits, element.data(), element.size());
  return bits;
}

TEST(ElementsTest, EncodesLiterals) {
  EXPECT_EQ(Bits(DataType::kMLFloat16, 1), 0x3C00U);
  EXPECT_EQ(Bits(DataType::kMLFloat16, -2.5), 0xC100U);
  EXPECT_EQ(Bits(DataType::kMLFloat16, 65504), 0x7BFFU);
  EXPECT_EQ(Bits(DataType::kMLFloat16, 65520), 0x7C00U);
  EXPECT_EQ(Bits(DataType::kMLFloat16, 0x1p-24), 0x0001U);
  EXPECT_EQ(Bits(DataType::kMLFloat16, 0x1p-14), 0x0400U);
  EXPECT_EQ(Bits(DataType::kBFloat16, 1), 0x3F80U);
  EXPECT_EQ(Bits(DataType::kBFloat16, -3.140625), 0xC049U);
  EXPECT_EQ(Bits(DataType::kFloat, 0.1), 0x3DCCCCCDU);
  EXPECT_EQ(Bits(DataType::kDouble, 0.1), 0x3FB999999999999AU);
  EXPECT_EQ(Bits(DataType::kFloat, -std::numeric_limits<double>::infinity()), 0xFF800000U);
}

TEST(ElementsTest, RoundsToNearestEven) {
  EXPECT_EQ(Round(DataType::kBFloat16, 257), 256);
  EXPECT_EQ(Round(DataType::kBFloat16, 259), 260);
  EXPECT_EQ(Round(DataType::kMLFloat16, 2049), 2048);
  EXPECT_EQ(Round(DataType::kMLFloat16, 2051), 2052);
  EXPECT_EQ(Round(DataType::kFloat, 16777217), 16777216);
  // Rounding by way of float would make a tie of this and lose the last bit.
  EXPECT_EQ(Round(DataType::kMLFloat16, 1 + 0x1p-11 + 0x1p-40), 1 + 0x1p-10);
}

TEST(ElementsTest, EveryHalfAndBFloat16SurvivesTheRoundTrip) {
  for (const DataType type : {DataType::kMLFloat16, DataType::kBFloat16}) {
    for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
      std::array<std::byte, 2> element{};
      std::memcpy(element.data(), &bits, element.size());
      const double value = Decode(type, element.data());
      if (!std::isnan(value)) {
        ASSERT_EQ(Bits(type, value), bits) << ToString(type);
      }
    }
  }
}

TEST(ElementsTest, FloatAndDoubleAgreeWithTheCompiler) {
  for (const double value : {0.1, -7e-42, 1e-310, 3.4e38, -0.0, 1e300}) {
    const auto single = static_cast<float>(value);
    std::array<std::byte, 8> element{};
    std::memcpy(element.data(), &single, sizeof(single));
    EXPECT_EQ(Decode(DataType::kFloat, element.data()), static_cast<double>(single));
    EXPECT_EQ(Round(DataType::kFloat, value), static_cast<double>(single));
    std::memcpy(element.data(), &value, sizeof(value));
    EXPECT_EQ(Decode(DataType::kDouble, element.data()), value);
  }
}

TEST(ElementsTest, IntegersAndTruthValuesAreWhatTheCompilerStores) {
  EXPECT_EQ(Bits(DataType::kInt32, -2), 0xFFFFFFFEU);
  EXPECT_EQ(Bits(DataType::kInt64, -2), 0xFFFFFFFFFFFFFFFEU);
  EXPECT_EQ(Bits(DataType::kUint8, 200), 200U);
  EXPECT_EQ(Bits(DataType::kUint32, 0x1p31), 0x80000000U);
  EXPECT_EQ(Bits(DataType::kBool, 5), 1U);
  const std::array<std::byte, 8> ones{std::byte{0xFF}, std::byte{0xFF}, std::byte{0xFF},
                                      std::byte{0xFF}, std::byte{0xFF}, std::byte{0xFF},
                                      std::byte{0xFF}, std::byte{0xFF}};
  EXPECT_EQ(Decode(DataType::kInt64, ones.data()), -1);
  EXPECT_EQ(Decode(DataType::kUint32, ones.data()), 4294967295.0);
  EXPECT_EQ(Decode(DataType::kBool, ones.data()), 255);
}

TEST(ElementsTest, TheFormatsNumbers) {
  EXPECT_EQ(UnitRoundoff(DataType::kFloat), std::numeric_limits<float>::epsilon() / 2);
  EXPECT_EQ(UnitRoundoff(DataType::kMLFloat16), 0x1p-11);
  EXPECT_EQ(SmallestPositive(DataType::kFloat), std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(SmallestPositive(DataType::kDouble), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(SmallestPositive(DataType::kMLFloat16), 0x1p-24);
  EXPECT_EQ(OverflowLimit(DataType::kMLFloat16), 65536);
  EXPECT_EQ(OverflowLimit(DataType::kFloat), 0x1p128);
}

}  // namespace
}  // namespace gradsmith::support
