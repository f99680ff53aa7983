#include "gradsmith/types.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace gradsmith {
namespace {

/// The value of a half's bits by its definition: sign, 5 bits of exponent, 10 of mantissa.
double HalfByDefinition(std::uint32_t bits) {
  const double sign = (bits & 0x8000U) != 0 ? -1.0 : 1.0;
  const int exponent = static_cast<int>((bits >> 10U) & 0x1FU);
  const double mantissa = bits & 0x3FFU;
  if (exponent == 31) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  }
  return sign *
         (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024.0 + mantissa, exponent - 25));
}

TEST(MLFloat16, EveryBitPatternHasItsValueAndComesBack) {
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const auto half = MLFloat16::FromBits(static_cast<std::uint16_t>(bits));
    const auto value = static_cast<float>(half);
    const double expected = HalfByDefinition(bits);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_TRUE(std::isnan(static_cast<float>(MLFloat16(value)))) << bits;
      continue;
    }
    EXPECT_EQ(static_cast<double>(value), expected) << bits;
    EXPECT_EQ(MLFloat16(value).bits, bits);
  }
}

TEST(MLFloat16, RoundsToNearestWithTiesToEven) {
  for (std::uint32_t bits = 0; bits < 0x7BFFU; ++bits) {
    const double low = HalfByDefinition(bits);
    const double high = HalfByDefinition(bits + 1);
    const auto middle = static_cast<float>((low + high) / 2);
    const std::uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    EXPECT_EQ(MLFloat16(middle).bits, even) << bits;
    EXPECT_EQ(MLFloat16(std::nextafter(middle, 0.0F)).bits, bits) << bits;
    EXPECT_EQ(MLFloat16(std::nextafter(middle, 1e6F)).bits, bits + 1) << bits;
    EXPECT_EQ(MLFloat16(-middle).bits, even | 0x8000U) << bits;
  }
}

TEST(MLFloat16, OverflowsToInfinity) {
  EXPECT_EQ(MLFloat16(65504.0F).bits, 0x7BFFU);
  EXPECT_EQ(MLFloat16(65519.996F).bits, 0x7BFFU);
  EXPECT_EQ(MLFloat16(65520.0F).bits, 0x7C00U);
  EXPECT_EQ(MLFloat16(-1e30F).bits, 0xFC00U);
  EXPECT_EQ(MLFloat16(std::numeric_limits<float>::infinity()).bits, 0x7C00U);
}

TEST(BFloat16, KeepsTheUpperHalfRounded) {
  EXPECT_EQ(BFloat16(1.0F).bits, 0x3F80U);
  EXPECT_EQ(BFloat16(-2.5F).bits, 0xC020U);
  EXPECT_EQ(BFloat16(std::bit_cast<float>(0x3F808000U)).bits, 0x3F80U);  // a tie, down to even
  EXPECT_EQ(BFloat16(std::bit_cast<float>(0x3F818000U)).bits, 0x3F82U);  // a tie, up to even
  EXPECT_EQ(BFloat16(std::bit_cast<float>(0x3F808001U)).bits, 0x3F81U);
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::max()).bits, 0x7F80U);
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::nanf("")))));
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::bit_cast<float>(0x7F800001U)))));
}

TEST(BFloat16, EveryBitPatternComesBack) {
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const auto value = static_cast<float>(BFloat16::FromBits(static_cast<std::uint16_t>(bits)));
    if (!std::isnan(value)) {
      EXPECT_EQ(BFloat16(value).bits, bits);
    }
  }
}

TEST(DataType, NamesAndSizesAreThoseOfTheSchema) {
  EXPECT_EQ(ToString(DataType::kFloat), "float");
  EXPECT_EQ(ToString(DataType::kDouble), "double");
  EXPECT_EQ(ToString(DataType::kMLFloat16), "MLFloat16");
  EXPECT_EQ(ToString(DataType::kBFloat16), "BFloat16");
  EXPECT_EQ(SizeOf(kDataTypeOf<float>), sizeof(float));
  EXPECT_EQ(SizeOf(kDataTypeOf<double>), sizeof(double));
  EXPECT_EQ(SizeOf(kDataTypeOf<MLFloat16>), 2U);
  EXPECT_EQ(SizeOf(kDataTypeOf<BFloat16>), 2U);
}

}  // namespace
}  // namespace gradsmith
