#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "gradsmith/cache.h"
#include "gradsmith/context.h"
#include "reference/random.h"
#include "runtime/cuda/op_call.h"
#include "runtime/cuda/op_problems.h"

/// How exact large convolutions are whose sums have many terms, and what is told of it.
namespace gradsmith::cuda {
namespace {

using reference::Random;

/// A 3x3 convolution of images with a pad of one, whose gradients can be computed one by one.
struct Layer {
  std::int64_t batch;
  std::int64_t x_channels;
  std::int64_t y_channels;
  std::int64_t size;

  [[nodiscard]] ConvShape Shape() const {
    return {
        .name = "accuracy",
        .x = {batch, x_channels, size, size},
        .w = {y_channels, x_channels, 3, 3},
        .pads = {1, 1, 1, 1}};
  }
  [[nodiscard]] std::size_t AtX(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w)
      const {
    return static_cast<std::size_t>((((n * x_channels + c) * size + h) * size) + w);
  }
  [[nodiscard]] std::size_t AtY(std::int64_t n, std::int64_t m, std::int64_t h, std::int64_t w)
      const {
    return static_cast<std::size_t>((((n * y_channels + m) * size + h) * size) + w);
  }
  [[nodiscard]] std::size_t AtW(std::int64_t m, std::int64_t c, std::int64_t h, std::int64_t w)
      const {
    return static_cast<std::size_t>((((m * x_channels + c) * 3 + h) * 3) + w);
  }
  [[nodiscard]] bool IsInside(std::int64_t h, std::int64_t w) const {
    return h >= 0 && h < size && w >= 0 && w < size;
  }
};

/// Inputs and outputs of a gradient in the order of their indices.
struct Values {
  std::vector<double> dY;
  std::vector<double> X;
  std::vector<double> W;
  std::vector<double> dX;
  std::vector<double> dW;
};

/// Adds up how far some elements are off.
struct Sampled {
  double error = 0;
  double norm = 0;

  void Add(double found, double expected) {
    error += (found - expected) * (found - expected);
    norm += expected * expected;
  }
  [[nodiscard]] double relative() const { return std::sqrt(error / norm); }
};

constexpr int kSamples = 200;

double ErrorOfDw(const Layer& layer, const Values& values, Random& random) {
  Sampled sampled;
  for (int sample = 0; sample < kSamples; ++sample) {
    const std::int64_t m = random.Integer(0, layer.y_channels - 1);
    const std::int64_t c = random.Integer(0, layer.x_channels - 1);
    const std::int64_t kh = random.Integer(0, 2);
    const std::int64_t kw = random.Integer(0, 2);
    double sum = 0;
    for (std::int64_t n = 0; n < layer.batch; ++n) {
      for (std::int64_t h = 0; h < layer.size; ++h) {
        for (std::int64_t w = 0; w < layer.size; ++w) {
          if (layer.IsInside(h + kh - 1, w + kw - 1)) {
            sum += values.dY[layer.AtY(n, m, h, w)] *
                   values.X[layer.AtX(n, c, h + kh - 1, w + kw - 1)];
          }
        }
      }
    }
    sampled.Add(values.dW[layer.AtW(m, c, kh, kw)], sum);
  }
  return sampled.relative();
}

double ErrorOfDx(const Layer& layer, const Values& values, Random& random) {
  Sampled sampled;
  for (int sample = 0; sample < kSamples; ++sample) {
    const std::int64_t n = random.Integer(0, layer.batch - 1);
    const std::int64_t c = random.Integer(0, layer.x_channels - 1);
    const std::int64_t h = random.Integer(0, layer.size - 1);
    const std::int64_t w = random.Integer(0, layer.size - 1);
    double sum = 0;
    for (std::int64_t m = 0; m < layer.y_channels; ++m) {
      for (std::int64_t kh = 0; kh < 3; ++kh) {
        for (std::int64_t kw = 0; kw < 3; ++kw) {
          if (layer.IsInside(h + 1 - kh, w + 1 - kw)) {
            sum += values.dY[layer.AtY(n, m, h + 1 - kh, w + 1 - kw)] *
                   values.W[layer.AtW(m, c, kh, kw)];
          }
        }
      }
    }
    sampled.Add(values.dX[layer.AtX(n, c, h, w)], sum);
  }
  return sampled.relative();
}

class CudaAccuracy : public CudaTest {
 protected:
  static Status Finish(const OpCall& call, const Context& context) {
    const Status status = call.Run(context);
    return status.ok() ? Synchronize(context) : status;
  }
};

/// These are layers for which cuDNN's quickest kernels are off by 4e-6 to 3e-5.
TEST_F(CudaAccuracy, StrictFloatKeepsItsPromiseInEveryMode) {
  Random random("cuda accuracy");
  for (const Layer& layer :
       {Layer{1, 128, 128, 512}, Layer{4, 320, 4, 128}, Layer{32, 512, 512, 28}}) {
    const OpCall call = MakeConvGrad(layer.Shape(), DataType::kFloat, Layout::kContiguous, random);
    for (const SearchMode mode : {SearchMode::kHeuristic, SearchMode::kBenchmark}) {
      SCOPED_TRACE(support::ToString(layer.Shape().x) + ", " + std::string(ToString(mode)));
      const Context context(OnGpu(mode, 3));
      call.ResetOutputs();
      const Status status = Finish(call, context);
      ASSERT_TRUE(status.ok()) << status.message();
      const Values values = {
          .dY = call.inputs[0]->HostValues(),
          .X = call.inputs[1]->HostValues(),
          .W = call.inputs[2]->HostValues(),
          .dX = call.outputs[0]->GpuValues(),
          .dW = call.outputs[1]->GpuValues()};
      const double dw = ErrorOfDw(layer, values, random);
      const double dx = ErrorOfDx(layer, values, random);
      std::cout << "[ note     ] dX is off by " << dx << ", dW by " << dw << RecentChoices(3)
                << "\n";
      EXPECT_LE(dx, 1e-6) << RecentChoices();
      EXPECT_LE(dw, 1e-6) << RecentChoices();
    }
  }
}

/// The error of a choice is kept beside its time, and what was chosen under another policy is
/// another choice.
TEST_F(CudaAccuracy, ChoicesTellTheirErrors) {
  Random random("cuda accuracy of choices");
  const OpCall call = MakeConvGrad(Conv3x3(), DataType::kFloat, Layout::kChannelsLast, random);
  std::size_t chosen = 0;
  for (const bool allow_reduced_accuracy : {false, true}) {
    ContextOptions options = OnGpu(SearchMode::kBenchmark, 0.1);
    options.allow_reduced_accuracy = allow_reduced_accuracy;
    const Status status = Finish(call, Context(options));
    ASSERT_TRUE(status.ok()) << status.message();
    const std::vector<CachedChoice> choices = CachedChoices();
    EXPECT_GT(choices.size(), chosen);
    chosen = choices.size();
    for (const CachedChoice& choice : choices) {
      EXPECT_GT(choice.error, 1e-9) << choice.kernel;
      EXPECT_LT(choice.error, allow_reduced_accuracy ? 1e-5 : 1e-6) << choice.kernel;
    }
  }
}

/// What a search tells while it goes on has the error of the best.
TEST_F(CudaAccuracy, SearchesReportErrors) {
  Random random("cuda accuracy of searches");
  double largest = 0;
  ContextOptions options = OnGpu(SearchMode::kBenchmark, 0.1);
  options.on_search_progress = [&](const SearchProgress& progress) {
    largest = std::max(largest, progress.error);
  };
  const OpCall call = MakeConvGrad(Conv3x3(), DataType::kFloat, Layout::kContiguous, random);
  ASSERT_TRUE(Finish(call, Context(options)).ok());
  EXPECT_GT(largest, 1e-9);
  EXPECT_LE(largest, 1e-6);
}

}  // namespace
}  // namespace gradsmith::cuda
