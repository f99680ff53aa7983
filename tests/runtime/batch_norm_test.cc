#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "batch_norm/kernels.h"
#include "gradsmith/context.h"
#include "gradsmith/tensor.h"
#include "reference/random.h"
#include "support/elements.h"
#include "support/test_tensor.h"

namespace gradsmith::batch_norm {
namespace {

using reference::Random;
using support::Layout;
using support::TestTensor;
using Sizes = std::vector<std::int64_t>;
using Values = std::vector<double>;

Context ContextWith(int threads) {
  ContextOptions options;
  options.threads = threads;
  return Context(options);
}

std::int64_t Count(const Sizes& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

/// The types of an op: of its large tensors, of scale and bias, of statistics.
struct Types {
  DataType T = DataType::kFloat;
  DataType T1 = DataType::kFloat;
  DataType T2 = DataType::kFloat;
};

constexpr DataType kAllTypes[] = {
    DataType::kFloat, DataType::kDouble, DataType::kMLFloat16, DataType::kBFloat16};

/// Calls visit(element, channel) for each element of (N, C, D...), last dimension fastest.
void ForEachElement(const Sizes& dims, const std::function<void(std::size_t, std::size_t)>& visit) {
  const std::int64_t positions = Count({dims.begin() + 2, dims.end()});
  for (std::int64_t i = 0; i < Count(dims); ++i) {
    visit(i, (i / positions) % dims[1]);
  }
}

/// m: how many values a channel has.
double SamplesOf(const Sizes& dims) {
  return static_cast<double>(dims[0] * Count({dims.begin() + 2, dims.end()}));
}

/// The definition.
struct NaiveTraining {
  NaiveTraining(
      const Sizes& dims,
      const Values& x,
      const Values& scale,
      const Values& bias,
      double epsilon)
      : mean(dims[1]), variance(dims[1]), inv_std(dims[1]), y(x.size()) {
    const double m = SamplesOf(dims);
    ForEachElement(dims, [&](auto i, auto c) { mean[c] += x[i] / m; });
    ForEachElement(dims, [&](auto i, auto c) { variance[c] += std::pow(x[i] - mean[c], 2) / m; });
    for (std::size_t c = 0; c < inv_std.size(); ++c) {
      inv_std[c] = 1 / std::sqrt(variance[c] + epsilon);
    }
    ForEachElement(
        dims, [&](auto i, auto c) { y[i] = scale[c] * (x[i] - mean[c]) * inv_std[c] + bias[c]; });
  }

  Values mean;
  Values variance;
  Values inv_std;
  Values y;
};

struct NaiveGradient {
  NaiveGradient(
      const Sizes& dims,
      const Values& dy,
      const Values& x,
      const Values& scale,
      const Values& mean,
      const Values& inv_std)
      : dx(x.size()), dscale(dims[1]), dbias(dims[1]) {
    const double m = SamplesOf(dims);
    const auto xhat = [&](std::size_t i, std::size_t c) { return (x[i] - mean[c]) * inv_std[c]; };
    ForEachElement(dims, [&](auto i, auto c) {
      dbias[c] += dy[i];
      dscale[c] += dy[i] * xhat(i, c);
    });
    ForEachElement(dims, [&](auto i, auto c) {
      dx[i] = scale[c] * inv_std[c] / m * (m * dy[i] - dbias[c] - xhat(i, c) * dscale[c]);
    });
  }

  Values dx;
  Values dscale;
  Values dbias;
};

void ExpectNear(
    const TestTensor& tensor,
    const Values& expected,
    double tolerance,
    std::string_view name) {
  const Values actual = tensor.Values();
  ASSERT_EQ(actual.size(), expected.size());
  const double roundoff = support::UnitRoundoff(tensor.type());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    // By way of float, a 16-bit number is rounded twice.
    const double bound = (1.01 * roundoff * std::abs(expected[i])) + tolerance +
                         support::SmallestPositive(tensor.type());
    ASSERT_NEAR(actual[i], expected[i], bound) << name << "[" << i << "]";
  }
  EXPECT_TRUE(tensor.SurroundingsIntact()) << name;
}

/// The tensors of a training step and of its gradient.
class Step {
 public:
  Step(const Sizes& dims, Types types, Layout layout)
      : dims_(dims),
        x(types.T, dims, layout),
        dy(types.T, dims, layout == Layout::kStrided ? Layout::kBroadcast : layout),
        scale(types.T1, {dims[1]}, layout),
        bias(types.T1, {dims[1]}, layout),
        running_mean(types.T2, {dims[1]}, layout),
        running_var(types.T2, {dims[1]}, layout),
        y(types.T, dims, layout),
        new_mean(types.T2, {dims[1]}, layout),
        new_var(types.T2, {dims[1]}, layout),
        saved_mean(types.T2, {dims[1]}, layout),
        saved_inv_std(types.T2, {dims[1]}, layout),
        dx(types.T, dims, layout),
        dscale(types.T1, {dims[1]}, layout),
        dbias(types.T1, {dims[1]}, layout) {}

  void FillInputs(const std::function<double()>& draw) {
    for (TestTensor* tensor : {&x, &dy, &scale, &bias, &running_mean, &running_var}) {
      Values values(Count(tensor->dims()));
      std::generate(values.begin(), values.end(), draw);
      tensor->Fill(values);
    }
  }

  [[nodiscard]] Status Train(const Context& context, const Attributes& attributes) const {
    const ConstTensorRef X = x.Ref();
    const ConstTensorRef Scale = scale.Ref();
    const ConstTensorRef B = bias.Ref();
    const ConstTensorRef OldMean = running_mean.Ref();
    const ConstTensorRef OldVar = running_var.Ref();
    const TensorRef Y = y.Ref();
    const TensorRef NewMean = new_mean.Ref();
    const TensorRef NewVar = new_var.Ref();
    const TensorRef SavedMean = saved_mean.Ref();
    const TensorRef SavedInvStd = saved_inv_std.Ref();
    return BatchNormalization::RunCpu(
        context, attributes,
        {.X = &X, .scale = &Scale, .B = &B, .running_mean = &OldMean, .running_var = &OldVar},
        {.Y = &Y,
         .running_mean = &NewMean,
         .running_var = &NewVar,
         .saved_mean = &SavedMean,
         .saved_inv_std = &SavedInvStd});
  }

  /// Reads the saved statistics, which Train or a Fill has written.
  [[nodiscard]] Status Backward(
      const Context& context,
      bool with_dx = true,
      bool with_dscale = true,
      bool with_dbias = true) const {
    const ConstTensorRef DY = dy.Ref();
    const ConstTensorRef X = x.Ref();
    const ConstTensorRef Scale = scale.Ref();
    const ConstTensorRef SavedMean = saved_mean.Ref();
    const ConstTensorRef SavedInvStd = saved_inv_std.Ref();
    const TensorRef DX = with_dx ? dx.Ref() : TensorRef();
    const TensorRef DScale = with_dscale ? dscale.Ref() : TensorRef();
    const TensorRef DBias = with_dbias ? dbias.Ref() : TensorRef();
    return BatchNormalizationGrad::RunCpu(
        context, {},
        {.dY = &DY,
         .X = &X,
         .scale = &Scale,
         .saved_mean = &SavedMean,
         .saved_inv_std = &SavedInvStd},
        {.dX = &DX, .dScale = &DScale, .dBias = &DBias});
  }

  [[nodiscard]] NaiveGradient ExpectedGradient() const {
    return {dims_,          dy.Values(),         x.Values(),
            scale.Values(), saved_mean.Values(), saved_inv_std.Values()};
  }

 private:
  Sizes dims_;

 public:
  TestTensor x;
  TestTensor dy;
  TestTensor scale;
  TestTensor bias;
  TestTensor running_mean;
  TestTensor running_var;
  TestTensor y;
  TestTensor new_mean;
  TestTensor new_var;
  TestTensor saved_mean;
  TestTensor saved_inv_std;
  TestTensor dx;
  TestTensor dscale;
  TestTensor dbias;
};

void ExpectTraining(
    const Step& step,
    const Sizes& dims,
    const Attributes& attributes,
    double tolerance = 1e-13) {
  const NaiveTraining expected(
      dims, step.x.Values(), step.scale.Values(), step.bias.Values(), attributes.epsilon);
  const double m = SamplesOf(dims);
  Values new_mean = step.running_mean.Values();
  Values new_var = step.running_var.Values();
  for (std::size_t c = 0; c < new_mean.size(); ++c) {
    const double unbiased = m > 1 ? expected.variance[c] * m / (m - 1) : 0;
    new_mean[c] = attributes.momentum * new_mean[c] + (1 - attributes.momentum) * expected.mean[c];
    new_var[c] = attributes.momentum * new_var[c] + (1 - attributes.momentum) * unbiased;
  }
  ExpectNear(step.y, expected.y, tolerance, "Y");
  ExpectNear(step.new_mean, new_mean, tolerance, "running_mean");
  ExpectNear(step.new_var, new_var, tolerance, "running_var");
  ExpectNear(step.saved_mean, expected.mean, tolerance, "saved_mean");
  ExpectNear(step.saved_inv_std, expected.inv_std, tolerance, "saved_inv_std");
}

void ExpectGradient(const Step& step) {
  const NaiveGradient expected = step.ExpectedGradient();
  constexpr double kTolerance = 1e-12;
  ExpectNear(step.dx, expected.dx, kTolerance, "dX");
  ExpectNear(step.dscale, expected.dscale, kTolerance, "dScale");
  ExpectNear(step.dbias, expected.dbias, kTolerance, "dBias");
}

TEST(BatchNorm, AgreesWithTheDefinitionInEveryMixOfTypes) {
  const std::vector<Sizes> shapes = {
      {4, 3, 4, 2}, {8, 5}, {3, 70, 5}, {2, 2, 2, 3, 2}, {1, 3, 1, 2}};
  const Attributes attributes{.epsilon = 0.01, .momentum = 0.75};
  const Context context = ContextWith(2);
  Random random("batch norm types");
  for (const DataType T : kAllTypes) {
    for (const DataType T1 : kAllTypes) {
      for (const DataType T2 : kAllTypes) {
        for (const Layout layout : {Layout::kContiguous, Layout::kChannelsLast, Layout::kStrided}) {
          const Sizes& dims = random.Choice(shapes);
          SCOPED_TRACE(
              std::string(ToString(T)) + ", " + std::string(ToString(T1)) + ", " +
              std::string(ToString(T2)) + " " + support::ToString(dims));
          Step step(dims, {T, T1, T2}, layout);
          step.FillInputs([&] { return random.Real(-2, 2); });
          ASSERT_TRUE(step.Train(context, attributes).ok());
          ExpectTraining(step, dims, attributes);
          ASSERT_TRUE(step.Backward(context).ok());
          ExpectGradient(step);
        }
      }
    }
  }
}

TEST(BatchNorm, AgreesAcrossPieces) {
  const Context context = ContextWith(2);
  Random random("batch norm pieces");
  for (const Sizes& dims :
       {Sizes{9, 2, 70, 80}, Sizes{3000, 130}, Sizes{2, 1, 100000}, Sizes{5, 67, 19, 21}}) {
    for (const Layout layout : {Layout::kContiguous, Layout::kChannelsLast}) {
      SCOPED_TRACE(support::ToString(dims));
      Step step(dims, {DataType::kDouble, DataType::kDouble, DataType::kDouble}, layout);
      step.FillInputs([&] { return random.Real(-1, 3); });
      ASSERT_TRUE(step.Train(context, {}).ok());
      ExpectTraining(step, dims, {});
      ASSERT_TRUE(step.Backward(context).ok());
      // The definition adds up 10^5 terms one by one.
      const NaiveGradient expected = step.ExpectedGradient();
      ExpectNear(step.dx, expected.dx, 1e-12, "dX");
      ExpectNear(step.dscale, expected.dscale, 1e-8, "dScale");
      ExpectNear(step.dbias, expected.dbias, 1e-8, "dBias");
    }
  }
}

TEST(BatchNorm, BitsDoNotDependOnThreads) {
  for (const Sizes& dims : {Sizes{6, 3, 50, 60}, Sizes{2000, 33}}) {
    Step step(dims, {}, Layout::kContiguous);
    Random random("batch norm repeatability");
    step.FillInputs([&] { return random.Real(-1, 1); });
    std::vector<std::vector<std::byte>> first;
    for (const int threads : {1, 2, 5, 5}) {
      const Context context = ContextWith(threads);
      ASSERT_TRUE(step.Train(context, {}).ok());
      ASSERT_TRUE(step.Backward(context).ok());
      std::vector<std::vector<std::byte>> bytes;
      for (const TestTensor* tensor :
           {&step.y, &step.new_mean, &step.new_var, &step.saved_mean, &step.saved_inv_std, &step.dx,
            &step.dscale, &step.dbias}) {
        bytes.push_back(tensor->ElementBytes());
      }
      first = first.empty() ? bytes : first;
      EXPECT_EQ(bytes, first) << threads << " threads";
    }
  }
}

// By hand: mean 5 and 0, variance 4 and 1.
TEST(BatchNorm, ByHand) {
  Step step({4, 2}, {DataType::kDouble, DataType::kDouble, DataType::kDouble}, Layout::kContiguous);
  step.x.Fill({3, 1, 7, -1, 3, 1, 7, -1});
  step.scale.Fill({6, 1});
  step.bias.Fill({1, 0.5});
  step.running_mean.Fill({1, 2});
  step.running_var.Fill({3, 4});
  ASSERT_TRUE(step.Train(ContextWith(1), {.epsilon = 0, .momentum = 0.5}).ok());
  EXPECT_EQ(step.y.Values(), (Values{-5, 1.5, 7, -0.5, -5, 1.5, 7, -0.5}));
  EXPECT_EQ(step.saved_mean.Values(), (Values{5, 0}));
  EXPECT_EQ(step.saved_inv_std.Values(), (Values{0.5, 1}));
  EXPECT_EQ(step.new_mean.Values(), (Values{3, 1}));
  EXPECT_EQ(step.new_var.Values(), (Values{1.5 + 0.5 * (16.0 / 3), 2 + 0.5 * (4.0 / 3)}));

  step.dy.Fill({1, 0, 0, 0, 0, 0, 0, 4});
  ASSERT_TRUE(step.Backward(ContextWith(1)).ok());
  EXPECT_EQ(step.dbias.Values(), (Values{1, 4}));
  EXPECT_EQ(step.dscale.Values(), (Values{-1, -4}));
  // 6 * 0.5 / 4 * (4 dY - 1 + xhat), and 1 / 4 * (4 dY - 4 + 4 xhat).
  EXPECT_EQ(step.dx.Values(), (Values{1.5, 0, 0, -2, -1.5, 0, 0, 2}));
}

TEST(BatchNorm, LargeMeansDoNotCancel) {
  const Sizes dims = {64, 2, 5};
  Step step(dims, {}, Layout::kContiguous);
  Random random("batch norm offset");
  Values x(Count(dims));
  // Multiples of 1/64, exact in float beside 10^5; squares are not.
  std::generate(
      x.begin(), x.end(), [&] { return 1e5 + static_cast<double>(random.Integer(-64, 64)) / 64; });
  step.FillInputs([] { return 1.0; });
  step.x.Fill(x);
  ASSERT_TRUE(step.Train(ContextWith(1), {}).ok());
  // The definition's own mean is off by as much; in float, or in one pass, it would be by 10^-3.
  ExpectTraining(step, dims, {}, 1e-9);
}

TEST(BatchNorm, VarianceDoesNotTakeInTheRoundingOfTheMean) {
  constexpr double kLarge = 0x1.0p50;
  Step step({3, 1}, {DataType::kDouble, DataType::kDouble, DataType::kDouble}, Layout::kContiguous);
  step.FillInputs([] { return 0.0; });
  // The mean, 2/3 more than kLarge, can only be rounded to 3/4 more.
  step.x.Fill({kLarge, kLarge + 1, kLarge + 1});
  ASSERT_TRUE(step.Train(ContextWith(1), {.epsilon = 0, .momentum = 0}).ok());
  EXPECT_EQ(step.saved_mean.Values(), (Values{kLarge + 0.75}));
  EXPECT_NEAR(step.new_var.Values()[0], 1.0 / 3, 1e-15);
}

TEST(BatchNorm, OneValuePerChannel) {
  for (const Sizes& dims : {Sizes{1, 3}, Sizes{1, 3, 1, 1}}) {
    Step step(dims, {}, Layout::kContiguous);
    step.FillInputs([] { return 2.0; });
    step.x.Fill({1, -7, 0});
    ASSERT_TRUE(step.Train(ContextWith(1), {.epsilon = 0.25, .momentum = 0.5}).ok());
    EXPECT_EQ(step.y.Values(), (Values{2, 2, 2}));
    EXPECT_EQ(step.saved_mean.Values(), (Values{1, -7, 0}));
    EXPECT_EQ(step.saved_inv_std.Values(), (Values{2, 2, 2}));
    EXPECT_EQ(step.new_var.Values(), (Values{1, 1, 1}));
    ASSERT_TRUE(step.Backward(ContextWith(1)).ok());
    EXPECT_EQ(step.dx.Values(), (Values{0, 0, 0}));
    EXPECT_EQ(step.dscale.Values(), (Values{0, 0, 0}));
    EXPECT_EQ(step.dbias.Values(), (Values{2, 2, 2}));
  }
}

TEST(BatchNorm, NoValues) {
  for (const Sizes& dims : {Sizes{0, 2, 4}, Sizes{3, 2, 0, 4}}) {
    Step step(dims, {}, Layout::kContiguous);
    step.FillInputs([] { return 3.0; });
    ASSERT_TRUE(step.Train(ContextWith(2), {.epsilon = 0.25}).ok());
    EXPECT_EQ(step.saved_mean.Values(), (Values{0, 0}));
    EXPECT_EQ(step.saved_inv_std.Values(), (Values{2, 2}));
    EXPECT_EQ(step.new_mean.Values(), (Values{3, 3}));
    EXPECT_EQ(step.new_var.Values(), (Values{3, 3}));
    ASSERT_TRUE(step.Backward(ContextWith(2)).ok());
    EXPECT_EQ(step.dscale.Values(), (Values{0, 0}));
    EXPECT_EQ(step.dbias.Values(), (Values{0, 0}));
  }
}

/// Of an empty tensor the other dims may be anything: more than fit 64 bits multiplied, and more
/// channels than there is memory for.
TEST(BatchNorm, NoValuesOfHugeDims) {
  constexpr std::int64_t kMany = std::int64_t{1} << 60;
  float parameter = 1;
  for (const Dims& dims : {Dims{0, 2, INT64_MAX - 1, 3}, Dims{0, kMany}, Dims{2, kMany, 0, 5}}) {
    const ConstTensorRef X(DataType::kFloat, nullptr, dims);
    const TensorRef Y(DataType::kFloat, nullptr, dims);
    ConstTensorRef P(DataType::kFloat, &parameter, Dims{dims[1]});
    P.strides = Dims{0};
    for (const Context& context : {ContextWith(1), ContextWith(2)}) {
      EXPECT_TRUE(BatchNormalization::RunCpu(
                      context, {},
                      {.X = &X, .scale = &P, .B = &P, .running_mean = &P, .running_var = &P},
                      {.Y = &Y})
                      .ok());
      EXPECT_TRUE(BatchNormalizationGrad::RunCpu(
                      context, {},
                      {.dY = &X, .X = &X, .scale = &P, .saved_mean = &P, .saved_inv_std = &P},
                      {.dX = &Y})
                      .ok());
    }
  }
  // The sums of two channels of nothing, whatever their other dims.
  const ConstTensorRef X(DataType::kFloat, nullptr, Dims{0, 2, INT64_MAX - 1, 3});
  TestTensor sums(DataType::kFloat, {2}, Layout::kContiguous);
  sums.Fill({7, 7});
  const TensorRef DBias = sums.Ref();
  ConstTensorRef P(DataType::kFloat, &parameter, Dims{2});
  P.strides = Dims{0};
  ASSERT_TRUE(BatchNormalizationGrad::RunCpu(
                  ContextWith(1), {},
                  {.dY = &X, .X = &X, .scale = &P, .saved_mean = &P, .saved_inv_std = &P},
                  {.dBias = &DBias})
                  .ok());
  EXPECT_EQ(sums.Values(), (Values{0, 0}));
}

TEST(BatchNorm, NoChannels) {
  const Step step({2, 0, 4}, {}, Layout::kContiguous);
  EXPECT_TRUE(step.Train(ContextWith(2), {}).ok());
  EXPECT_TRUE(step.Backward(ContextWith(2)).ok());
}

TEST(BatchNorm, ConstantChannelWithoutEpsilonIsNotANumber) {
  Step step({4, 1}, {}, Layout::kContiguous);
  step.FillInputs([] { return 1.0; });
  ASSERT_TRUE(step.Train(ContextWith(1), {.epsilon = 0}).ok());
  EXPECT_EQ(step.saved_inv_std.Values()[0], std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(step.y.Values()[0]));
}

TEST(BatchNorm, RunningStatisticsMayBeWrittenInPlace) {
  const Sizes dims = {5, 3, 2};
  Step apart(dims, {}, Layout::kContiguous);
  Random random("batch norm in place");
  apart.FillInputs([&] { return random.Real(0, 1); });
  ASSERT_TRUE(apart.Train(ContextWith(1), {}).ok());

  const ConstTensorRef X = apart.x.Ref();
  const ConstTensorRef Scale = apart.scale.Ref();
  const ConstTensorRef B = apart.bias.Ref();
  const TensorRef Y = apart.y.Ref();
  const TensorRef Mean = apart.running_mean.Ref();
  const TensorRef Var = apart.running_var.Ref();
  const ConstTensorRef OldMean = Mean;
  const ConstTensorRef OldVar = Var;
  const Status status = BatchNormalization::RunCpu(
      ContextWith(1), {},
      {.X = &X, .scale = &Scale, .B = &B, .running_mean = &OldMean, .running_var = &OldVar},
      {.Y = &Y, .running_mean = &Mean, .running_var = &Var});
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(apart.running_mean.Values(), apart.new_mean.Values());
  EXPECT_EQ(apart.running_var.Values(), apart.new_var.Values());
}

TEST(BatchNormGrad, OutputsAreComputedOnlyIfAskedFor) {
  const Sizes dims = {3, 4, 5};
  for (int subset = 0; subset < 8; ++subset) {
    const bool with_dx = (subset & 1) != 0;
    const bool with_dscale = (subset & 2) != 0;
    const bool with_dbias = (subset & 4) != 0;
    Step step(dims, {DataType::kDouble, DataType::kDouble, DataType::kDouble}, Layout::kContiguous);
    Random random("batch norm outputs");
    step.FillInputs([&] { return random.Real(-1, 1); });
    step.saved_mean.Fill({0.5, 0, -1, 0.25});
    step.saved_inv_std.Fill({2, 1, 0.5, 3});
    ASSERT_TRUE(step.Backward(ContextWith(1), with_dx, with_dscale, with_dbias).ok());
    const NaiveGradient expected = step.ExpectedGradient();
    const auto check = [](bool wanted, const TestTensor& tensor, const Values& values,
                          std::string_view name) {
      if (wanted) {
        ExpectNear(tensor, values, 1e-13, name);
      } else {
        const Values untouched = tensor.Values();
        EXPECT_TRUE(std::all_of(untouched.begin(), untouched.end(), [](double value) {
          return std::isnan(value);
        })) << name;
      }
    };
    check(with_dx, step.dx, expected.dx, "dX");
    check(with_dscale, step.dscale, expected.dscale, "dScale");
    check(with_dbias, step.dbias, expected.dbias, "dBias");
  }
}

TEST(BatchNormGrad, BiasAloneReadsOnlyTheGradient) {
  Step step({2, 2, 3}, {}, Layout::kContiguous);
  step.dy.Fill({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const ConstTensorRef DY = step.dy.Ref();
  ConstTensorRef X = step.x.Ref();
  X.data = nullptr;
  ConstTensorRef PerChannel = step.scale.Ref();
  PerChannel.data = nullptr;
  const TensorRef DBias = step.dbias.Ref();
  ASSERT_TRUE(BatchNormalizationGrad::RunCpu(
                  ContextWith(1), {},
                  {.dY = &DY,
                   .X = &X,
                   .scale = &PerChannel,
                   .saved_mean = &PerChannel,
                   .saved_inv_std = &PerChannel},
                  {.dBias = &DBias})
                  .ok());
  EXPECT_EQ(step.dbias.Values(), (Values{1 + 2 + 3 + 7 + 8 + 9, 4 + 5 + 6 + 10 + 11 + 12}));
}

/// NaN is neither above nor below zero: forward and backward let it pass.
TEST(BatchNormRelu, NaNPasses) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  TestTensor x(DataType::kDouble, {4, 1}, Layout::kContiguous);
  x.Fill({nan, -2, 1, 3});
  TestTensor one(DataType::kDouble, {1}, Layout::kContiguous);
  one.Fill({1});
  TestTensor zero(DataType::kDouble, {1}, Layout::kContiguous);
  zero.Fill({0});
  TestTensor y(DataType::kDouble, {4, 1}, Layout::kContiguous);
  TestTensor dbias(DataType::kDouble, {1}, Layout::kContiguous);
  const ConstTensorRef X = x.Ref();
  const ConstTensorRef One = one.Ref();
  const ConstTensorRef Zero = zero.Ref();
  const TensorRef Y = y.Ref();
  const TensorRef DBias = dbias.Ref();
  ASSERT_TRUE(BatchNormalizationRelu::RunCpu(
                  ContextWith(1), {},
                  {.X = &X, .scale = &One, .B = &Zero, .running_mean = &Zero, .running_var = &One},
                  {.Y = &Y})
                  .ok());
  for (const double value : y.Values()) {
    EXPECT_TRUE(std::isnan(value));
  }
  TestTensor dy(DataType::kDouble, {4, 1}, Layout::kContiguous);
  dy.Fill({1, 2, 4, 8});
  const ConstTensorRef DY = dy.Ref();
  ASSERT_TRUE(BatchNormalizationReluGrad::RunCpu(
                  ContextWith(1), {},
                  {.dY = &DY,
                   .X = &X,
                   .scale = &One,
                   .B = &Zero,
                   .saved_mean = &Zero,
                   .saved_inv_std = &One},
                  {.dBias = &DBias})
                  .ok());
  EXPECT_EQ(dbias.Values(), (Values{1 + 4 + 8}));
}

TEST(BatchNormGrad, SumsAreRoundedOnce) {
  const auto dbias_of = [](DataType type, const Values& dy) {
    Step step({3, 1}, {type, type, type}, Layout::kContiguous);
    step.dy.Fill(dy);
    step.x.Fill({0, 0, 0});
    step.scale.Fill({1});
    step.saved_mean.Fill({0});
    step.saved_inv_std.Fill({1});
    EXPECT_TRUE(step.Backward(ContextWith(1)).ok());
    return step.dbias.Values();
  };
  EXPECT_EQ(dbias_of(DataType::kMLFloat16, {1, 0x1p-11, 0x1p-24}), (Values{1 + 0x1p-10}));
  EXPECT_EQ(dbias_of(DataType::kMLFloat16, {1, 0x1p-11, -0x1p-24}), (Values{1}));
  EXPECT_EQ(dbias_of(DataType::kBFloat16, {1, 0x1p-8, 0x1p-26}), (Values{1 + 0x1p-7}));
  EXPECT_EQ(dbias_of(DataType::kBFloat16, {-1, -0x1p-8, -0x1p-40}), (Values{-1 - 0x1p-7}));
}

TEST(BatchNormGrad, SumsAreNotRoundedOnTheWay) {
  for (const DataType T : kAllTypes) {
    Step step({4096, 2}, {T, T, T}, Layout::kContiguous);
    step.FillInputs([] { return 1.0; });
    step.saved_mean.Fill({0, 0.5});
    step.saved_inv_std.Fill({1, 1});
    ASSERT_TRUE(step.Backward(ContextWith(1)).ok());
    EXPECT_EQ(step.dbias.Values(), (Values{4096, 4096}));
    EXPECT_EQ(step.dscale.Values(), (Values{4096, 2048}));
  }
}

}  // namespace
}  // namespace gradsmith::batch_norm
