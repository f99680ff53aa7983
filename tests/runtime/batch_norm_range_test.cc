#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "batch_norm/kernels.h"
#include "gradsmith/context.h"
#include "gradsmith/tensor.h"
#include "reference/batch_norm.h"
#include "reference/random.h"
#include "support/elements.h"
#include "support/test_tensor.h"

/// Batch normalization over each type's whole range, against the oracle in long double.
namespace gradsmith::batch_norm {
namespace {

using reference::Random;
using support::Layout;
using support::TestTensor;
using Values = std::vector<double>;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kMax = std::numeric_limits<double>::max();
constexpr DataType kAllTypes[] = {
    DataType::kFloat, DataType::kDouble, DataType::kMLFloat16, DataType::kBFloat16};

/// The tensors of a step and of its gradient, of one type, by their names.
class Step {
 public:
  Step(DataType type, const reference::Shape& dims, Layout layout, bool relu)
      : dims_(dims), relu_(relu) {
    for (const char* name : {"X", "dY", "Y", "dX"}) {
      tensors_.emplace(name, TestTensor(type, dims, layout));
    }
    for (const char* name :
         {"scale", "B", "running_mean", "running_var", "new_mean", "new_var", "saved_mean",
          "saved_inv_std", "dScale", "dBias"}) {
      tensors_.emplace(name, TestTensor(type, {dims[1]}, Layout::kContiguous));
    }
    Fill("scale", [] { return 1.0; });
    Fill("B", [] { return 0.25; });
    Fill("running_mean", [] { return 0.0; });
    Fill("running_var", [] { return 1.0; });
  }

  template <typename Draw>
  void Fill(const std::string& name, const Draw& draw) {
    TestTensor& tensor = tensors_.at(name);
    Values values(reference::Count(tensor.dims()));
    std::generate(values.begin(), values.end(), draw);
    tensor.Fill(values);
  }
  void Set(const std::string& name, const Values& values) { tensors_.at(name).Fill(values); }
  [[nodiscard]] Values Get(const std::string& name) const { return tensors_.at(name).Values(); }

  /// Runs the forward and then, from what it saved, the gradient.
  void Run(const Attributes& attributes, int threads = 1) {
    ContextOptions options;
    options.threads = threads;
    const Context context(options);
    const Status forward = Forward(context, attributes);
    ASSERT_TRUE(forward.ok()) << forward.message();
    const Status backward = Backward(context);
    ASSERT_TRUE(backward.ok()) << backward.message();
  }

  /// Compares every output with the oracle's.
  void ExpectAsTheOracle(const Attributes& attributes) const {
    const reference::Attributes named{
        {"epsilon", attributes.epsilon}, {"momentum", attributes.momentum}};
    const auto& forward = relu_ ? reference::batch_norm::BatchNormalizationRelu()
                                : reference::batch_norm::BatchNormalization();
    const auto& gradient = relu_ ? reference::batch_norm::BatchNormalizationReluGrad()
                                 : reference::batch_norm::BatchNormalizationGrad();
    const reference::ExpectedOutputs outputs =
        forward.Run(Inputs({"X", "scale", "B", "running_mean", "running_var"}), named);
    for (const auto& [ours, theirs] : std::map<std::string, std::string>{
             {"Y", "Y"},
             {"new_mean", "running_mean"},
             {"new_var", "running_var"},
             {"saved_mean", "saved_mean"},
             {"saved_inv_std", "saved_inv_std"}}) {
      ExpectNear(ours, outputs.at(theirs));
    }
    const reference::ExpectedOutputs gradients =
        gradient.Run(Inputs({"dY", "X", "scale", "B", "saved_mean", "saved_inv_std"}), named);
    for (const char* name : {"dX", "dScale", "dBias"}) {
      ExpectNear(name, gradients.find(name)->second);
    }
  }

 private:
  [[nodiscard]] reference::Tensors Inputs(const std::vector<std::string>& names) const {
    reference::Tensors inputs;
    for (const std::string& name : names) {
      if (name != "B" || relu_ || names[0] == "X") {
        inputs[name] = {tensors_.at(name).dims(), Get(name)};
      }
    }
    return inputs;
  }

  /// Within a rounding of the type and what the sums in double may be off by.
  void ExpectNear(const std::string& name, const reference::Expected& expected) const {
    const TestTensor& tensor = tensors_.at(name);
    const Values actual = tensor.Values();
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const double exact = expected.value.values[i];
      const double wanted = support::Round(tensor.type(), exact);
      const double allowed = support::UnitRoundoff(tensor.type()) * std::abs(exact) +
                             0x1p-52 * expected.error[i] + support::SmallestPositive(tensor.type());
      const bool same = actual[i] == wanted || (std::isnan(actual[i]) && std::isnan(wanted));
      ASSERT_TRUE(same || (std::isfinite(wanted) && std::abs(actual[i] - exact) <= allowed))
          << name << "[" << i << "] is " << actual[i] << "; expected " << exact << " within "
          << allowed;
    }
    EXPECT_TRUE(tensor.SurroundingsIntact()) << name;
  }

  Status Forward(const Context& context, const Attributes& attributes) {
    const ConstTensorRef X = tensors_.at("X").Ref();
    const ConstTensorRef Scale = tensors_.at("scale").Ref();
    const ConstTensorRef B = tensors_.at("B").Ref();
    const ConstTensorRef OldMean = tensors_.at("running_mean").Ref();
    const ConstTensorRef OldVar = tensors_.at("running_var").Ref();
    const TensorRef Y = tensors_.at("Y").Ref();
    const TensorRef NewMean = tensors_.at("new_mean").Ref();
    const TensorRef NewVar = tensors_.at("new_var").Ref();
    const TensorRef Mean = tensors_.at("saved_mean").Ref();
    const TensorRef InvStd = tensors_.at("saved_inv_std").Ref();
    const BatchNormalization::Inputs inputs{&X, &Scale, &B, &OldMean, &OldVar};
    const BatchNormalization::Outputs outputs{&Y, &NewMean, &NewVar, &Mean, &InvStd};
    return relu_ ? BatchNormalizationRelu::RunCpu(context, attributes, inputs, outputs)
                 : BatchNormalization::RunCpu(context, attributes, inputs, outputs);
  }

  Status Backward(const Context& context) {
    const ConstTensorRef DY = tensors_.at("dY").Ref();
    const ConstTensorRef X = tensors_.at("X").Ref();
    const ConstTensorRef Scale = tensors_.at("scale").Ref();
    const ConstTensorRef B = tensors_.at("B").Ref();
    const ConstTensorRef Mean = tensors_.at("saved_mean").Ref();
    const ConstTensorRef InvStd = tensors_.at("saved_inv_std").Ref();
    const TensorRef DX = tensors_.at("dX").Ref();
    const TensorRef DScale = tensors_.at("dScale").Ref();
    const TensorRef DBias = tensors_.at("dBias").Ref();
    const BatchNormalizationGrad::Outputs outputs{&DX, &DScale, &DBias};
    return relu_ ? BatchNormalizationReluGrad::RunCpu(
                       context, {}, {&DY, &X, &Scale, &B, &Mean, &InvStd}, outputs)
                 : BatchNormalizationGrad::RunCpu(
                       context, {}, {&DY, &X, &Scale, &Mean, &InvStd}, outputs);
  }

  reference::Shape dims_;
  bool relu_;
  std::map<std::string, TestTensor> tensors_;
};

/// A distribution of X, and of dY.
struct Range {
  double mean;
  double deviation;
  double dy = 1;
  double scale = 1;
};

/// What the type can hold of these, with epsilons from none to large, in each layout.
void ExpectRanges(DataType type, const std::vector<Range>& ranges) {
  Random random("batch norm ranges");
  for (const Range& range : ranges) {
    for (const double epsilon : {1e-5, 0.0, 1e-200, 5e-324, 1e10}) {
      for (const bool relu : {false, true}) {
        for (const Layout layout : {Layout::kContiguous, Layout::kChannelsLast}) {
          SCOPED_TRACE(
              std::string(ToString(type)) + " mean " + std::to_string(range.mean) + " deviation " +
              std::to_string(std::log10(range.deviation)) + " (log10) epsilon " +
              std::to_string(epsilon) + " relu " + std::to_string(relu));
          Step step(type, {6, 3, 5, 2}, layout, relu);
          step.Fill("X", [&] { return range.mean + (range.deviation * random.Real(-1, 1)); });
          step.Fill("dY", [&] { return range.dy * random.Real(0.5, 1); });
          step.Fill("scale", [&] { return range.scale; });
          const Attributes attributes{.epsilon = epsilon, .momentum = 0.75};
          step.Run(attributes);
          step.ExpectAsTheOracle(attributes);
          if (testing::Test::HasFailure()) {
            return;
          }
        }
      }
    }
  }
}

TEST(BatchNormRange, Double) {
  ExpectRanges(
      DataType::kDouble, {{0, 1},
                          {0, 1e154},
                          {0, 1e200},
                          {1e200, 1e190},
                          {0, kMax},
                          {kMax / 2, kMax / 2},
                          {0, 1e-100},
                          {0, 1e-160},
                          {1e-160, 1e-165},
                          {0, 1e-200},
                          {0, 1e-310},
                          {0, 5e-323},
                          {1e15, 1},
                          {1e300, 1e290},
                          {0, 1, 1e300},
                          {0, 1, 1e-300},
                          {0, 1e200, 1e-200},
                          {0, 1e200, 1e200},
                          {0, 1e-200, 1e-100},
                          {0, 1, 1, 1e300},
                          {0, 1, 1, 1e-300},
                          {0, 1e-150, 1, 1e-290}});
}

TEST(BatchNormRange, Float) {
  ExpectRanges(
      DataType::kFloat, {{0, 1e30}, {0, 3.4e38}, {1e38, 1e37}, {0, 1e-18}, {0, 1e-40}, {1e6, 1}});
}

TEST(BatchNormRange, Half) {
  ExpectRanges(DataType::kMLFloat16, {{0, 6e4}, {5e4, 1e4}, {0, 6e-5}, {0, 6e-7}, {1000, 1}});
}

TEST(BatchNormRange, BFloat16) {
  ExpectRanges(DataType::kBFloat16, {{0, 3.3e38}, {1e38, 1e37}, {0, 1e-18}, {0, 1e-39}, {100, 1}});
}

/// Y is the bias and, where dY is constant too, dX is zero: exactly, whatever the value and however
/// many there are.
TEST(BatchNormRange, ConstantChannels) {
  const Values constants{0.1,     -2976111171509.78,
                         100.1,   3.3e30,
                         1.0 / 3, 1e10,
                         60000.7, 5e-324,
                         1e-310,  1e200,
                         kMax,    -kMax,
                         0};
  for (const DataType type : kAllTypes) {
    for (const std::int64_t count : {1, 2, 7, 49, 2890, 70001}) {
      for (const bool relu : {false, true}) {
        const auto channels = static_cast<std::int64_t>(constants.size());
        Step step(type, {count, channels}, Layout::kContiguous, relu);
        Values x;
        Values dy;
        for (std::int64_t i = 0; i < count * channels; ++i) {
          const double value = constants[i % channels];
          x.push_back(std::isinf(support::Round(type, value)) ? 3 : value);
          dy.push_back(0.1 + static_cast<double>(i % channels));
        }
        step.Set("X", x);
        step.Set("dY", dy);
        step.Run({});
        const Values bias(x.size(), 0.25);
        EXPECT_EQ(step.Get("Y"), bias) << ToString(type) << " " << count;
        EXPECT_EQ(step.Get("dX"), Values(x.size())) << ToString(type) << " " << count;
        EXPECT_EQ(
            step.Get("saved_mean"), support::RoundAll(type, {x.begin(), x.begin() + channels}));
        if (testing::Test::HasFailure()) {
          return;
        }
      }
    }
  }
}

/// The mean of a channel of many equal numbers is that number: its sum is rounded many times.
TEST(BatchNormRange, ConstantChannelOfMillions) {
  constexpr std::int64_t kCount = 3'000'001;
  const double value = -2976111171509.78;
  Step step(DataType::kDouble, {kCount, 1}, Layout::kContiguous, false);
  step.Fill("X", [&] { return value; });
  step.Fill("dY", [] { return 0.7; });
  step.Run({.epsilon = 1e-300}, 2);
  EXPECT_EQ(step.Get("saved_mean")[0], value);
  EXPECT_EQ(step.Get("Y"), Values(kCount, 0.25));
  EXPECT_EQ(step.Get("dX"), Values(kCount));
}

TEST(BatchNormRange, WhatIsNotFiniteStaysInItsChannel) {
  Random random("not finite");
  for (const DataType type : kAllTypes) {
    for (const double planted : {kInf, -kInf, kNaN}) {
      for (const bool relu : {false, true}) {
        Step step(type, {5, 3, 4}, Layout::kContiguous, relu);
        step.Fill("X", [&] { return random.Real(-1, 1); });
        step.Fill("dY", [&] { return random.Real(0.5, 1); });
        Values x = step.Get("X");
        x[17] = planted;
        step.Set("X", x);
        Values dy = step.Get("dY");
        dy[33] = planted;
        step.Set("dY", dy);
        step.Run({});
        step.ExpectAsTheOracle({});
        for (std::size_t i = 0; i < 4; ++i) {
          EXPECT_TRUE(std::isfinite(step.Get("Y")[i]));
          EXPECT_TRUE(std::isfinite(step.Get("dX")[i]));
        }
      }
    }
  }
}

TEST(BatchNormRange, BitsDoNotDependOnThreads) {
  Random random("threads");
  const auto run = [&](int threads) {
    Random draws("draws");
    Step step(DataType::kDouble, {64, 9, 50}, Layout::kContiguous, true);
    Values x(step.Get("X").size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = std::pow(10, static_cast<int>(i / 50 % 9) * 70 - 290) * draws.Real(-1, 1);
    }
    step.Set("X", x);
    step.Fill("dY", [&] { return draws.Real(-1, 1); });
    step.Run({.epsilon = 1e-300}, threads);
    std::vector<Values> outputs;
    for (const char* name :
         {"Y", "saved_mean", "saved_inv_std", "new_var", "dX", "dScale", "dBias"}) {
      outputs.push_back(step.Get(name));
    }
    return outputs;
  };
  const auto one = run(1);
  EXPECT_EQ(run(2), one);
  EXPECT_EQ(run(5), one);
}

TEST(BatchNormRange, SumsOfGradientsThatOverflowOnTheWay) {
  Step step(DataType::kDouble, {4, 1}, Layout::kContiguous, false);
  step.Set("X", {1, 2, 3, 4});
  step.Set("dY", {kMax, kMax, -kMax, -kMax / 2});
  step.Run({});
  EXPECT_EQ(step.Get("dBias"), (Values{kMax / 2}));
  step.ExpectAsTheOracle({});
}

/// Where y over- or underflows in double on the way to the gate, dBias is of what is passed, as
/// dScale and dX are.
TEST(BatchNormRange, DBiasOfReluIsOfWhatIsPassed) {
  struct Case {
    double scale;
    Values x;
  };
  for (const Case& each :
       {Case{5e-324, {-1, -0.4, 0.2, 0.3, 0.4, 1}}, Case{-5e-324, {-1, -0.4, 0.2, 0.3, 0.4, 1}},
        Case{0, {kMax, -kMax, -kMax, -kMax, -kMax, kMax}}}) {
    for (const Values& dy : {Values{1, 1, 1, 1, 1, 1}, Values{1, 2, 4, 8, 16, 32}}) {
      SCOPED_TRACE(
          "scale " + std::to_string(each.scale * 1e300) + "e-300, dY " + std::to_string(dy[5]));
      Step step(DataType::kDouble, {6, 1}, Layout::kContiguous, true);
      step.Set("X", each.x);
      step.Set("dY", dy);
      step.Set("scale", {each.scale});
      step.Set("B", {0});
      step.Run({});
      step.ExpectAsTheOracle({});
    }
  }
}

/// With channels last as well, where each of a hundred channels lies all over the tensor.
TEST(BatchNormRange, ConstantGradientsOfManyChannels) {
  Random random("constant gradients");
  for (const bool relu : {false, true}) {
    for (const Layout layout : {Layout::kContiguous, Layout::kChannelsLast}) {
      for (const int threads : {1, 3}) {
        Step step(DataType::kFloat, {7, 100, 11, 9}, layout, relu);
        // One value of X, so that all or nothing of dY is passed.
        step.Fill("X", [] { return 2.5; });
        step.Fill("dY", [] { return 0.1; });
        step.Run({}, threads);
        EXPECT_EQ(step.Get("dX"), Values(7 * 100 * 11 * 9)) << relu << threads;
        Values dy = step.Get("dY");
        dy.back() = 0.2;  // nearly constant is not constant
        step.Set("dY", dy);
        step.Fill("X", [&] { return random.Real(-1, 1); });
        step.Run({}, threads);
        step.ExpectAsTheOracle({});
      }
    }
  }
}

}  // namespace
}  // namespace gradsmith::batch_norm
