#include "reference/counting_number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "reference/counting_sum.h"

namespace gradsmith::reference {
namespace {

TEST(CountingNumber, CarriesErrorsAndRoundsOnce) {
  const CountingNumber third = Given(1) / Given(3);
  EXPECT_EQ(third.error, std::abs(third.value));
  // The third was rounded once, and the sum is rounded again.
  const CountingNumber sum = third + Given(1);
  EXPECT_EQ(sum.error, third.value + sum.value);
  const CountingNumber product = sum * Given(2);
  EXPECT_EQ(product.error, 2 * sum.error + product.value);
  EXPECT_GT(Exp(sum).error, std::exp(sum.value) * sum.error);
}

TEST(CountingNumber, CountsInTheUnitOfWhatIsExact) {
  const CountingNumber quarters = Given(5) / Given(4);
  EXPECT_EQ(quarters.unit, 0.25L);
  EXPECT_EQ(quarters.bound, 5);
  EXPECT_EQ((quarters * Given(5)).bound, 25);
  EXPECT_EQ((Given(6) / Given(3)).unit, 1);
}

TEST(CountingNumber, AQuotientByAPowerOfTwoIsAMultipleOfWhatItSays) {
  EXPECT_EQ((Given(12) / Given(4)).unit, 1);
  EXPECT_EQ((Given(12) / Given(4)).bound, 12);
  EXPECT_EQ((Given(6) / Given(4)).unit, 0.5L);
  EXPECT_EQ((Given(1) / Exactly(0.5L)).unit, 2);
}

TEST(CountingNumber, ExactNumbersMayBeFractionsAndOfAnySize) {
  EXPECT_EQ(Exactly(0.75L).unit, 0.25L);
  EXPECT_EQ(Exactly(-0x1p40L).unit, 1);
  EXPECT_EQ(Exactly(0).unit, 1);
  EXPECT_EQ(Constant(0.1L).unit, 0x1p-60L);
  EXPECT_EQ(Exactly(0.75L).bound, 3);
  EXPECT_EQ(Exactly(0.1L).error, 0);
  const CountingNumber tiny = Exactly(0x1p-900L);
  EXPECT_EQ((tiny + tiny).error, 0x1p-899L);
  EXPECT_EQ((tiny * Constant(2)).error, 0x1p-899L);
  EXPECT_EQ((Given(0x1p-900L) + Given(0)).error, kUnderflow);
  CountingSum sum;
  sum.Add(tiny);
  EXPECT_EQ((sum.Get() * tiny).underflow, 0);
}

TEST(CountingNumber, RootsAreRoundedOnce) {
  EXPECT_EQ(Sqrt(Given(2)).error, std::sqrt(2.0L));
  EXPECT_EQ(Sqrt(Given(4)).value, 2);
}

TEST(CountingNumber, WhatIsInfiniteIsNotRounded) {
  const CountingNumber infinite = Given(-std::numeric_limits<long double>::infinity());
  EXPECT_EQ(Exp(infinite - Given(2)).value, 0);
  EXPECT_TRUE(std::isfinite(Exp(infinite - Given(2)).error));
  EXPECT_TRUE(std::isnan((infinite - infinite).value));
}

TEST(CountingSum, IsOfAnyOrder) {
  CountingSum sum;
  for (const double term : {8.0, -8.0, 1.0}) {
    sum.Add(Given(term));
  }
  EXPECT_EQ(sum.terms(), 3);
  EXPECT_EQ(sum.Get().value, 1);
  // A partial sum may be as large as all terms together, and each addition may round it.
  EXPECT_EQ(sum.Get().bound, 17);
  EXPECT_GE(sum.Get().error, 3 * 17);
  EXPECT_EQ(CountingSum().Get().value, 0);
  Expected output = Unknown({2});
  Expect(sum, 1, output);
  EXPECT_EQ(output.value.values, (std::vector<double>{0, 1}));
  EXPECT_EQ(output.terms, (std::vector<double>{0, 3}));
}

}  // namespace
}  // namespace gradsmith::reference
