#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "batch_norm/cuda/held.h"
#include "batch_norm/cuda/own.h"
#include "batch_norm/kernels.h"
#include "gradsmith/context.h"
#include "gradsmith/tensor.h"
#include "reference/random.h"
#include "runtime/cuda/batch_norm_data.h"
#include "runtime/cuda/gpu_tensor.h"
#include "support/test_tensor.h"

/// Batch normalization on CUDA over the whole range of its types, by our own kernels and in every
/// mode, beside its definition in long double.
namespace gradsmith::batch_norm {
namespace {

using cuda::Block;
using Wide = long double;

/// What X holds, a number for each sample, and how large dY and scale are.
struct Filling {
  std::string name;
  std::function<double(Random& random)> draw;
  double epsilon = 1e-5;
  double gradient = 1;
  double scale = 1;
};

Filling Uniform(const std::string& name, double center, double radius, double epsilon = 1e-5) {
  return {name, [=](Random& random) { return center + (radius * random.Real(-1, 1)); }, epsilon};
}

Filling Constant(double value) {
  return {"constant " + std::to_string(value), [=](Random&) { return value; }};
}

/// The same beside gradients, or numbers of scale, that are as far from one.
Filling Beside(double gradient, double scale, Filling filling) {
  filling.name += ", dY of " + std::to_string(std::ilogb(gradient)) + " and scale of " +
                  std::to_string(std::ilogb(scale)) + " bits";
  filling.gradient = gradient;
  filling.scale = scale;
  return filling;
}

/// Numbers from the type's smallest to its largest, means that are large beside their deviation,
/// and constants.
std::vector<Filling> FillingsOf(DataType type) {
  switch (type) {
    case kH:
      return {
          Constant(100.1),
          Constant(60000),
          Uniform("1000, deviation 1", 1000, 1),
          Uniform("near the largest", 0, 60000),
          Uniform("small", 0, 1e-5),
          Uniform("small, no epsilon", 0, 1e-5, 0),
          Uniform("subnormal, no epsilon", 0, 1e-6, 0)};
    case kD:
      return {
          Constant(-2976111171509.78),
          Constant(0.1),
          Uniform("1e9, deviation 1", 1e9, 1),
          Uniform("1e200", 0, 1e200),
          Uniform("near the largest", 0, 1.5e308),
          Uniform("1e-180", 0, 1e-180),
          Uniform("1e-180, no epsilon", 0, 1e-180, 0),
          Beside(1e200, 1, Uniform("1e110", 0, 1e110)),
          Beside(1e307, 1, Uniform("1", 0, 1)),
          Beside(1e307, 1e-10, Uniform("1e-5", 0, 1e-5)),
          Beside(1e-200, 1, Uniform("1e-110, no epsilon", 0, 1e-110, 0)),
          Beside(1e-200, 1e-100, Uniform("1e110", 0, 1e110)),
          Beside(1, 1e200, Uniform("1e50", 0, 1e50)),
          Uniform("subnormal, no epsilon", 0, 1e-310, 0)};
    default:
      return {
          Constant(100.1),
          Constant(1e10),
          Constant(3.3e30),
          Constant(3.3e37),
          Uniform("1e6, deviation 1", 1e6, type == kF ? 1 : 1e5),
          Uniform("1e4, deviation 0.01", 1e4, type == kF ? 0.01 : 1e3),
          Uniform("1e13", 0, 1e13),
          Uniform("1e19", 0, 1e19),
          Uniform("1e30", 0, 1e30),
          Uniform("near the largest", 0, 3.3e38),
          Uniform("1e-18", 0, 1e-18),
          Uniform("1e-18, no epsilon", 0, 1e-18, 0),
          Uniform("1e-30, epsilon 1e-60", 1e-30, 1e-30, 1e-60),
          Beside(1e30, 1, Uniform("1e10", 0, 1e10)),
          Beside(1e38, 1, Uniform("1", 0, 1)),
          Beside(1e-30, 1, Uniform("1e-10, no epsilon", 0, 1e-10, 0)),
          Beside(1e-20, 1, Uniform("1e10", 0, 1e10)),
          Beside(1e-38, 1, Uniform("1", 0, 1)),
          Beside(1, 1e35, Uniform("1e-3", 0, 1e-3)),
          Beside(1, 1e-35, Uniform("1e11", 0, 1e11)),
          Uniform("subnormal, no epsilon", 0, 1e-39, 0)};
  }
}

/// A channel's numbers, by the definition.
struct Channel {
  /// The first sample and what the mean is beyond it: of large numbers a sum would not be exact.
  Wide base = 0;
  Wide rest = 0;
  Wide var = 0;
  Wide inv_std = 0;

  [[nodiscard]] Wide mean() const { return base + rest; }
  [[nodiscard]] Wide DeviationOf(Wide x) const { return (x - base) - rest; }
};

struct Problem {
  DataType type;
  Sizes dims;
  Layout layout;

  [[nodiscard]] std::size_t ChannelOf(std::size_t element) const {
    std::size_t inner = 1;
    for (std::size_t i = 2; i < dims.size(); ++i) {
      inner *= static_cast<std::size_t>(dims[i]);
    }
    return element / inner % static_cast<std::size_t>(dims[1]);
  }
};

/// All paths: rows, channels last, whole vectors, few samples, blocks to themselves.
std::vector<Problem> ProblemsOf(DataType type) {
  constexpr Layout kNchw = Layout::kContiguous;
  constexpr Layout kNhwc = Layout::kChannelsLast;
  return {{type, {6, 3, 7, 5}, kNchw},
          {type, {6, 3, 7, 5}, kNhwc},
          {type, {6, 3, 16, 16}, kNchw},
          {type, {6, 16, 8, 8}, kNhwc},
          {type, {9, 5}, kNchw},
          {type, {70, 24}, kNchw},
          {type, {6, 3, 9, 9}, Layout::kStrided}};
}

double Roundoff(DataType type) {
  switch (type) {
    case kD:
      return 0x1p-53;
    case kH:
      return 0x1p-11;
    case kB:
      return 0x1p-8;
    default:
      return 0x1p-24;
  }
}

double Least(DataType type) {
  switch (type) {
    case kD:
      return 0x1p-1074;
    case kH:
      return 0x1p-24;
    case kB:
      return 0x1p-133;
    default:
      return 0x1p-149;
  }
}

/// How many of those a result may be off: where there is nothing wider to sum in, some.
double LeastsOff(DataType type) {
  return type == kD ? 32 : 0.51;
}

double LargestOf(DataType type) {
  switch (type) {
    case kD:
      return std::numeric_limits<double>::max();
    case kH:
      return 65504;
    default:
      return 3.38e38;
  }
}

class BatchNormRange : public cuda::GpuTest, public testing::WithParamInterface<DataType> {
 protected:
  /// Statistics are of double for double, of float otherwise.
  static Types TypesOf(DataType type) {
    const DataType parameters = type == kD ? kD : kF;
    return {type, parameters, parameters};
  }

  static std::vector<Channel>
  ChannelsOf(const Problem& problem, const std::vector<double>& X, double epsilon) {
    std::vector<Channel> channels(static_cast<std::size_t>(problem.dims[1]));
    const auto m = static_cast<Wide>(X.size() / channels.size());
    for (std::size_t i = X.size(); i > 0; --i) {
      channels[problem.ChannelOf(i - 1)].base = X[i - 1];
    }
    for (std::size_t i = 0; i < X.size(); ++i) {
      Channel& channel = channels[problem.ChannelOf(i)];
      channel.rest += (X[i] - channel.base) / m;
    }
    for (std::size_t i = 0; i < X.size(); ++i) {
      Channel& channel = channels[problem.ChannelOf(i)];
      channel.var += channel.DeviationOf(X[i]) * channel.DeviationOf(X[i]) / m;
    }
    for (Channel& channel : channels) {
      channel.inv_std = 1 / std::sqrt(channel.var + static_cast<Wide>(epsilon));
    }
    return channels;
  }

  /// Each within some roundoffs of its type, relative to itself or to `size`, what it was summed
  /// from.
  static void ExpectNear(
      const std::vector<double>& found,
      const std::vector<Wide>& expected,
      const std::vector<Wide>& size,
      DataType stored,
      double roundoff,
      const std::string& what) {
    ASSERT_EQ(found.size(), expected.size());
    int shown = 0;
    for (std::size_t i = 0; i < found.size() && shown < 3; ++i) {
      if (std::abs(expected[i]) > LargestOf(stored)) {
        const bool is_right = std::isinf(found[i]) || std::abs(found[i]) >= LargestOf(stored);
        EXPECT_TRUE(is_right) << what << " " << i << " is " << found[i];
        shown += is_right ? 0 : 1;
        continue;
      }
      const Wide scale = std::max(std::abs(expected[i]), size[i]);
      const Wide allowed =
          (scale * (roundoff + Roundoff(stored))) + (LeastsOff(stored) * Least(stored));
      const Wide error = std::abs(found[i] - expected[i]);
      if (!(error <= allowed)) {
        ADD_FAILURE() << what << " " << i << " is " << found[i] << ", expected "
                      << static_cast<double>(expected[i]) << ", off by "
                      << static_cast<double>(error / scale) << " of its size";
        ++shown;
      }
    }
  }

  using Run = std::function<Status(
      const Attributes&,
      const BatchNormalization::Inputs&,
      const BatchNormalization::Outputs&)>;
  using RunGradient = std::function<
      Status(const BatchNormalizationReluGrad::Inputs&, const BatchNormalizationGrad::Outputs&)>;

  void CheckForward(
      const Problem& problem,
      const Filling& filling,
      Activation activation,
      const Run& run) {
    Random random(problem.dims.size() == 2 ? "range of rows" : "range");
    Data data(
        TypesOf(problem.type), problem.dims,
        {.X = problem.layout, .dY = problem.layout, .output = problem.layout}, random);
    FillAs(filling, random, &data);
    const ConstTensorRef X = data.X.GpuRef();
    const ConstTensorRef scale = data.scale.GpuRef();
    const ConstTensorRef B = data.B.GpuRef();
    const ConstTensorRef old_mean = data.old_mean.GpuRef();
    const ConstTensorRef old_var = data.old_var.GpuRef();
    const TensorRef Y = data.Y.GpuRef();
    const TensorRef new_mean = data.new_mean.GpuRef();
    const TensorRef new_var = data.new_var.GpuRef();
    const TensorRef saved_mean = data.saved_mean.GpuRef();
    const TensorRef saved_inv_std = data.saved_inv_std.GpuRef();
    const Status status =
        run({.epsilon = filling.epsilon, .momentum = 0.75},
            {.X = &X, .scale = &scale, .B = &B, .running_mean = &old_mean, .running_var = &old_var},
            {.Y = &Y,
             .running_mean = &new_mean,
             .running_var = &new_var,
             .saved_mean = &saved_mean,
             .saved_inv_std = &saved_inv_std});
    ASSERT_TRUE(status.ok()) << status.message();
    ExpectForward(problem, filling, activation, data);
  }

  static void FillAs(const Filling& filling, Random& random, Data* data) {
    data->X.Fill([&] { return filling.draw(random); });
    if (filling.gradient != 1) {
      data->dY.Fill([&] { return filling.gradient * random.Real(-1, 1); });
    }
    if (filling.scale != 1) {
      data->scale.Fill([&] { return filling.scale * random.Real(0.5, 1); });
    }
  }

  static void ExpectForward(
      const Problem& problem,
      const Filling& filling,
      Activation activation,
      const Data& data) {
    const std::vector<double> X = data.X.HostValues();
    const std::vector<Channel> channels = ChannelsOf(problem, X, filling.epsilon);
    const std::vector<double> scale = data.scale.HostValues();
    const std::vector<double> B = data.B.HostValues();
    const std::vector<double> old_mean = data.old_mean.HostValues();
    const std::vector<double> old_var = data.old_var.HostValues();
    std::vector<Wide> Y(X.size());
    std::vector<Wide> size(X.size());
    for (std::size_t i = 0; i < X.size(); ++i) {
      const std::size_t c = problem.ChannelOf(i);
      const Wide product = scale[c] * (channels[c].DeviationOf(X[i]) * channels[c].inv_std);
      Y[i] = product + B[c];
      // The mean is as exact as what lies around it is large.
      const Wide of_mean = std::abs(scale[c]) * std::sqrt(channels[c].var) * channels[c].inv_std;
      size[i] = std::abs(product) + std::abs(B[c]) + of_mean;
      if (activation == Activation::kRelu && Y[i] < 0) {
        Y[i] = 0;
      }
    }
    const auto m = static_cast<Wide>(X.size() / channels.size());
    std::vector<Wide> mean;
    std::vector<Wide> spread;
    std::vector<Wide> inv_std;
    std::vector<Wide> new_mean;
    std::vector<Wide> new_var;
    std::vector<Wide> of_new_mean;
    for (std::size_t c = 0; c < channels.size(); ++c) {
      mean.push_back(channels[c].mean());
      spread.push_back(std::sqrt(channels[c].var));
      inv_std.push_back(channels[c].inv_std);
      new_mean.push_back((0.75L * old_mean[c]) + (0.25L * channels[c].mean()));
      of_new_mean.push_back(std::abs(old_mean[c]) + spread.back());
      new_var.push_back((0.75L * old_var[c]) + (0.25L * channels[c].var * m / (m - 1)));
    }
    // Of the accumulator's: 64 for float, and for double, whose sums are in double.
    const double sums = 64 * Roundoff(problem.type == kD ? kD : kF);
    const DataType parameter = data.types.T2;
    ExpectNear(data.Y.GpuValues(), Y, size, problem.type, sums, "Y");
    ExpectNear(data.saved_mean.GpuValues(), mean, spread, parameter, sums, "saved_mean");
    ExpectNear(data.saved_inv_std.GpuValues(), inv_std, inv_std, parameter, sums, "saved_inv_std");
    ExpectNear(data.new_mean.GpuValues(), new_mean, of_new_mean, parameter, sums, "running_mean");
    ExpectNear(data.new_var.GpuValues(), new_var, new_var, parameter, sums, "running_var");
  }

  /// With the statistics that are stored, whatever they are.
  void CheckGradient(
      const Problem& problem,
      const Filling& filling,
      Activation activation,
      const RunGradient& run) {
    Random random("range of gradients");
    Data data(
        TypesOf(problem.type), problem.dims,
        {.X = problem.layout, .dY = problem.layout, .output = problem.layout}, random);
    FillAs(filling, random, &data);
    const std::vector<Channel> channels = ChannelsOf(problem, data.X.HostValues(), filling.epsilon);
    std::size_t c = 0;
    data.saved_mean.Fill([&] { return static_cast<double>(channels[c++].mean()); });
    c = 0;
    // So that the gradient is a number of its type.
    const Wide most = LargestOf(data.types.T2) / 16;
    data.saved_inv_std.Fill(
        [&] { return static_cast<double>(std::min(channels[c++].inv_std, most)); });
    // So far from zero that no rounding decides what ReLU passes on.
    c = 0;
    data.B.Fill([&] { return (c++ % 2 == 0 ? 40 : -40) * filling.scale; });
    const ConstTensorRef dY = data.dY.GpuRef();
    const ConstTensorRef X = data.X.GpuRef();
    const ConstTensorRef scale = data.scale.GpuRef();
    const ConstTensorRef B = data.B.GpuRef();
    const ConstTensorRef saved_mean = data.saved_mean.GpuRef();
    const ConstTensorRef saved_inv_std = data.saved_inv_std.GpuRef();
    const TensorRef dX = data.dX.GpuRef();
    const TensorRef dScale = data.dScale.GpuRef();
    const TensorRef dBias = data.dBias.GpuRef();
    const Status status =
        run({.dY = &dY,
             .X = &X,
             .scale = &scale,
             .B = activation == Activation::kNone ? nullptr : &B,
             .saved_mean = &saved_mean,
             .saved_inv_std = &saved_inv_std},
            {.dX = &dX, .dScale = &dScale, .dBias = &dBias});
    ASSERT_TRUE(status.ok()) << status.message();
    ExpectGradient(problem, activation, data);
  }

  static void ExpectGradient(const Problem& problem, Activation activation, const Data& data) {
    const std::vector<double> X = data.X.HostValues();
    const std::vector<double> dY = data.dY.HostValues();
    const std::vector<double> scale = data.scale.HostValues();
    const std::vector<double> B = data.B.HostValues();
    const std::vector<double> mean = data.saved_mean.HostValues();
    const std::vector<double> inv_std = data.saved_inv_std.HostValues();
    const std::size_t count = mean.size();
    const auto m = static_cast<Wide>(X.size() / count);
    std::vector<Wide> xhat(X.size());
    std::vector<Wide> passed(X.size());
    std::vector<Wide> dscale(count);
    std::vector<Wide> dbias(count);
    std::vector<Wide> of_dscale(count);
    std::vector<Wide> of_dbias(count);
    for (std::size_t i = 0; i < X.size(); ++i) {
      const std::size_t c = problem.ChannelOf(i);
      xhat[i] = (static_cast<Wide>(X[i]) - mean[c]) * inv_std[c];
      const bool is_off = activation == Activation::kRelu && (scale[c] * xhat[i]) + B[c] <= 0;
      passed[i] = is_off ? 0 : dY[i];
      dbias[c] += passed[i];
      dscale[c] += passed[i] * xhat[i];
      of_dbias[c] += std::abs(passed[i]);
      of_dscale[c] += std::abs(passed[i] * xhat[i]);
    }
    std::vector<Wide> dX(X.size());
    std::vector<Wide> size(X.size());
    for (std::size_t i = 0; i < X.size(); ++i) {
      const std::size_t c = problem.ChannelOf(i);
      const Wide factor = static_cast<Wide>(scale[c]) * inv_std[c];
      const Wide slope = xhat[i] * dscale[c] / m;
      dX[i] = factor * (passed[i] - (dbias[c] / m) - slope);
      size[i] = std::abs(factor) *
                (std::abs(passed[i]) + (of_dbias[c] / m) + (std::abs(xhat[i]) * of_dscale[c] / m));
    }
    const double sums = 64 * Roundoff(problem.type == kD ? kD : kF);
    const DataType parameter = data.types.T1;
    ExpectNear(data.dX.GpuValues(), dX, size, problem.type, sums, "dX");
    ExpectNear(data.dScale.GpuValues(), dscale, of_dscale, parameter, sums, "dScale");
    ExpectNear(data.dBias.GpuValues(), dbias, of_dbias, parameter, sums, "dBias");
  }

  template <typename Check>
  static void ForEachProblem(const Check& check) {
    for (const Problem& problem : ProblemsOf(GetParam())) {
      for (const Filling& filling : FillingsOf(GetParam())) {
        for (const Activation activation : {Activation::kNone, Activation::kRelu}) {
          SCOPED_TRACE(
              std::string(ToString(problem.type)) + " " + support::ToString(problem.dims) +
              " layout " + std::to_string(static_cast<int>(problem.layout)) + ", " + filling.name +
              (activation == Activation::kRelu ? ", relu" : ""));
          check(problem, filling, activation);
        }
      }
    }
  }

  static Context ContextOf(SearchMode mode) {
    ContextOptions options;
    options.device = {Backend::kCuda, 0};
    options.search_mode = mode;
    options.first_choice_seconds = 0;
    options.cache = "off";
    return Context(options);
  }
};

TEST_P(BatchNormRange, OwnForwardIsRight) {
  ForEachProblem([&](const Problem& problem, const Filling& filling, Activation activation) {
    CheckForward(
        problem, filling, activation,
        [&](const Attributes& attributes, const auto& inputs, const auto& outputs) {
          const Block workspace(ForwardWorkspace(device(), *inputs.X));
          workspace.Fill(0xFF);
          return Forward(
              device(), kStream, activation, attributes, inputs, outputs, workspace.data());
        });
  });
}

TEST_P(BatchNormRange, OwnGradientIsRight) {
  ForEachProblem([&](const Problem& problem, const Filling& filling, Activation activation) {
    CheckGradient(problem, filling, activation, [&](const auto& inputs, const auto& outputs) {
      const Block workspace(BackwardWorkspace(device(), *inputs.X));
      workspace.Fill(0xFF);
      return Backward(device(), kStream, inputs, outputs, workspace.data());
    });
  });
}

TEST_P(BatchNormRange, HeldGradientIsRight) {
  ForEachProblem([&](const Problem& problem, const Filling& filling, Activation activation) {
    if (problem.layout == Layout::kStrided) {
      return;  // samples along three dims
    }
    CheckGradient(problem, filling, activation, [&](const auto& inputs, const auto& outputs) {
      return HeldBackward(device(), kStream, inputs, outputs);
    });
  });
}

/// Whichever kernels are chosen, of ours and cuDNN's.
TEST_P(BatchNormRange, EveryModeIsRight) {
  if (const Status status = CheckDevice({Backend::kCuda, 0}); !status.ok()) {
    GTEST_SKIP() << status.message();
  }
  for (const SearchMode mode :
       {SearchMode::kDefault, SearchMode::kHeuristic, SearchMode::kBenchmark}) {
    const Context context = ContextOf(mode);
    SCOPED_TRACE(ToString(mode));
    for (const Problem& problem :
         {Problem{GetParam(), {6, 8, 8, 8}, Layout::kContiguous},
          Problem{GetParam(), {6, 8, 8, 8}, Layout::kChannelsLast}}) {
      for (const Filling& filling : FillingsOf(GetParam())) {
        SCOPED_TRACE(filling.name);
        CheckForward(
            problem, filling, Activation::kNone,
            [&](const Attributes& attributes, const auto& inputs, const auto& outputs) {
              return RunOp(context, Activation::kNone, attributes, inputs, outputs);
            });
        CheckGradient(
            problem, filling, Activation::kNone, [&](const auto& inputs, const auto& outputs) {
              return RunOp(context, inputs, outputs);
            });
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Types,
    BatchNormRange,
    testing::Values(kF, kD, kH, kB),
    [](const auto& info) { return std::string(ToString(info.param)); });

}  // namespace
}  // namespace gradsmith::batch_norm
