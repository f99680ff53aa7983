#include <utility>

#include "runtime/large_tensors.h"

/// The patterns `rows` and `channels` on tensors of 2^31 elements and more.
namespace gradsmith {
namespace {

using Values = std::vector<double>;

constexpr double kUnit = 0x1p-12;
/// Sums of so many periods of one unit each are numbers of half: 2^18 + 2^8 units are 64.0625.
constexpr std::int64_t kRepeats = 262400;
static_assert(kRepeats * kPeriod > kTwoToThe31);

class LargeRowsTest : public LargeTensorsTest {
 protected:
  /// dX of a softmax whose rows lie `step` apart in a period of elements, and whose sums of dY * Y
  /// are as given.
  static Values
  SoftmaxGradOf(const Values& dY, const Values& Y, const Values& sums, std::size_t length) {
    Values dX;
    for (std::size_t i = 0; i < dY.size(); ++i) {
      dX.push_back(Y[i] * (dY[i] - sums[i / length]));
    }
    return dX;
  }

  /// Rows of a few elements, a period of which so many make.
  static void CheckShortRows(std::int64_t rows, std::int64_t length) {
    const std::int64_t period = rows * length;
    const std::int64_t times = Times(kTwoToThe31, period);
    if (const std::string why = WhyTooLarge(2 * times * period); !why.empty()) {
      GTEST_SKIP() << why;
    }
    const Values of_dy = Multiples(period, 8);
    const Values of_y = Choices(period, {0.25, 0.125});
    support::LargeMemory dY = Memory(kHalf, times * period);
    support::LargeMemory Y = Memory(kHalf, period);
    dY.Fill(of_dy);
    Y.Fill(of_y);
    const Dims dims = {times, rows, length};
    ASSERT_NO_FATAL_FAILURE(
        Run("SoftmaxGrad", {kHalf}, {}, {Ref(dY, dims), Ref(Y, dims, {0, length, 1})},
            {Ref(dY, dims)}));
    Values sums(static_cast<std::size_t>(rows));
    for (std::size_t i = 0; i < of_dy.size(); ++i) {
      sums[i / static_cast<std::size_t>(length)] += of_dy[i] * of_y[i];
    }
    EXPECT_EQ(
        dY.Difference(SoftmaxGradOf(of_dy, of_y, sums, static_cast<std::size_t>(length))), "");
  }

  /// dY and Y of a period, of each of so many columns of which the sum of dY * Y is one unit. Y is
  /// kUnit * 16 or twice that.
  static void MakeColumns(std::size_t columns, Values& dY, Values& Y) {
    for (std::size_t column = 0; column < columns; ++column) {
      double sum = 0;
      for (std::size_t i = column; i < dY.size(); i += columns) {
        sum += dY[i] * Y[i];
      }
      for (std::size_t i = column; sum != kUnit; i = (i + columns) % dY.size()) {
        Y[i] = 16 * kUnit;
        const double step = sum < kUnit ? 0.0625 : -0.0625;
        sum = 0;
        dY[i] += step;
        for (std::size_t j = column; j < dY.size(); j += columns) {
          sum += dY[j] * Y[j];
        }
      }
    }
  }
};

TEST_P(LargeRowsTest, ShortRows) {
  CheckShortRows(2731, 3);
}

TEST_P(LargeRowsTest, ShortRowsOfVectors) {
  CheckShortRows(1021, 8);
}

TEST_P(LargeRowsTest, RowsOfOneElement) {
  CheckShortRows(kPeriod, 1);
}

TEST_P(LargeRowsTest, OneRow) {
  constexpr std::int64_t kMany = kRepeats * kPeriod;
  if (const std::string why = WhyTooLarge(4 * kMany); !why.empty()) {
    GTEST_SKIP() << why;
  }
  Values of_dy = Multiples(kPeriod, 64, 0.0625);
  Values of_y = Choices(kPeriod, {16 * kUnit, 32 * kUnit});
  MakeColumns(1, of_dy, of_y);
  support::LargeMemory dY = Memory(kHalf, kMany);
  support::LargeMemory Y = Memory(kHalf, kMany);
  dY.Fill(of_dy);
  Y.Fill(of_y);
  ASSERT_NO_FATAL_FAILURE(
      Run("SoftmaxGrad", {kHalf}, {}, {Ref(dY, {kMany}), Ref(Y, {kMany})}, {Ref(dY, {kMany})}));
  EXPECT_EQ(dY.Difference(SoftmaxGradOf(of_dy, of_y, {kRepeats * kUnit}, of_dy.size())), "");
}

/// Three rows, each along memory by steps of three.
TEST_P(LargeRowsTest, LongRowsBesideEachOther) {
  constexpr std::int64_t kColumns = 3;
  constexpr std::int64_t kLength = 2731;
  constexpr std::int64_t kElements = kLength * kColumns;
  static_assert(kRepeats * kElements > kTwoToThe31);
  if (const std::string why = WhyTooLarge(2 * kRepeats * kElements); !why.empty()) {
    GTEST_SKIP() << why;
  }
  Values of_dy = Multiples(kElements, 64, 0.0625);
  Values of_y = Choices(kElements, {16 * kUnit, 32 * kUnit});
  MakeColumns(kColumns, of_dy, of_y);
  support::LargeMemory dY = Memory(kHalf, kRepeats * kElements);
  support::LargeMemory Y = Memory(kHalf, kElements);
  dY.Fill(of_dy);
  Y.Fill(of_y);
  // A row has two dims, since Y repeats.
  const Dims dims = {kColumns, kRepeats, kLength};
  const Strides strides = {1, kElements, kColumns};
  ASSERT_NO_FATAL_FAILURE(
      Run("SoftmaxGrad", {kHalf}, {{"axis", 1}, {"coerced", true}},
          {Ref(dY, dims, strides), Ref(Y, dims, {1, 0, kColumns})}, {Ref(dY, dims, strides)}));
  EXPECT_EQ(dY.Difference(SoftmaxGradOf(of_dy, of_y, {kRepeats * kUnit}, of_dy.size())), "");
}

/// Rows of three elements, each far from the others.
TEST_P(LargeRowsTest, RowsAcrossMemory) {
  constexpr std::int64_t kRows = kTwoToThe31 / 3 + 4099;
  if (const std::string why = WhyTooLarge(6 * kRows); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const Values of_dy = Multiples(kPeriod, 8);
  const Values of_y = {0.25, 0.125, 0.5};
  support::LargeMemory dY = Memory(kHalf, 3 * kRows);
  support::LargeMemory Y = Memory(kHalf, 3);
  dY.Fill(of_dy);
  Y.Fill(of_y);
  const Dims dims = {3, kRows};
  ASSERT_NO_FATAL_FAILURE(
      Run("SoftmaxGrad", {kHalf}, {{"axis", 0}}, {Ref(dY, dims), Ref(Y, dims, {1, 0})},
          {Ref(dY, dims)}));
  const auto at = [&](std::int64_t element) {
    return of_dy[static_cast<std::size_t>(element % kPeriod)];
  };
  for (std::int64_t place = 0; place < 3; ++place) {
    const double y = of_y[static_cast<std::size_t>(place)];
    Values expected;
    for (std::int64_t row = 0; row < kPeriod; ++row) {
      const double sum =
          of_y[0] * at(row) + of_y[1] * at(kRows + row) + of_y[2] * at(2 * kRows + row);
      expected.push_back(y * (at(place * kRows + row) - sum));
    }
    EXPECT_EQ(dY.Difference(expected, place * kRows, (place + 1) * kRows), "") << place;
  }
}

/// Sums over the rows, as kernels by columns find them on CUDA, where dY and X repeat nothing. On
/// the CPU that would take too much memory.
TEST_P(LargeRowsTest, ColumnsOfManyRows) {
  constexpr std::int64_t kLength = 8;
  constexpr std::int64_t kRows = 1023;
  constexpr std::int64_t kTimes = 262656;  // 2^9 * 513, which half holds
  constexpr std::int64_t kElements = kRows * kLength;
  static_assert(kTimes * kElements > kTwoToThe31);
  const std::int64_t given = on_cuda() ? kTimes * kElements : kElements;
  if (const std::string why = WhyTooLarge(2 * (kTimes * kElements + 2 * given)); !why.empty()) {
    GTEST_SKIP() << why;
  }
  Values of_dy = Multiples(kElements, 4, 0.0625);
  const Values of_x = Choices(kElements, {-1, 1});
  // The sums of a period's columns: of dY -1/8, and of dY * X 1/16 or more odd multiples of it.
  for (std::size_t column = 0; column < kLength; ++column) {
    double sum = 0.125;
    for (std::size_t i = kLength + column; i < of_dy.size(); i += kLength) {
      sum += of_dy[i];
    }
    of_dy[column] = -sum;
  }
  support::LargeMemory dY = Memory(kHalf, given);
  support::LargeMemory X = Memory(kHalf, given);
  support::LargeMemory scale = Memory(kHalf, kLength);
  support::LargeMemory mean = Memory(DataType::kFloat, 1);
  support::LargeMemory inv_std = Memory(DataType::kFloat, 1);
  support::LargeMemory dX = Memory(kHalf, kTimes * kElements);
  support::LargeMemory dBias = Memory(kHalf, kLength);
  dY.Fill(of_dy);
  X.Fill(of_x);
  scale.Fill(Values{1});
  mean.Fill(Values{0});
  inv_std.Fill(Values{1});
  const Dims dims = {kTimes, kRows, kLength};
  const Strides repeated = {on_cuda() ? kElements : 0, kLength, 1};
  const Dims rows = {kTimes, kRows};
  ASSERT_NO_FATAL_FAILURE(
      Run("LayerNormalizationGrad", {kHalf, kHalf, DataType::kFloat}, {},
          {Ref(dY, dims, repeated), Ref(X, dims, repeated), Ref(scale, {kLength}),
           Ref(mean, rows, {0, 0}), Ref(inv_std, rows, {0, 0})},
          {Ref(dX, dims), TensorRef(), Ref(dBias, {kLength})}));
  EXPECT_EQ(dBias.Difference(Values{-0.125 * kTimes}), "");
  Values expected;
  for (std::size_t i = 0; i < of_dy.size(); ++i) {
    const std::size_t row = i - i % kLength;
    double of_dy_alone = 0;
    double of_both = 0;
    for (std::size_t j = row; j < row + kLength; ++j) {
      of_dy_alone += of_dy[j] / kLength;
      of_both += of_dy[j] * of_x[j] / kLength;
    }
    expected.push_back(of_dy[i] - of_dy_alone - of_x[i] * of_both);
  }
  EXPECT_EQ(dX.Difference(expected), "");
}

TEST_P(LargeRowsTest, ManyColumns) {
  constexpr std::int64_t kMany = kTwoToThe31 + 8195;
  // On CUDA a block leaves its sums in memory first, two floats for each column.
  if (const std::string why = WhyTooLarge((on_cuda() ? 12 : 4) * kMany); !why.empty()) {
    GTEST_SKIP() << why;
  }
  Values of_scale = Multiples(kPeriod, 8);
  support::LargeMemory dY = Memory(kHalf, kMany);
  support::LargeMemory X = Memory(kHalf, 2);
  support::LargeMemory scale = Memory(kHalf, 1);
  support::LargeMemory mean = Memory(DataType::kFloat, 1);
  support::LargeMemory inv_std = Memory(DataType::kFloat, 1);
  support::LargeMemory dScale = Memory(kHalf, kMany);
  dY.Fill(of_scale);
  X.Fill(Values{2, 1});
  scale.Fill(Values{1});
  mean.Fill(Values{0});
  inv_std.Fill(Values{1});
  const Dims dims = {2, kMany};
  ASSERT_NO_FATAL_FAILURE(
      Run("LayerNormalizationGrad", {kHalf, kHalf, DataType::kFloat}, {{"axis", 1}},
          {Ref(dY, dims, {0, 1}), Ref(X, dims, {1, 0}), Ref(scale, {kMany}, {0}),
           Ref(mean, {2}, {0}), Ref(inv_std, {2}, {0})},
          {TensorRef(), Ref(dScale, {kMany})}));
  for (double& value : of_scale) {
    value *= 3;
  }
  EXPECT_EQ(dScale.Difference(of_scale), "");
}

/// Three channels of an image that no number of 31 bits counts the elements of, with the channels
/// first or last. The image is one row to dX.
class LargeChannelsTest : public LargeTensorsTest {
 protected:
  static void Check(bool channels_last) {
    constexpr std::int64_t kChannels = 3;
    constexpr std::int64_t kHeight = 87424;  // 2^7 * 683, which half holds
    constexpr std::int64_t kElements = kHeight * kPeriod;
    static_assert(kChannels * kElements > kTwoToThe31);
    if (const std::string why = WhyTooLarge(2 * kChannels * kElements); !why.empty()) {
      GTEST_SKIP() << why;
    }
    support::LargeMemory dY = Memory(kHalf, kChannels * kElements);
    support::LargeMemory X = Memory(kHalf, kPeriod);
    support::LargeMemory scale = Memory(kHalf, kChannels);
    support::LargeMemory mean = Memory(DataType::kFloat, 1);
    support::LargeMemory inv_std = Memory(DataType::kFloat, 1);
    support::LargeMemory dBias = Memory(kHalf, kChannels);
    const auto [of_channel, of_x] = Channel();
    Values of_dy;
    Values expected;
    for (const double dy : of_channel) {
      for (std::int64_t channel = 0; channel < (channels_last ? kChannels : 1); ++channel) {
        of_dy.push_back(dy);
        expected.push_back(channels_last ? kScales.at(static_cast<std::size_t>(channel)) * dy : 0);
      }
    }
    dY.Fill(of_dy);
    X.Fill(of_x);
    scale.Fill(kScales);
    mean.Fill(Values{0});
    inv_std.Fill(Values{1});
    const Dims dims = {1, kChannels, kHeight, kPeriod};
    const Strides strides = channels_last ? ChannelsLastStrides(dims) : ContiguousStrides(dims);
    ASSERT_NO_FATAL_FAILURE(
        Run("GroupNormalizationGrad", {kHalf, kHalf, DataType::kFloat}, {},
            {Ref(dY, dims, strides), Ref(X, dims, {0, 0, 0, 1}), Ref(scale, {kChannels}),
             Ref(mean, {1, 1}), Ref(inv_std, {1, 1})},
            {Ref(dY, dims, strides), TensorRef(), Ref(dBias, {kChannels})}));
    EXPECT_EQ(dBias.Difference(Values{0.0625 * kHeight}), "");
    // What the means take away is less than half sees beside dY.
    if (channels_last) {
      EXPECT_EQ(dY.Difference(expected), "");
      return;
    }
    for (std::int64_t channel = 0; channel < kChannels; ++channel) {
      for (std::size_t i = 0; i < expected.size(); ++i) {
        expected[i] = kScales.at(static_cast<std::size_t>(channel)) * of_channel[i];
      }
      EXPECT_EQ(dY.Difference(expected, channel * kElements, (channel + 1) * kElements), "");
    }
  }

 private:
  static inline const Values kScales = {1, 2, -4};

  /// dY and X of a channel's period. The sum of dY is 1/16, that of their products near 0.
  static std::pair<Values, Values> Channel() {
    Values dY = Choices(kPeriod, {-0.4375, -0.375, -0.3125, -0.25, 0.25, 0.3125, 0.375, 0.4375});
    dY.front() = 0.0625;
    for (std::size_t i = 1; i < dY.size(); ++i) {
      dY.front() -= dY[i];
    }
    Values X;
    double sum = 0;
    for (const double dy : dY) {
      X.push_back((sum > 0) == (dy > 0) ? -1 : 1);
      sum += X.back() * dy;
    }
    return {dY, X};
  }
};

TEST_P(LargeChannelsTest, First) {
  Check(/*channels_last=*/false);
}

TEST_P(LargeChannelsTest, Last) {
  Check(/*channels_last=*/true);
}

GRADSMITH_INSTANTIATE_LARGE_TENSORS(LargeRowsTest);
GRADSMITH_INSTANTIATE_LARGE_TENSORS(LargeChannelsTest);

}  // namespace
}  // namespace gradsmith
