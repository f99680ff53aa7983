#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "conv/axis_taps.h"
#include "conv/kernels.h"
#include "gradsmith/context.h"
#include "gradsmith/tensor.h"
#include "support/test_tensor.h"

/// Zero times what is not finite, where a patch reaches beyond its source.
namespace gradsmith::conv {
namespace {

using support::Layout;
using support::TestTensor;
using Values = std::vector<double>;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr DataType kAllTypes[] = {
    DataType::kFloat, DataType::kDouble, DataType::kMLFloat16, DataType::kBFloat16};

/// EXPECT_EQ for which NaN is NaN.
void ExpectSame(const Values& actual, const Values& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    EXPECT_TRUE(actual[i] == expected[i] || (std::isnan(actual[i]) && std::isnan(expected[i])))
        << "[" << i << "] is " << actual[i] << "; expected " << expected[i];
  }
}

/// A tensor of one image and one channel.
TestTensor Line(DataType type, const Values& values) {
  TestTensor line(type, {1, 1, static_cast<std::int64_t>(values.size())}, Layout::kContiguous);
  line.Fill(values);
  return line;
}

class ConvBorders : public testing::TestWithParam<DataType> {
 protected:
  static Values Y(const Values& x, const Values& w, const IntList& pads) {
    const auto axis = static_cast<std::int64_t>(x.size() - w.size() + 1) + pads[0] + pads[1];
    TestTensor y = Line(GetParam(), Values(axis));
    const TestTensor x_tensor = Line(GetParam(), x);
    const TestTensor w_tensor = Line(GetParam(), w);
    const ConstTensorRef X = x_tensor.Ref();
    const ConstTensorRef W = w_tensor.Ref();
    const TensorRef to = y.Ref();
    const Status status = Conv::RunCpu(Context(), {.pads = pads}, {.X = &X, .W = &W}, {.Y = &to});
    EXPECT_TRUE(status.ok()) << status.message();
    return y.Values();
  }

  static Values TransposedY(const Values& x, const Values& w) {
    TestTensor y = Line(GetParam(), Values(x.size() + w.size() - 1));
    const TestTensor x_tensor = Line(GetParam(), x);
    const TestTensor w_tensor = Line(GetParam(), w);
    const ConstTensorRef X = x_tensor.Ref();
    const ConstTensorRef W = w_tensor.Ref();
    const TensorRef to = y.Ref();
    const Status status = ConvTranspose::RunCpu(Context(), {}, {.X = &X, .W = &W}, {.Y = &to});
    EXPECT_TRUE(status.ok()) << status.message();
    return y.Values();
  }

  /// dX and dW.
  static std::pair<Values, Values>
  Gradients(const Values& dy, const Values& x, const Values& w, const IntList& pads) {
    const TestTensor dy_tensor = Line(GetParam(), dy);
    const TestTensor x_tensor = Line(GetParam(), x);
    const TestTensor w_tensor = Line(GetParam(), w);
    TestTensor dx = Line(GetParam(), Values(x.size()));
    TestTensor dw = Line(GetParam(), Values(w.size()));
    const ConstTensorRef DY = dy_tensor.Ref();
    const ConstTensorRef X = x_tensor.Ref();
    const ConstTensorRef W = w_tensor.Ref();
    const TensorRef DX = dx.Ref();
    const TensorRef DW = dw.Ref();
    const Status status = ConvGrad::RunCpu(
        Context(), {.pads = pads}, {.dY = &DY, .X = &X, .W = &W}, {.dX = &DX, .dW = &DW});
    EXPECT_TRUE(status.ok()) << status.message();
    return {dx.Values(), dw.Values()};
  }
};

TEST_P(ConvBorders, PaddingMeetsNoInfinityOfTheFilter) {
  ExpectSame(Y({1, 1, 1, 1}, {1, kInf}, {1, 1}), {kInf, kInf, kInf, kInf, 1});
  ExpectSame(Y({1, 0, 1, 1}, {-kInf, 1}, {1, 1}), {1, -kInf, kNaN, -kInf, -kInf});
  ExpectSame(Y({1, 1}, {1, 1, kNaN}, {2, 2}), {kNaN, kNaN, 2, 1});
  // No tap of the first and the last reads anything.
  ExpectSame(Y({2}, {kNaN}, {1, 1}), {0, kNaN, 0});
}

TEST_P(ConvBorders, PatchesOfAGradientReachBeyondIt) {
  ExpectSame(Gradients({1, 1, 1}, {1, 1, 1, 1}, {1, kNaN}, {0, 0}).first, {1, kNaN, kNaN, kNaN});
  ExpectSame(
      Gradients({1, 1, 1}, {1, 1, 1, 1}, {-kInf, 2}, {0, 0}).first, {-kInf, -kInf, -kInf, 2});
  ExpectSame(TransposedY({1, 1, 1, 1}, {1, kNaN}), {1, kNaN, kNaN, kNaN, kNaN});
}

TEST_P(ConvBorders, PaddingMeetsNoInfinityOfTheGradient) {
  ExpectSame(Gradients({kInf, 1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1}, {1, 1}).second, {4, kInf});
  ExpectSame(Gradients({1, 1, 1, 1, kNaN}, {1, 1, 1, 1}, {1, 1}, {1, 1}).second, {kNaN, 4});
  // No position reads x with the outer taps.
  ExpectSame(Gradients({kNaN}, {3}, {1, 1, 1}, {1, 1}).second, {0, kNaN, 0});
}

INSTANTIATE_TEST_SUITE_P(AllTypes, ConvBorders, testing::ValuesIn(kAllTypes), [](const auto& info) {
  return std::string(ToString(info.param));
});

TEST(ConvAxisTaps, PartsAreStretchesThatReadWithTheSameTaps) {
  // Position p reads p - 1, p and p + 1 of three.
  const AxisTaps axis{
      .positions = 5, .source = 3, .taps = 3, .step = 1, .first = -1, .tap_step = 1};
  const std::vector<AxisPart> parts = PartsByPosition(axis);
  ASSERT_EQ(parts.size(), 5U);
  EXPECT_EQ(parts[0].taps, (internal::Range{1, 3}));
  EXPECT_EQ(parts[1].taps, (internal::Range{0, 3}));
  EXPECT_EQ(parts[2].taps, (internal::Range{0, 2}));
  EXPECT_EQ(parts[3].taps, (internal::Range{0, 1}));
  EXPECT_EQ(parts[4].taps, (internal::Range{}));
  EXPECT_EQ(parts[4].positions, (internal::Range{4, 5}));
  EXPECT_TRUE(axis.ReachesBeyond());
  EXPECT_FALSE(axis.Part(parts[1]).ReachesBeyond());
}

TEST(ConvAxisTaps, DownwardsAsWell) {
  // Position p reads p, p - 2 and p - 4 of three.
  const AxisTaps axis{
      .positions = 7, .source = 3, .taps = 3, .step = 1, .first = 0, .tap_step = -2};
  const std::vector<AxisPart> parts = PartsByPosition(axis);
  ASSERT_EQ(parts.size(), 5U);
  EXPECT_EQ(parts[0].positions, (internal::Range{0, 2}));
  EXPECT_EQ(parts[0].taps, (internal::Range{0, 1}));
  EXPECT_EQ(parts[1].taps, (internal::Range{0, 2}));
  EXPECT_EQ(parts[2].taps, (internal::Range{1, 2}));
  EXPECT_EQ(parts[3].taps, (internal::Range{1, 3}));
  EXPECT_EQ(parts[4].positions, (internal::Range{5, 7}));
  for (const AxisPart& part : parts) {
    EXPECT_FALSE(axis.Part(part).ReachesBeyond());
  }
}

}  // namespace
}  // namespace gradsmith::conv
