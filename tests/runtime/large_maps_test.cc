#include "runtime/large_tensors.h"

/// The pattern `map`, and its sums, on tensors of 2^31 elements and more.
namespace gradsmith {
namespace {

class LargeMapsTest : public LargeTensorsTest {
 protected:
  /// LeakyReluGrad in place of dY, where X repeats whole rows of so many elements.
  static void CheckRows(std::int64_t least, std::int64_t length) {
    const std::int64_t rows = Times(least, length);
    if (const std::string why = WhyTooLarge(2 * rows * length); !why.empty()) {
      GTEST_SKIP() << why;
    }
    const std::vector<double> of_dy = Multiples(length, 8);
    const std::vector<double> of_x = Choices(length, {-2, -1, 1, 2});
    support::LargeMemory dY = Memory(kHalf, rows * length);
    support::LargeMemory X = Memory(kHalf, length);
    dY.Fill(of_dy);
    X.Fill(of_x);
    const Dims dims = {rows, length};
    ASSERT_NO_FATAL_FAILURE(
        Run("LeakyReluGrad", {kHalf}, {{"alpha", 0.5}}, {Ref(dY, dims), Ref(X, dims, {0, 1})},
            {Ref(dY, dims)}));
    EXPECT_EQ(dY.Difference(LeakyReluGradOf(of_dy, of_x)), "");
  }

  /// LeakyReluGradOf returns dX where the slope is a half.
  static std::vector<double> LeakyReluGradOf(
      const std::vector<double>& dY,
      const std::vector<double>& X) {
    std::vector<double> dX;
    for (std::size_t i = 0; i < dY.size(); ++i) {
      dX.push_back(X[i] > 0 ? dY[i] : dY[i] / 2);
    }
    return dX;
  }
};

TEST_P(LargeMapsTest, DenseTensors) {
  constexpr std::int64_t kMany = kTwoToThe31 + 8195;
  if (const std::string why = WhyTooLarge(4 * kMany); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const std::vector<double> of_dy = Multiples(kPeriod, 8);
  const std::vector<double> of_x = Choices(kPeriod, {-2, -1, 1, 2});
  support::LargeMemory dY = Memory(kHalf, kMany);
  support::LargeMemory X = Memory(kHalf, kMany);
  dY.Fill(of_dy);
  X.Fill(of_x);
  ASSERT_NO_FATAL_FAILURE(
      Run("LeakyReluGrad", {kHalf}, {{"alpha", 0.5}}, {Ref(dY, {kMany}), Ref(X, {kMany})},
          {Ref(dY, {kMany})}));
  EXPECT_EQ(dY.Difference(LeakyReluGradOf(of_dy, of_x)), "");
}

TEST_P(LargeMapsTest, RowsOfVectorsBeyondFourBillionElements) {
  CheckRows(kTwoToThe32, 8168);
}

TEST_P(LargeMapsTest, RowsOfSingleElements) {
  CheckRows(kTwoToThe31, kPeriod);
}

TEST_P(LargeMapsTest, Masks) {
  constexpr std::int64_t kMany = kTwoToThe31 + 8195;
  if (const std::string why = WhyTooLarge(3 * kMany); !why.empty()) {
    GTEST_SKIP() << why;
  }
  std::vector<double> of_dx = Multiples(kPeriod, 8);
  const std::vector<double> of_mask = Choices(kPeriod, {0, 1});
  support::LargeMemory dY = Memory(kHalf, kMany);
  support::LargeMemory mask = Memory(DataType::kBool, kMany);
  dY.Fill(of_dx);
  mask.Fill(of_mask);
  ASSERT_NO_FATAL_FAILURE(
      Run("DropoutGrad", {kHalf}, {{"ratio", 0.5}}, {Ref(dY, {kMany}), Ref(mask, {kMany})},
          {Ref(dY, {kMany})}));
  for (std::size_t i = 0; i < of_dx.size(); ++i) {
    of_dx[i] = of_mask[i] != 0 ? 2 * of_dx[i] : 0;
  }
  EXPECT_EQ(dY.Difference(of_dx), "");
}

TEST_P(LargeMapsTest, Bits) {
  constexpr std::int64_t kMany = kTwoToThe31 + 8195;
  constexpr std::int64_t kWords = 257;
  if (const std::string why = WhyTooLarge(2 * kMany + kMany / 8); !why.empty()) {
    GTEST_SKIP() << why;
  }
  reference::Random random("large bits");
  std::vector<double> of_mask;
  for (std::int64_t i = 0; i < kWords; ++i) {
    of_mask.push_back(static_cast<double>(random.Integer(0, 0xFFFFFFFF)));
  }
  std::vector<double> of_dx = Multiples(32 * kWords, 8);
  support::LargeMemory dY = Memory(kHalf, kMany);
  support::LargeMemory mask = Memory(DataType::kUint32, (kMany + 31) / 32);
  dY.Fill(of_dx);
  mask.Fill(of_mask);
  ASSERT_NO_FATAL_FAILURE(
      Run("BitmaskDropoutGrad", {kHalf}, {{"ratio", 0.5}},
          {Ref(dY, {kMany}), Ref(mask, {mask.count()})}, {Ref(dY, {kMany})}));
  for (std::size_t i = 0; i < of_dx.size(); ++i) {
    const auto word = static_cast<std::uint64_t>(of_mask[i / 32]);
    of_dx[i] = (word >> (i % 32) & 1U) != 0 ? 2 * of_dx[i] : 0;
  }
  EXPECT_EQ(dY.Difference(of_dx), "");
}

/// How often kPeriod elements come in sums that half holds without rounding: 2^18 + 2^8.
constexpr std::int64_t kRepeats = 262400;
static_assert(kRepeats * kPeriod > kTwoToThe31);
constexpr double kUnit = 0x1p-12;

TEST_P(LargeMapsTest, SumOfAll) {
  if (const std::string why = WhyTooLarge(2 * kRepeats * kPeriod); !why.empty()) {
    GTEST_SKIP() << why;
  }
  std::vector<double> of_dy = Multiples(kPeriod, 4, kUnit);
  std::vector<double> of_x = Choices(kPeriod, {-1, 1});
  // A period has a sum of one unit.
  of_x.back() = -1;
  of_dy.back() = -kUnit;
  for (std::size_t i = 0; i + 1 < of_dy.size(); ++i) {
    of_dy.back() += of_x[i] > 0 ? 0 : -of_dy[i];
  }
  support::LargeMemory dY = Memory(kHalf, kRepeats * kPeriod);
  support::LargeMemory X = Memory(kHalf, kPeriod);
  support::LargeMemory slope = Memory(kHalf, 1);
  support::LargeMemory dSlope = Memory(kHalf, 1);
  dY.Fill(of_dy);
  X.Fill(of_x);
  slope.Fill(std::vector<double>{0.5});
  const Dims dims = {kRepeats, kPeriod};
  ASSERT_NO_FATAL_FAILURE(
      Run("PReluGrad", {kHalf}, {}, {Ref(dY, dims), Ref(X, dims, {0, 1}), Ref(slope, {})},
          {Ref(dY, dims), Ref(dSlope, {})}));
  EXPECT_EQ(dSlope.Values(0, 1), std::vector<double>(1, kRepeats * kUnit));
  EXPECT_EQ(dY.Difference(LeakyReluGradOf(of_dy, of_x)), "");
}

TEST_P(LargeMapsTest, SumsBesideEachOther) {
  if (const std::string why = WhyTooLarge(2 * kRepeats * kPeriod); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const std::vector<double> of_dy = Choices(kPeriod, {kUnit, -kUnit, 2 * kUnit, -4 * kUnit});
  support::LargeMemory dY = Memory(kHalf, kRepeats * kPeriod);
  support::LargeMemory X = Memory(kHalf, 1);
  support::LargeMemory slope = Memory(kHalf, kPeriod);
  support::LargeMemory dSlope = Memory(kHalf, kPeriod);
  dY.Fill(of_dy);
  X.Fill(std::vector<double>{-1});
  slope.Fill(std::vector<double>{0.5});
  const Dims dims = {kRepeats, kPeriod};
  ASSERT_NO_FATAL_FAILURE(
      Run("PReluGrad", {kHalf}, {}, {Ref(dY, dims), Ref(X, dims, {0, 0}), Ref(slope, {kPeriod})},
          {TensorRef(), Ref(dSlope, {kPeriod})}));
  std::vector<double> expected;
  for (const double dy : of_dy) {
    expected.push_back(-dy * kRepeats);
  }
  EXPECT_EQ(dSlope.Difference(expected), "");
}

/// The sums are as many as no number of 31 bits counts, each of two elements.
TEST_P(LargeMapsTest, ManySums) {
  const std::int64_t times = Times(kTwoToThe31, kPeriod);
  if (const std::string why = WhyTooLarge(2 * times * kPeriod); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const std::vector<double> of_dy = Multiples(2 * kPeriod, 8);
  support::LargeMemory dY = Memory(kHalf, 2 * kPeriod);
  support::LargeMemory dA = Memory(kHalf, times * kPeriod);
  dY.Fill(of_dy);
  const Dims dims = {times, kPeriod, 2};
  const Dims places = {times, kPeriod, 1};
  ASSERT_NO_FATAL_FAILURE(
      Run("AddGrad", {kHalf}, {},
          {Ref(dY, dims, {0, 2, 1}), ConstTensorRef(kHalf, nullptr, places, device()),
           ConstTensorRef(kHalf, nullptr, dims, device())},
          {Ref(dA, places)}));
  std::vector<double> expected;
  for (std::size_t i = 0; i < of_dy.size(); i += 2) {
    expected.push_back(of_dy[i] + of_dy[i + 1]);
  }
  EXPECT_EQ(dA.Difference(expected), "");
}

GRADSMITH_INSTANTIATE_LARGE_TENSORS(LargeMapsTest);

}  // namespace
}  // namespace gradsmith
