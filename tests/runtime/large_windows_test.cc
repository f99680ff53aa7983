#include <functional>

#include "runtime/large_tensors.h"

/// The pattern `windows` on tensors of 2^31 elements and more.
namespace gradsmith {
namespace {

using Values = std::vector<double>;

/// Windows of 64 elements that follow each other along the last axis of images of one channel. An
/// image has as many elements as kernels on CUDA count along an axis, or fewer.
class LargeWindowsTest : public LargeTensorsTest {
 protected:
  static constexpr std::int64_t kTaps = 64;
  static constexpr std::int64_t kImages = 33;
  static constexpr std::int64_t kWindows = std::int64_t{1} << 20U;
  static constexpr std::int64_t kAll = kImages * kWindows;
  static_assert(kAll * kTaps > kTwoToThe31);

  static Dims OverInput() { return {kImages, 1, kWindows * kTaps}; }
  static Dims OverOutput() { return {kImages, 1, kWindows}; }
  static std::vector<Attribute> Attributes() {
    return {{"kernel_shape", IntList{kTaps}}, {"strides", IntList{kTaps}}};
  }

  /// The element of X that the window holds at a place, where X repeats a period.
  static std::size_t At(std::int64_t window, std::int64_t place) {
    return static_cast<std::size_t>((window * kTaps + place) % kPeriod);
  }
  /// Which element of a window is the first of the largest.
  static std::int64_t LargestOf(const Values& x, std::int64_t window) {
    std::int64_t largest = 0;
    for (std::int64_t place = 1; place < kTaps; ++place) {
      largest = x[At(window, place)] > x[At(window, largest)] ? place : largest;
    }
    return largest;
  }
  /// The largest of each window. Windows repeat after as many as the elements.
  static Values MaximaOf(const Values& x) {
    Values maxima;
    for (std::int64_t window = 0; window < kPeriod; ++window) {
      maxima.push_back(x[At(window, LargestOf(x, window))]);
    }
    return maxima;
  }
  /// dX where the largest element of a window takes all of dY.
  static Values GradientOf(const Values& x, const Values& dY) {
    Values dX(static_cast<std::size_t>(kPeriod * kTaps));
    for (std::int64_t window = 0; window < kPeriod; ++window) {
      dX[static_cast<std::size_t>(window * kTaps + LargestOf(x, window))] =
          dY[static_cast<std::size_t>(window)];
    }
    return dX;
  }
  /// dX where every element of a window takes its part of dY.
  static Values SharesOf(const Values& dY) {
    Values dX;
    for (const double dy : dY) {
      dX.insert(dX.end(), kTaps, dy / kTaps);
    }
    return dX;
  }
};

TEST_P(LargeWindowsTest, MaxPoolAndItsIndices) {
  if (const std::string why = WhyTooLarge(2 * kAll * kTaps + (2 + 8) * kAll); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const Values of_x = Multiples(kPeriod, 900);
  support::LargeMemory X = Memory(kHalf, kAll * kTaps);
  support::LargeMemory Y = Memory(kHalf, kAll);
  support::LargeMemory indices = Memory(DataType::kInt64, kAll);
  X.Fill(of_x);
  ASSERT_NO_FATAL_FAILURE(
      Run("MaxPool", {kHalf}, Attributes(), {Ref(X, OverInput())},
          {Ref(Y, OverOutput()), Ref(indices, OverOutput())}));
  EXPECT_EQ(Y.Difference(MaximaOf(of_x)), "");
  std::vector<std::int64_t> largest;
  for (std::int64_t window = 0; window < kPeriod; ++window) {
    largest.push_back(LargestOf(of_x, window));
  }
  const auto index = [&](std::int64_t window) {
    return static_cast<double>(
        window * kTaps + largest[static_cast<std::size_t>(window % kPeriod)]);
  };
  EXPECT_EQ(indices.DifferenceFrom(index), "");
}

TEST_P(LargeWindowsTest, MaxPoolGradFromIndices) {
  if (const std::string why = WhyTooLarge(2 * kAll * kTaps + (2 + 8) * kAll); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const Values of_x = Multiples(kPeriod, 900);
  const Values of_dy = Multiples(kPeriod, 8);
  std::vector<std::int64_t> largest;
  for (std::int64_t window = 0; window < kPeriod; ++window) {
    largest.push_back(LargestOf(of_x, window));
  }
  support::LargeMemory dY = Memory(kHalf, kAll);
  support::LargeMemory indices = Memory(DataType::kInt64, kAll);
  support::LargeMemory dX = Memory(kHalf, kAll * kTaps);
  dY.Fill(of_dy);
  indices.FillWith([&](std::int64_t window) {
    return static_cast<double>(
        window * kTaps + largest[static_cast<std::size_t>(window % kPeriod)]);
  });
  ASSERT_NO_FATAL_FAILURE(
      Run("MaxPoolGrad", {kHalf}, Attributes(), {Ref(dY, OverOutput()), Ref(indices, OverOutput())},
          {Ref(dX, OverInput())}));
  EXPECT_EQ(dX.Difference(GradientOf(of_x, of_dy)), "");
}

TEST_P(LargeWindowsTest, MaxPoolGradFromMaxima) {
  if (const std::string why = WhyTooLarge(4 * kAll * (kTaps + 1)); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const Values of_x = Multiples(kPeriod, 900);
  const Values of_dy = Multiples(kPeriod, 8);
  support::LargeMemory dY = Memory(kHalf, kAll);
  support::LargeMemory X = Memory(kHalf, kAll * kTaps);
  support::LargeMemory Y = Memory(kHalf, kAll);
  support::LargeMemory dX = Memory(kHalf, kAll * kTaps);
  dY.Fill(of_dy);
  X.Fill(of_x);
  Y.Fill(MaximaOf(of_x));
  ASSERT_NO_FATAL_FAILURE(Run(
      "MaxPoolXYGrad", {kHalf}, Attributes(),
      {Ref(dY, OverOutput()), Ref(X, OverInput()), Ref(Y, OverOutput())}, {Ref(dX, OverInput())}));
  EXPECT_EQ(dX.Difference(GradientOf(of_x, of_dy)), "");
}

TEST_P(LargeWindowsTest, AveragePoolOfChannelsLast) {
  constexpr std::int64_t kChannels = 8;
  constexpr std::int64_t kRows = 4224;
  constexpr std::int64_t kColumns = 1024;
  constexpr std::int64_t kPositions = kRows * kColumns;
  static_assert(kPositions * kTaps * kChannels > kTwoToThe31);
  if (const std::string why = WhyTooLarge(2 * kPositions * (kTaps + 1) * kChannels); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const Values of_x = Multiples(kPeriod, 4);
  support::LargeMemory X = Memory(kHalf, kPositions * kTaps * kChannels);
  support::LargeMemory Y = Memory(kHalf, kPositions * kChannels);
  X.Fill(of_x);
  const Dims over_input = {1, kChannels, kRows, kColumns * kTaps};
  const Dims over_output = {1, kChannels, kRows, kColumns};
  ASSERT_NO_FATAL_FAILURE(Run(
      "AveragePool", {kHalf}, {{"kernel_shape", IntList{1, kTaps}}, {"strides", IntList{1, kTaps}}},
      {Ref(X, over_input, ChannelsLastStrides(over_input))},
      {Ref(Y, over_output, ChannelsLastStrides(over_output))}));
  Values means;
  for (std::int64_t window = 0; window < kPeriod; ++window) {
    for (std::int64_t channel = 0; channel < kChannels; ++channel) {
      double sum = 0;
      for (std::int64_t place = 0; place < kTaps; ++place) {
        const std::int64_t element = ((window * kTaps + place) * kChannels) + channel;
        sum += of_x[static_cast<std::size_t>(element % kPeriod)];
      }
      means.push_back(sum / kTaps);
    }
  }
  EXPECT_EQ(Y.Difference(means), "");
}

TEST_P(LargeWindowsTest, AveragePoolGrad) {
  if (const std::string why = WhyTooLarge(2 * kAll * (kTaps + 1)); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const Values of_dy = Multiples(kPeriod, 8);
  support::LargeMemory dY = Memory(kHalf, kAll);
  support::LargeMemory dX = Memory(kHalf, kAll * kTaps);
  dY.Fill(of_dy);
  const ConstTensorRef X(kHalf, nullptr, OverInput(), device());
  ASSERT_NO_FATAL_FAILURE(
      Run("AveragePoolGrad", {kHalf}, Attributes(), {Ref(dY, OverOutput()), X},
          {Ref(dX, OverInput())}));
  EXPECT_EQ(dX.Difference(SharesOf(of_dy)), "");
}

/// Along three axes there are no tiles on CUDA: each element finds its windows.
TEST_P(LargeWindowsTest, AveragePoolGradOfThreeAxes) {
  constexpr std::int64_t kDepth = 3 * kImages;
  if (const std::string why = WhyTooLarge(2 * kAll * (kTaps + 1)); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const Values of_dy = Multiples(kPeriod, 8);
  support::LargeMemory dY = Memory(kHalf, kAll);
  support::LargeMemory dX = Memory(kHalf, kAll * kTaps);
  dY.Fill(of_dy);
  constexpr std::int64_t kColumns = 1024;
  constexpr std::int64_t kRows = kAll / (kDepth * kColumns);
  constexpr std::int64_t kLeft = kAll - (kDepth * kRows * kColumns);
  static_assert(kLeft < kAll / 1000 && kDepth * kRows * kColumns * kTaps > kTwoToThe31);
  const Dims over_input = {1, 1, kDepth, kRows, kColumns * kTaps};
  const ConstTensorRef X(kHalf, nullptr, over_input, device());
  ASSERT_NO_FATAL_FAILURE(
      Run("AveragePoolGrad", {kHalf},
          {{"kernel_shape", IntList{1, 1, kTaps}}, {"strides", IntList{1, 1, kTaps}}},
          {Ref(dY, {1, 1, kDepth, kRows, kColumns}), X}, {Ref(dX, over_input)}));
  EXPECT_EQ(dX.Difference(SharesOf(of_dy), 0, (kAll - kLeft) * kTaps), "");
}

TEST_P(LargeWindowsTest, AveragePoolGradOfChannelsLast) {
  constexpr std::int64_t kChannels = 8;
  constexpr std::int64_t kRows = 4224;
  constexpr std::int64_t kColumns = 1024;
  constexpr std::int64_t kPositions = kRows * kColumns;
  if (const std::string why = WhyTooLarge(2 * kPositions * (kTaps + 1) * kChannels); !why.empty()) {
    GTEST_SKIP() << why;
  }
  // A period of windows, each of which has all channels.
  const Values of_dy = Multiples(kPeriod * kChannels, 8);
  support::LargeMemory dY = Memory(kHalf, kPositions * kChannels);
  support::LargeMemory dX = Memory(kHalf, kPositions * kTaps * kChannels);
  dY.Fill(of_dy);
  const Dims over_input = {1, kChannels, kRows, kColumns * kTaps};
  const Dims over_output = {1, kChannels, kRows, kColumns};
  const ConstTensorRef X(kHalf, nullptr, over_input, device());
  ASSERT_NO_FATAL_FAILURE(
      Run("AveragePoolGrad", {kHalf},
          {{"kernel_shape", IntList{1, kTaps}}, {"strides", IntList{1, kTaps}}},
          {Ref(dY, over_output, ChannelsLastStrides(over_output)), X},
          {Ref(dX, over_input, ChannelsLastStrides(over_input))}));
  Values shares;
  for (std::size_t window = 0; window < of_dy.size(); window += kChannels) {
    for (std::int64_t place = 0; place < kTaps; ++place) {
      for (std::size_t channel = 0; channel < kChannels; ++channel) {
        shares.push_back(of_dy[window + channel] / kTaps);
      }
    }
  }
  EXPECT_EQ(dX.Difference(shares), "");
}

/// One window holds all: its largest element is the last.
TEST_P(LargeWindowsTest, MaxPoolOfAll) {
  constexpr std::int64_t kMany = kTwoToThe31 + 8195;
  if (const std::string why = WhyTooLarge(4 * kMany); !why.empty()) {
    GTEST_SKIP() << why;
  }
  support::LargeMemory X = Memory(kHalf, kMany);
  support::LargeMemory Y = Memory(kHalf, 1);
  support::LargeMemory indices = Memory(DataType::kInt64, 1);
  X.Fill(Multiples(kPeriod, 900));
  X.Fill(Values{1000}, kMany - 1, kMany);
  const Dims all = {1, 1, kMany};
  ASSERT_NO_FATAL_FAILURE(
      Run("MaxPool", {kHalf}, {{"kernel_shape", IntList{kMany}}}, {Ref(X, all)},
          {Ref(Y, {1, 1, 1}), Ref(indices, {1, 1, 1})}));
  EXPECT_EQ(Y.Values(0, 1), Values{1000});
  EXPECT_EQ(indices.Values(0, 1), Values{static_cast<double>(kMany - 1)});
  support::LargeMemory dY = Memory(kHalf, 1);
  support::LargeMemory dX = Memory(kHalf, kMany);
  dY.Fill(Values{3});
  ASSERT_NO_FATAL_FAILURE(
      Run("GlobalMaxPoolGrad", {kHalf}, {}, {Ref(dY, {1, 1, 1}), Ref(X, all), Ref(Y, {1, 1, 1})},
          {Ref(dX, all)}));
  EXPECT_EQ(dX.Difference(Values(kPeriod), 0, kMany - 1), "");
  EXPECT_EQ(dX.Values(kMany - 1, kMany), Values{3});
}

/// The mean of more elements than 32 bits count, of which the second half is larger.
TEST_P(LargeWindowsTest, MeanOfAll) {
  if (const std::string why = WhyTooLarge(2 * kTwoToThe32); !why.empty()) {
    GTEST_SKIP() << why;
  }
  support::LargeMemory X = Memory(kHalf, kTwoToThe32);
  support::LargeMemory Y = Memory(kHalf, 1);
  X.Fill(Values{0.1}, 0, kTwoToThe31);
  X.Fill(Values{0.3}, kTwoToThe31, kTwoToThe32);
  ASSERT_NO_FATAL_FAILURE(
      Run("GlobalAveragePool", {kHalf}, {}, {Ref(X, {1, 1, kTwoToThe32})}, {Ref(Y, {1, 1, 1})}));
  EXPECT_NEAR(Y.Values(0, 1).front(), 0.2, 2e-4);
}

/// Tensors have more channels, or more images, than 31 bits count, of one element each.
class LargePlanesTest : public LargeTensorsTest {
 protected:
  static constexpr std::int64_t kOdd = kTwoToThe31 + 8195;
  static constexpr std::int64_t kVectors = kTwoToThe31 + 8192;

  static void CheckAveragePool(const Dims& dims, const Strides& strides) {
    CheckCopy(dims, strides, "AveragePool", [&](const TensorRef& x) {
      return std::vector<ConstTensorRef>{x};
    });
  }
  static void CheckAveragePoolGrad(const Dims& dims, const Strides& strides) {
    CheckCopy(dims, strides, "AveragePoolGrad", [&](const TensorRef& dy) {
      return std::vector<ConstTensorRef>{dy, ConstTensorRef(kHalf, nullptr, dims, device())};
    });
  }

 private:
  /// Windows of one element have that one for their mean.
  static void CheckCopy(
      const Dims& dims,
      const Strides& strides,
      std::string_view op,
      const std::function<std::vector<ConstTensorRef>(const TensorRef&)>& inputs) {
    const std::int64_t many = NumElements(dims);
    if (const std::string why = WhyTooLarge(4 * many); !why.empty()) {
      GTEST_SKIP() << why;
    }
    const Values values = Multiples(kPeriod, 900);
    support::LargeMemory from = Memory(kHalf, many);
    support::LargeMemory to = Memory(kHalf, many);
    from.Fill(values);
    ASSERT_NO_FATAL_FAILURE(
        Run(op, {kHalf}, {{"kernel_shape", IntList{1}}}, inputs(Ref(from, dims, strides)),
            {Ref(to, dims, strides)}));
    EXPECT_EQ(to.Difference(values), "");
  }
};

TEST_P(LargePlanesTest, AveragePoolOfChannels) {
  CheckAveragePool({1, kOdd, 1}, {kOdd, 1, 1});
}

TEST_P(LargePlanesTest, AveragePoolOfVectorsOfChannels) {
  CheckAveragePool({1, kVectors, 1}, {kVectors, 1, kVectors});
}

TEST_P(LargePlanesTest, AveragePoolOfImages) {
  CheckAveragePool({kOdd, 1, 1}, {1, 1, 1});
}

TEST_P(LargePlanesTest, AveragePoolGradOfChannels) {
  CheckAveragePoolGrad({1, kOdd, 1}, {kOdd, 1, 1});
}

/// CUDA computes these by tiles of channels.
TEST_P(LargePlanesTest, AveragePoolGradOfVectorsOfChannels) {
  CheckAveragePoolGrad({1, kVectors, 1}, {kVectors, 1, kVectors});
}

TEST_P(LargePlanesTest, AveragePoolGradOfImages) {
  CheckAveragePoolGrad({kOdd, 1, 1}, {1, 1, 1});
}

GRADSMITH_INSTANTIATE_LARGE_TENSORS(LargeWindowsTest);
GRADSMITH_INSTANTIATE_LARGE_TENSORS(LargePlanesTest);

}  // namespace
}  // namespace gradsmith
