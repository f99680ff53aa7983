#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gradsmith/context.h"
#include "pool/kernels.h"

/// Pooling on examples that are worked out by hand. The generated tests compare every row with the
/// oracle, and runtime/cuda/pool_test.cc the GPU with the CPU.
namespace gradsmith::pool {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNan = std::nanf("");

/// A tensor that begins full of what no result is.
template <typename T>
struct Dense {
  explicit Dense(Dims dims_, std::vector<T> values_ = {})
      : dims(std::move(dims_)), values(std::move(values_)) {
    values.resize(static_cast<std::size_t>(NumElements(dims)), T{77});
  }
  [[nodiscard]] TensorRef Ref() {
    return {kDataTypeOf<T>, values.data(), dims, ContiguousStrides(dims), {}};
  }
  Dims dims;
  std::vector<T> values;
};

using Floats = std::vector<float>;
using Integers = std::vector<std::int64_t>;

struct MaxPooled {
  Floats Y;
  Integers indices;
};

MaxPooled RunMaxPool(const MaxPoolAttributes& attributes, const Dims& dims, const Floats& values) {
  Dense<float> X(dims, values);
  Dims output = dims;
  const Result<Dims> spatial =
      PooledSpatial(attributes, Dims(std::span(dims.begin() + 2, dims.end())));
  EXPECT_TRUE(spatial.ok()) << spatial.status().message();
  for (int axis = 0; spatial.ok() && axis < spatial->size(); ++axis) {
    output[2 + axis] = (*spatial)[axis];
  }
  Dense<float> Y(output);
  Dense<std::int64_t> indices(output);
  const ConstTensorRef of_x = X.Ref();
  const TensorRef of_y = Y.Ref();
  const TensorRef of_indices = indices.Ref();
  const Status status =
      MaxPool::RunCpu(Context(), attributes, {.X = &of_x}, {.Y = &of_y, .Indices = &of_indices});
  EXPECT_TRUE(status.ok()) << status.message();
  return {Y.values, indices.values};
}

Status RunMaxPoolGrad(
    const MaxPoolGradAttributes& attributes,
    Dense<float> dY,
    const Integers& indices,
    Dense<float>* dX) {
  Dense<std::int64_t> named(dY.dims, indices);
  const ConstTensorRef of_dy = dY.Ref();
  const ConstTensorRef of_indices = named.Ref();
  const TensorRef of_dx = dX->Ref();
  return MaxPoolGrad::RunCpu(
      Context(), attributes, {.dY = &of_dy, .Indices = &of_indices}, {.dX = &of_dx});
}

Floats
XYGradient(const MaxPoolAttributes& attributes, Dense<float> dY, const Floats& Y, Dense<float> X) {
  Dense<float> of_forward(dY.dims, Y);
  Dense<float> dX(X.dims);
  const ConstTensorRef of_dy = dY.Ref();
  const ConstTensorRef of_x = X.Ref();
  const ConstTensorRef of_y = of_forward.Ref();
  const TensorRef of_dx = dX.Ref();
  const Status status = MaxPoolXYGrad::RunCpu(
      Context(), attributes, {.dY = &of_dy, .X = &of_x, .Y = &of_y}, {.dX = &of_dx});
  EXPECT_TRUE(status.ok()) << status.message();
  return dX.values;
}

Floats RunAveragePool(
    const AveragePoolAttributes& attributes,
    const Dims& dims,
    const Floats& values,
    const Dims& output) {
  Dense<float> X(dims, values);
  Dense<float> Y(output);
  const ConstTensorRef of_x = X.Ref();
  const TensorRef of_y = Y.Ref();
  const Status status = AveragePool::RunCpu(Context(), attributes, {.X = &of_x}, {.Y = &of_y});
  EXPECT_TRUE(status.ok()) << status.message();
  return Y.values;
}

TEST(PoolRules, Spatial) {
  struct RuleCase {
    WindowAttributes attributes;
    Dims D;
    Dims expected;
  };
  const std::vector<RuleCase> cases = {
      {{.kernel_shape = {3, 2}}, {9, 11}, {7, 10}},
      {{.kernel_shape = {3}, .strides = {2}}, {6}, {2}},
      {{.kernel_shape = {3}, .strides = {2}, .ceil_mode = true}, {6}, {3}},
      {{.kernel_shape = {3}, .strides = {2}, .ceil_mode = true}, {5}, {2}},
      // The last window would begin in the pads at the end.
      {{.kernel_shape = {2}, .strides = {2}, .pads = {1, 1}, .ceil_mode = true}, {7}, {4}},
      // A window may be larger than the input.
      {{.kernel_shape = {3}, .strides = {2}, .ceil_mode = true}, {2}, {1}},
      // As ONNX has it, there is nothing to round with auto_pad.
      {{.kernel_shape = {3}, .strides = {2}, .auto_pad = AutoPad::VALID, .ceil_mode = true},
       {6},
       {2}},
      {{.kernel_shape = {4, 3}, .strides = {2, 3}, .auto_pad = AutoPad::SAME_LOWER},
       {7, 8},
       {4, 3}},
      {{.kernel_shape = {2}, .dilations = {3}}, {4}, {1}},
      {{.kernel_shape = {3}}, {0}, {0}},
      {{.kernel_shape = {3}, .pads = {2, 2}}, {0}, {2}},
      {{.kernel_shape = {3}, .strides = {2}, .pads = {2, 2}, .ceil_mode = true}, {0}, {1}},
  };
  for (const RuleCase& rule_case : cases) {
    const Result<Dims> output = PooledSpatial(rule_case.attributes, rule_case.D);
    ASSERT_TRUE(output.ok()) << output.status().message();
    EXPECT_EQ(*output, rule_case.expected) << ToString(*output);
  }
}

TEST(PoolRules, Errors) {
  constexpr std::int64_t kAbsurd = std::int64_t{1} << 62;
  const std::vector<std::pair<WindowAttributes, std::string>> cases = {
      {{}, "attribute kernel_shape is []; expected the window's dims"},
      {{.kernel_shape = {3}}, "attribute kernel_shape has 1 entries; expected 2"},
      {{.kernel_shape = {3, 0}}, "attribute kernel_shape[1] is 0; expected 1 or more"},
      {{.kernel_shape = {3, 4}, .pads = {0, 1, 0, 0}, .dilations = {1, 2}},
       "spatial axis 1: the padded input has 5 positions (4 and pads 1, 0); expected at least the 7 "
       "that the window spans (size 4, dilation 2)"},
      {{.kernel_shape = {1, 9}, .strides = {1, 2}, .ceil_mode = true},
       "spatial axis 1: the padded input has 4 positions (4 and pads 0, 0); expected at least the 9 "
       "that the window spans (size 9, dilation 1)"},
      {{.kernel_shape = {1, 1}, .pads = {0, 1, 0, 0}, .auto_pad = AutoPad::VALID},
       "attribute pads is [0, 1, 0, 0]; expected none, or zeros, where auto_pad is VALID"},
      {{.kernel_shape = {3, 3}, .dilations = {kAbsurd, 1}},
       "spatial axis 0: the window, with dilations, passes 2^62 positions; expected at most 2^62"},
      {{.kernel_shape = {3, 3}, .pads = {kAbsurd, 0, 0, 0}},
       "spatial axis 0: the input, with pads, passes 2^62 positions; expected at most 2^62"},
  };
  for (const auto& [attributes, message] : cases) {
    const Result<Dims> output = PooledSpatial(attributes, {5, 4});
    ASSERT_FALSE(output.ok());
    EXPECT_EQ(output.status().message(), message);
  }
}

TEST(MaxPool, TakesTheFirstOfEqualOnesAndTheLastNan) {
  const MaxPoolAttributes pairs = {{.kernel_shape = {3}, .strides = {3}}};
  const MaxPooled pooled = RunMaxPool(
      pairs, {1, 1, 12}, {1, 2, 2, kNan, 9, kNan, -kInfinity, -kInfinity, -kInfinity, -0.F, 0, -1});
  EXPECT_EQ(pooled.indices, (Integers{1, 5, 6, 9}));
  EXPECT_EQ(pooled.Y[0], 2);
  EXPECT_TRUE(std::isnan(pooled.Y[1]));
  EXPECT_EQ(pooled.Y[2], -kInfinity);
  EXPECT_TRUE(std::signbit(pooled.Y[3]));
}

TEST(MaxPool, FindsNothingInPadding) {
  // Windows begin at -3, -1 and 1, and their two elements are 2 apart.
  const MaxPoolAttributes attributes = {
      {.kernel_shape = {2}, .strides = {2}, .pads = {3, 0}, .dilations = {2}}};
  const MaxPooled pooled = RunMaxPool(attributes, {1, 2, 4}, {1, -5, 3, 4, -9, -8, -7, -6});
  EXPECT_EQ(pooled.Y, (Floats{-kInfinity, -5, 4, -kInfinity, -8, -6}));
  EXPECT_EQ(pooled.indices, (Integers{-1, 1, 3, -1, 5, 7}));
}

TEST(MaxPool, CountsAllElementsOfXInEitherOrder) {
  MaxPoolAttributes attributes = {{.kernel_shape = {1, 2, 1}}};
  Floats values(48);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i);
  }
  const Dims dims = {2, 2, 2, 2, 3};
  EXPECT_EQ(RunMaxPool(attributes, dims, values).indices[7], 12 + 3 + 1);
  attributes.storage_order = 1;
  // Channel 1; of its dims (2, 2, 3) the first counts first.
  EXPECT_EQ(RunMaxPool(attributes, dims, values).indices[7], 12 + 0 + (2 * 1) + (4 * 1));
}

TEST(MaxPoolGrad, SumsOverWindowsAndWritesZerosElsewhere) {
  Dense<float> dX({1, 1, 8});
  const MaxPoolGradAttributes attributes = {{{.kernel_shape = {3}, .strides = {2}}}};
  const Status status =
      RunMaxPoolGrad(attributes, Dense<float>({1, 1, 3}, {1, 10, 100}), {2, 2, 5}, &dX);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(dX.values, (Floats{0, 0, 11, 0, 0, 100, 0, 0}));
}

TEST(MaxPoolGrad, IndicesThatNameNothingInTheirWindowCountForNothing) {
  using Limits = std::numeric_limits<std::int64_t>;
  const MaxPoolGradAttributes attributes = {
      {{.kernel_shape = {2}, .strides = {2}, .dilations = {2}}}};
  for (const std::int64_t index :
       {Limits::min(), Limits::max(), std::int64_t{-1}, std::int64_t{12}, std::int64_t{1} << 32U,
        std::int64_t{0}, std::int64_t{7}, std::int64_t{9}}) {
    Dense<float> dX({1, 2, 6});
    // The last window of the second channel holds elements 8 and 10.
    const Status status = RunMaxPoolGrad(
        attributes, Dense<float>({1, 2, 2}, {1, 1, 1, 5}), {index, index, index, 10}, &dX);
    ASSERT_TRUE(status.ok()) << status.message();
    Floats expected(12);
    expected[10] = 5;
    if (index == 0) {
      expected[0] = 1;  // the first window of all holds it
    }
    EXPECT_EQ(dX.values, expected) << index;
  }
}

TEST(MaxPoolGrad, RefusesDimsThatTheWindowsDoNotGive) {
  Dense<float> dX({1, 1, 9});
  const MaxPoolGradAttributes attributes = {{{.kernel_shape = {3}, .strides = {2}}}};
  const Status status =
      RunMaxPoolGrad(attributes, Dense<float>({1, 1, 3}, {1, 1, 1}), {0, 0, 0}, &dX);
  EXPECT_EQ(
      status.message(),
      "dY has shape [1, 1, 3]; expected [1, 1, 4], as pool::PooledSpatial makes of dX's [1, 1, 9]");
}

TEST(MaxPoolXYGrad, GivesTiesToTheElementThatMaxPoolNames) {
  const MaxPoolAttributes attributes = {{.kernel_shape = {3}, .strides = {2}}};
  EXPECT_EQ(
      XYGradient(
          attributes, Dense<float>({1, 1, 3}, {1, 10, 100}), {2, 2, kNan},
          Dense<float>({1, 1, 7}, {2, 2, 2, 1, 0, kNan, kNan})),
      (Floats{1, 0, 10, 0, 0, 0, 100}));
  // What is the maximum of no window takes nothing.
  EXPECT_EQ(
      XYGradient(attributes, Dense<float>({1, 1, 1}, {1}), {5}, Dense<float>({1, 1, 3}, {1, 2, 3})),
      (Floats{0, 0, 0}));
}

TEST(AveragePool, DividesByWhatAWindowHolds) {
  AveragePoolAttributes attributes = {
      {.kernel_shape = {3}, .strides = {2}, .pads = {1, 1}, .ceil_mode = true}};
  const Floats values = {3, 6, 9, 12};
  EXPECT_EQ(RunAveragePool(attributes, {1, 1, 4}, values, {1, 1, 3}), (Floats{4.5F, 9, 12}));
  // The last window has one element, one of the pads, and one beyond them, which never counts.
  attributes.count_include_pad = true;
  EXPECT_EQ(RunAveragePool(attributes, {1, 1, 4}, values, {1, 1, 3}), (Floats{3, 9, 6}));
}

TEST(AveragePool, IsZeroInPadding) {
  AveragePoolAttributes attributes = {{.kernel_shape = {2}, .strides = {2}, .pads = {2, 2}}};
  for (const bool counts : {false, true}) {
    attributes.count_include_pad = counts;
    EXPECT_EQ(RunAveragePool(attributes, {1, 1, 2}, {4, 8}, {1, 1, 3}), (Floats{0, 6, 0}));
  }
}

/// A float that has summed 2^24 ones grows no more by one.
TEST(AveragePool, SumsMoreElementsThanFloatCounts) {
  constexpr std::int64_t kMany = std::int64_t{1} << 25U;
  const std::vector<MLFloat16> ones(std::size_t{kMany}, MLFloat16(1.0F));
  MLFloat16 mean(0.0F);
  const ConstTensorRef X(DataType::kMLFloat16, ones.data(), {1, 1, kMany});
  const TensorRef Y(DataType::kMLFloat16, &mean, {1, 1, 1});
  const Status status = GlobalAveragePool::RunCpu(Context(), {}, {.X = &X}, {.Y = &Y});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(static_cast<float>(mean), 1);
}

TEST(AveragePoolGrad, DividesAsTheForwardDoesAndNeedsNoData) {
  AveragePoolAttributes attributes = {
      {.kernel_shape = {3}, .strides = {2}, .pads = {1, 1}, .ceil_mode = true}};
  Dense<float> dY({1, 1, 3}, {6, 12, 18});
  const ConstTensorRef X(DataType::kFloat, nullptr, Dims{1, 1, 4});
  for (const bool counts : {false, true}) {
    attributes.count_include_pad = counts;
    Dense<float> dX({1, 1, 4});
    const ConstTensorRef of_dy = dY.Ref();
    const TensorRef of_dx = dX.Ref();
    const Status status =
        AveragePoolGrad::RunCpu(Context(), attributes, {.dY = &of_dy, .X = &X}, {.dX = &of_dx});
    ASSERT_TRUE(status.ok()) << status.message();
    const float first = counts ? 2 : 3;
    const float last = counts ? 9 : 18;
    EXPECT_EQ(dX.values, (Floats{first, first + 4, 4, 4 + last}));
  }
}

TEST(AveragePool, WindowsMayReachFarBeyondTheInput) {
  constexpr std::int64_t kFar = std::int64_t{1} << 40;
  const AveragePoolAttributes attributes = {
      {.kernel_shape = {2},
       .strides = {kFar},
       .dilations = {kFar},
       .auto_pad = AutoPad::SAME_UPPER}};
  // One window, which begins half its span before the input.
  EXPECT_EQ(RunAveragePool(attributes, {1, 1, 3}, {1, 2, 3}, {1, 1, 1}), (Floats{0}));
}

}  // namespace
}  // namespace gradsmith::pool
