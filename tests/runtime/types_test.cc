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

/// The value of a bf16's bits by its definition: sign, 8 bits of exponent, 7 of mantissa.
double BFloatByDefinition(std::uint32_t bits) {
  const double sign = (bits & 0x8000U) != 0 ? -1.0 : 1.0;
  const int exponent = static_cast<int>((bits >> 7U) & 0xFFU);
  const double mantissa = bits & 0x7FU;
  return sign * (exponent == 0 ? std::ldexp(mantissa, -133)
                               : std::ldexp(128.0 + mantissa, exponent - 134));
}

/// Rounds doubles between every positive number of a type below `last` and the next: ties, and
/// those that a float cannot tell from one.
template <typename T, typename Definition>
void ExpectDoublesRoundOnce(std::uint32_t last, const Definition& definition) {
  for (std::uint32_t bits = 0; bits < last; ++bits) {
    const double low = definition(bits);
    const double high = definition(bits + 1);
    const double middle = (low + high) / 2;
    const std::uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(T(middle).bits, even) << bits;
    ASSERT_EQ(T(-middle).bits, even | 0x8000U) << bits;
    for (const double part : {0x1p-44, 0x1p-40, 0x1p-30, 0x1p-20, 0x1p-3}) {
      ASSERT_EQ(T(middle * (1 - part / 256)).bits, bits) << bits << " " << part;
      ASSERT_EQ(T(-middle * (1 - part / 256)).bits, bits | 0x8000U) << bits << " " << part;
      ASSERT_EQ(T(middle * (1 + part / 256)).bits, bits + 1) << bits << " " << part;
      ASSERT_EQ(T(-middle * (1 + part / 256)).bits, (bits + 1) | 0x8000U) << bits << " " << part;
    }
    ASSERT_EQ(T(std::nextafter(middle, 0.0)).bits, bits) << bits;
    ASSERT_EQ(T(std::nextafter(middle, 1e300)).bits, bits + 1) << bits;
    ASSERT_EQ(T(low).bits, bits);
    ASSERT_EQ(T(std::nextafter(low, 1e300)).bits, bits);
  }
}

TEST(MLFloat16, DoublesAreRoundedOnce) {
  ExpectDoublesRoundOnce<MLFloat16>(0x7BFFU, HalfByDefinition);
  EXPECT_EQ(MLFloat16(65520.0).bits, 0x7C00U);
  EXPECT_EQ(MLFloat16(std::nextafter(65520.0, 0.0)).bits, 0x7BFFU);
  EXPECT_EQ(MLFloat16(-std::nextafter(65520.0, 0.0)).bits, 0xFBFFU);
}

TEST(BFloat16, DoublesAreRoundedOnce) {
  ExpectDoublesRoundOnce<BFloat16>(0x7F7FU, BFloatByDefinition);
  constexpr double kOverflow = 0x1.FFp127;  // the tie between the largest number and 2^128
  EXPECT_EQ(BFloat16(kOverflow).bits, 0x7F80U);
  EXPECT_EQ(BFloat16(std::nextafter(kOverflow, 0.0)).bits, 0x7F7FU);
  EXPECT_EQ(BFloat16(-std::nextafter(kOverflow, 0.0)).bits, 0xFF7FU);
}

template <typename T>
void ExpectExtremeDoubles() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr std::uint16_t kInfinite = T(std::numeric_limits<float>::infinity()).bits;
  for (const double large : {1e39, 1.7e308, kInfinity}) {
    EXPECT_EQ(T(large).bits, kInfinite);
    EXPECT_EQ(T(-large).bits, kInfinite | 0x8000U);
  }
  for (const double small : {0.0, 5e-324, 1e-300, 1e-46}) {
    EXPECT_EQ(T(small).bits, 0U);
    EXPECT_EQ(T(-small).bits, 0x8000U);
  }
  EXPECT_TRUE(std::isnan(static_cast<float>(T(std::nan("")))));
  EXPECT_TRUE(std::isnan(static_cast<float>(T(std::bit_cast<double>(0x7FF0000000000001U)))));
  EXPECT_EQ(T(3).bits, T(3.0F).bits);  // integers as well
  EXPECT_EQ(T(std::int64_t{-2}).bits, T(-2.0F).bits);
}

TEST(MLFloat16, ExtremeDoubles) {
  ExpectExtremeDoubles<MLFloat16>();
}

TEST(BFloat16, ExtremeDoubles) {
  ExpectExtremeDoubles<BFloat16>();
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

TEST(DataType, EachHasItsNameItsSizeAndItsCppType) {
  EXPECT_EQ(ToString(DataType::kFloat), "float");
  EXPECT_EQ(ToString(DataType::kMLFloat16), "MLFloat16");
  EXPECT_EQ(ToString(DataType::kInt64), "int64");
  EXPECT_EQ(ToString(DataType::kBool), "bool");
  EXPECT_EQ(SizeOf(DataType::kDouble), 8U);
  EXPECT_EQ(SizeOf(DataType::kBFloat16), 2U);
  EXPECT_EQ(SizeOf(DataType::kInt32), 4U);
  EXPECT_EQ(SizeOf(DataType::kInt64), 8U);
  EXPECT_EQ(SizeOf(DataType::kUint8), 1U);
  EXPECT_EQ(SizeOf(DataType::kBool), 1U);
  EXPECT_EQ(kDataTypeOf<std::int64_t>, DataType::kInt64);
  EXPECT_EQ(kDataTypeOf<std::uint8_t>, DataType::kUint8);
  EXPECT_EQ(kDataTypeOf<bool>, DataType::kBool);
}

TEST(DataType, TheFloatingOnesComeFirst) {
  for (int i = 0; i < kDataTypeCount; ++i) {
    EXPECT_EQ(IsFloating(static_cast<DataType>(i)), i < kFloatingTypeCount);
  }
  EXPECT_EQ(kFloatingTypeCount, 4);
  EXPECT_TRUE(IsFloating(DataType::kBFloat16));
  EXPECT_FALSE(IsFloating(DataType::kInt32));
}

}  // namespace
}  // namespace gradsmith
