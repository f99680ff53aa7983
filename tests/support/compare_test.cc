#include "support/compare.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "support/fake_op.h"

namespace gradsmith::support {
namespace {

/// What is found when `actual` is compared with 1, 2, 3, 4, 5, 6 within 0.5.
std::vector<std::string> Compare(const std::vector<double>& actual) {
  Report report;
  CompareElements(
      "testing", "Y", actual, {{2, 3}, {1, 2, 3, 4, 5, 6}}, [](std::size_t) { return 0.5; },
      report);
  return report.failures;
}

TEST(CompareTest, NamesTheFirstWrongElement) {
  EXPECT_EQ(Compare({1, 2, 3, 4, 5, 6}), std::vector<std::string>());
  EXPECT_EQ(Compare({1.5, 2, 3, 4, 5, 5.5}), std::vector<std::string>());
  EXPECT_EQ(
      Compare({1, 2, 3, 4, 8, 7}),
      (std::vector<std::string>{
          "testing: Y[1, 1] is 8; expected 5 within 0.5; 2 of 6 elements are wrong"}));
}

TEST(CompareTest, NanIsWrong) {
  EXPECT_EQ(
      Compare({1, 2, std::numeric_limits<double>::quiet_NaN(), 4, 5, 6}),
      (std::vector<std::string>{
          "testing: Y[0, 2] is nan; expected 3 within 0.5; 1 of 6 elements are wrong"}));
}

TEST(CompareTest, InfinityIsWhereTheTypeOverflows) {
  const Row& row = fake::Rows()[fake::kScaleFloat];
  const Subject subject{&fake::FakeRegistry(), &row, &fake::TestsOf(fake::kScaleFloat)};
  const auto failures = [&](double actual, double expected) {
    TestTensor tensor(DataType::kMLFloat16, {1}, Layout::kContiguous);
    tensor.Fill({actual});
    Report report;
    CompareWithin(
        subject, "", row.op->outputs[0], tensor, {{{1}, {expected}}, {1}, {0}, {0}}, report);
    return report.failures.size();
  };
  EXPECT_EQ(failures(1e6, 70000), 0U);
  EXPECT_EQ(failures(-1e6, -70000), 0U);
  EXPECT_EQ(failures(1e6, -70000), 1U);
  EXPECT_EQ(failures(1e6, 60000), 1U);
  EXPECT_EQ(failures(60000, 70000), 1U);
}

TEST(CompareTest, AllowedErrorIsRoundingOfTheSumAndOfTheStore) {
  constexpr double kFloat = 0x1p-24;
  constexpr double kHalf = 0x1p-11;
  // Nothing summed: only the store rounds.
  EXPECT_NEAR(AllowedError(DataType::kFloat, DataType::kMLFloat16, 8, 0), 8 * kHalf, 0x1p-25);
  // A sum of 9 terms of magnitude 1 in float.
  EXPECT_NEAR(
      AllowedError(DataType::kFloat, DataType::kFloat, 0, 10 * 9), 90 * kFloat, 1e-3 * kFloat);
  // The oracle rounds doubles as much as the kernel does.
  EXPECT_DOUBLE_EQ(AllowedError(DataType::kDouble, DataType::kDouble, 0, 90), 180 * 0x1p-53);
  // A sum that cancels in half: stored as zero or as anything below the smallest subnormal.
  EXPECT_EQ(AllowedError(DataType::kFloat, DataType::kMLFloat16, 0, 0), 0x1p-25);
}

}  // namespace
}  // namespace gradsmith::support
