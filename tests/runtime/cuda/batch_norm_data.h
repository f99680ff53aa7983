#ifndef GRADSMITH_TESTS_RUNTIME_CUDA_BATCH_NORM_DATA_H_
#define GRADSMITH_TESTS_RUNTIME_CUDA_BATCH_NORM_DATA_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "batch_norm/activation.h"
#include "batch_norm/kernels.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"
#include "reference/random.h"
#include "runtime/cuda/gpu_tensor.h"
#include "support/elements.h"
#include "support/test_tensor.h"

/// What tests of batch normalization on CUDA share: data on the host and on the GPU.
namespace gradsmith::batch_norm {

using cuda::GpuTensor;
using cuda::Sizes;
using reference::Random;
using support::Layout;

/// The types of an op: of its large tensors, of scale and bias, of statistics.
struct Types {
  DataType T = DataType::kFloat;
  DataType T1 = DataType::kFloat;
  DataType T2 = DataType::kFloat;
};

inline constexpr DataType kF = DataType::kFloat;
inline constexpr DataType kD = DataType::kDouble;
inline constexpr DataType kH = DataType::kMLFloat16;
inline constexpr DataType kB = DataType::kBFloat16;

/// Those of ops.yaml, and two that are not.
inline constexpr Types kRows[] = {{kF, kF, kF}, {kD, kD, kD}, {kH, kH, kH}, {kH, kH, kF},
                                  {kH, kF, kF}, {kB, kB, kB}, {kB, kB, kF}, {kB, kF, kF},
                                  {kF, kD, kH}, {kD, kB, kF}};

/// How the tensors of a call lie.
struct Layouts {
  Layout X = Layout::kContiguous;
  Layout dY = Layout::kContiguous;
  Layout output = Layout::kContiguous;
  /// Elements that X is off its boundary.
  std::size_t misaligned = 0;
  /// Parameters lie without gaps between them, and aligned.
  bool dense_parameters = false;
};

/// The strides of the large tensors.
struct LargeStrides {
  LargeStrides(Sizes X, Sizes dY, Sizes output)
      : X(std::move(X)), dY(std::move(dY)), output(std::move(output)) {}
  LargeStrides(const Sizes& dims, const Layouts& layouts)
      : X(support::StridesFor(layouts.X, dims)),
        dY(support::StridesFor(layouts.dY, dims)),
        output(support::StridesFor(layouts.output, dims)) {}

  Sizes X;
  Sizes dY;
  Sizes output;
};

/// Both calls of the op on one set of data: on the host, and on the GPU.
struct Data {
  Data(const Types& types, const Sizes& dims, const Layouts& layouts, Random& random)
      : Data(
            types,
            dims,
            LargeStrides(dims, layouts),
            layouts.misaligned,
            random,
            layouts.dense_parameters) {}
  Data(
      const Types& types,
      const Sizes& dims,
      const LargeStrides& strides,
      std::size_t misaligned,
      Random& random,
      bool dense_parameters = false)
      : types(types),
        X(types.T, dims, strides.X, misaligned),
        dY(types.T, dims, strides.dY),
        scale(Parameter(types.T1, dims, dense_parameters)),
        B(Parameter(types.T1, dims, dense_parameters)),
        old_mean(Parameter(types.T2, dims, dense_parameters)),
        old_var(Parameter(types.T2, dims, dense_parameters)),
        saved_mean(Parameter(types.T2, dims, dense_parameters)),
        saved_inv_std(Parameter(types.T2, dims, dense_parameters)),
        Y(types.T, dims, strides.output, misaligned),
        new_mean(Parameter(types.T2, dims, dense_parameters)),
        new_var(Parameter(types.T2, dims, dense_parameters)),
        dX(types.T, dims, strides.output),
        dScale(Parameter(types.T1, dims, dense_parameters)),
        dBias(Parameter(types.T1, dims, dense_parameters)) {
    FillX(0, random);
    dY.FillRandom(random);
    for (GpuTensor* tensor : {&scale, &B, &old_mean, &old_var, &saved_inv_std}) {
      tensor->FillRandom(random, 0.5, 2);
    }
    saved_mean.FillRandom(random);
  }

  static GpuTensor Parameter(DataType type, const Sizes& dims, bool dense) {
    return dense ? GpuTensor(type, {dims[1]}, Sizes{1}) : GpuTensor(type, {dims[1]}, {3}, 1);
  }

  void FillX(double mean, Random& random) { X.FillRandom(random, mean - 1.5, mean + 1.5); }

  /// Rounds what ReLU's input is made of to multiples of 1/8: that is exact then, and whether it is
  /// positive does not depend on who computes it.
  void Coarsen() {
    for (GpuTensor* tensor : {&X, &scale, &B, &saved_mean, &saved_inv_std}) {
      const std::vector<double> values = tensor->HostValues();
      std::size_t next = 0;
      tensor->Fill([&] { return std::round(values[next++] * 8) / 8; });
    }
  }

  Types types;
  GpuTensor X;
  GpuTensor dY;
  GpuTensor scale;
  GpuTensor B;
  GpuTensor old_mean;
  GpuTensor old_var;
  GpuTensor saved_mean;
  GpuTensor saved_inv_std;
  GpuTensor Y;
  GpuTensor new_mean;
  GpuTensor new_var;
  GpuTensor dX;
  GpuTensor dScale;
  GpuTensor dBias;
};

/// The forward op of an activation, where its tensors are.
inline Status RunOp(
    const Context& context,
    Activation activation,
    const Attributes& attributes,
    const BatchNormalization::Inputs& inputs,
    const BatchNormalization::Outputs& outputs) {
  const auto run = [&](auto op) {
    using Op = decltype(op);
    return (inputs.X->device.backend == Backend::kCuda ? &Op::RunCuda : &Op::RunCpu)(
        context, attributes, inputs, outputs);
  };
  return activation == Activation::kNone ? run(BatchNormalization())
                                         : run(BatchNormalizationRelu());
}

/// The gradient of what has an activation where B is given.
inline Status RunOp(
    const Context& context,
    const BatchNormalizationReluGrad::Inputs& inputs,
    const BatchNormalizationGrad::Outputs& outputs) {
  const bool on_gpu = inputs.X->device.backend == Backend::kCuda;
  if (inputs.B != nullptr) {
    using Op = BatchNormalizationReluGrad;
    return (on_gpu ? &Op::RunCuda : &Op::RunCpu)(context, {}, inputs, outputs);
  }
  using Op = BatchNormalizationGrad;
  return (on_gpu ? &Op::RunCuda : &Op::RunCpu)(
      context, {},
      {.dY = inputs.dY,
       .X = inputs.X,
       .scale = inputs.scale,
       .saved_mean = inputs.saved_mean,
       .saved_inv_std = inputs.saved_inv_std},
      outputs);
}

/// The name of a test's parameter.
inline std::string NameOfActivation(const testing::TestParamInfo<Activation>& info) {
  return info.param == Activation::kNone ? "Alone" : "Relu";
}

inline double Largest(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) {
    largest = std::max(largest, std::abs(value));
  }
  return largest;
}

/// Within `roundoffs` of the accumulator's on the scale of the largest, and rounding on storing.
/// The GPU's were added to elements that held `added`.
inline void ExpectClose(
    const GpuTensor& tensor,
    const std::string& name,
    DataType T,
    double roundoffs,
    double added = 0) {
  SCOPED_TRACE(name);
  const std::vector<double> expected = tensor.HostValues();
  const std::vector<double> actual = tensor.GpuValues();
  const double sum = support::UnitRoundoff(T == DataType::kDouble ? T : DataType::kFloat);
  const double stored = support::UnitRoundoff(tensor.type());
  const double scale = std::max(1., Largest(expected));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double allowed = (roundoffs * sum * scale) +
                           (2.01 * stored * (std::abs(expected[i]) + std::abs(added))) +
                           support::SmallestPositive(tensor.type());
    if (std::isfinite(expected[i])) {
      ASSERT_NEAR(actual[i], added + expected[i], allowed) << "element " << i;
    } else {
      ASSERT_FALSE(std::isfinite(actual[i])) << "element " << i;
    }
  }
  EXPECT_TRUE(tensor.SurroundingsIntact());
}

}  // namespace gradsmith::batch_norm

#endif  // GRADSMITH_TESTS_RUNTIME_CUDA_BATCH_NORM_DATA_H_
