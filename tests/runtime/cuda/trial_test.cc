#include "cuda/trial.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

/// How far a result may be off. Needs no GPU.
namespace gradsmith::cuda {
namespace {

Difference Off(double relative) {
  Difference difference{};
  difference.squared_expected = 4;
  difference.squared_error = 4 * relative * relative;
  difference.largest_error = relative;
  difference.compared = 1000;
  return difference;
}

struct Limit {
  DataType type;
  Exactness exactness;
  double terms;
  double allowed;
};

/// Written out, so that they are not computed as the library does.
constexpr Limit kLimits[] = {
    {DataType::kFloat, Exactness::kStrict, 1, 1.03e-6},
    {DataType::kFloat, Exactness::kStrict, 10000, 4e-6},
    {DataType::kFloat, Exactness::kUsual, 1, 5.078e-6},
    {DataType::kFloat, Exactness::kUsual, 4096, 1e-5},
    {DataType::kFloat, Exactness::kTf32, 1, 2e-3},
    {DataType::kFloat, Exactness::kTf32, 4096, 2e-3},
    {DataType::kDouble, Exactness::kStrict, 4096, 2e-14},
    {DataType::kDouble, Exactness::kUsual, 4096, 2e-14},
    {DataType::kMLFloat16, Exactness::kStrict, 4096, 1.002e-3},
    {DataType::kMLFloat16, Exactness::kUsual, 4096, 1.502e-3},
    {DataType::kBFloat16, Exactness::kStrict, 4096, 8.002e-3},
    {DataType::kBFloat16, Exactness::kUsual, 4096, 8.002e-3},
};

TEST(CheckDifference, AllowsWhatATypeAndItsExactnessMayBeOff) {
  for (const Limit& limit : kLimits) {
    const auto check = [&](double relative) {
      return CheckDifference(Off(relative), limit.type, limit.terms, limit.exactness);
    };
    const std::string which = std::string(ToString(limit.type)) + ", exactness " +
                              std::to_string(static_cast<int>(limit.exactness)) + ", " +
                              std::to_string(limit.terms) + " terms";
    EXPECT_TRUE(check(0).ok()) << which;
    EXPECT_TRUE(check(0.999 * limit.allowed).ok()) << which;
    EXPECT_EQ(check(1.001 * limit.allowed).code(), StatusCode::kInternal) << which;
    EXPECT_FALSE(check(1).ok()) << which;
  }
}

TEST(CheckDifference, SaysHowFarItIs) {
  const Status status = CheckDifference(Off(0.25), DataType::kMLFloat16, 4096, Exactness::kStrict);
  EXPECT_EQ(
      status.message(),
      "disagrees with the direct computation: relative error 2.50e-01, expected at most 1.00e-03; "
      "largest error 2.50e-01");
}

TEST(CheckDifference, WhatIsNotFiniteIsWrongHoweverCloseTheRest) {
  Difference difference = Off(0);
  difference.not_finite = 3;
  for (const DataType type :
       {DataType::kFloat, DataType::kDouble, DataType::kMLFloat16, DataType::kBFloat16}) {
    const Status status = CheckDifference(difference, type, 9, Exactness::kTf32);
    EXPECT_EQ(status.message(), "3 elements are not finite");
  }
}

TEST(CheckDifference, ExpectedZerosMustBeZero) {
  Difference difference{};
  difference.compared = 10;
  EXPECT_TRUE(CheckDifference(difference, DataType::kFloat, 9, Exactness::kStrict).ok());
  difference.squared_error = 1e-12;
  EXPECT_FALSE(CheckDifference(difference, DataType::kFloat, 9, Exactness::kStrict).ok());
}

}  // namespace
}  // namespace gradsmith::cuda
