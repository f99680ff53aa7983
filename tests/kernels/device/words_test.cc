#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda/kernel_images.h"
#include "gradsmith/gradsmith.h"
#include "patterns/run_functor.h"
#include "patterns/run_map.h"
#include "runtime/cuda/op_call.h"
#include "words/functors.h"

/// Words of formulas that no operator of the library has, on CUDA.
namespace gradsmith::cuda {
namespace {

using words::AnglesMap;
using words::IgnoringRows;
using words::RefusingRows;

constexpr std::array<std::string_view, 6> kAnglesOperands = {"X",     "Z",     "asinh",
                                                             "acosh", "atanh", "atan2"};
constexpr OpInfo kAngles = {
    .name = "AnglesMap",
    .operands = kAnglesOperands,
    .inputs = 2,
    .image = &kImage_words_of_formulas};

const Sizes kPlane = {6, 37};

class CudaWords : public CudaTest {
 protected:
  static GpuTensor Output(DataType type) { return {type, kPlane, Layout::kContiguous}; }

  void CheckAngles(DataType type, double tolerance) {
    GpuTensor x(type, kPlane, Layout::kContiguous);
    GpuTensor z(type, kPlane, Layout::kContiguous);
    for (GpuTensor* input : {&x, &z}) {
      input->Fill([&] { return random_.Real(-4, 4); });
    }
    std::array<GpuTensor, 4> outputs = {Output(type), Output(type), Output(type), Output(type)};
    std::vector<TensorRef> to;
    for (GpuTensor& output : outputs) {
      to.push_back(output.GpuRef());
    }
    const std::array<ConstTensorRef, 2> from = {x.GpuRef(), z.GpuRef()};
    const Context gpu(OnGpu());
    const Status status = internal::RunMapOnCuda(gpu, kAngles, {}, from, to);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_TRUE(Synchronize(gpu).ok());
    const std::vector<double> xs = x.HostValues();
    const std::vector<double> zs = z.HostValues();
    for (std::size_t i = 0; i < xs.size(); ++i) {
      const std::array<double, 4> expected = {
          std::asinh(xs[i]), std::acosh(1 + xs[i] * xs[i]),
          std::atanh(xs[i] / (1 + std::abs(xs[i]))), std::atan2(xs[i], zs[i])};
      for (std::size_t output = 0; output < expected.size(); ++output) {
        EXPECT_NEAR(
            outputs.at(output).GpuValues().at(i), expected.at(output),
            tolerance * std::max(1.0, std::abs(expected.at(output))))
            << ToString(type) << ", output " << output << " of " << xs[i] << ", " << zs[i];
      }
    }
  }

  /// What becomes of rows of ones whose labels are given, where the table has 1 and so on.
  template <typename Functor>
  static std::vector<double>
  Labelled(const char* name, DataType type, const std::vector<double>& labels, int axis) {
    const auto rows = static_cast<std::int64_t>(labels.size());
    const Sizes dims = axis == 1 ? Sizes{rows, 5} : Sizes{5, rows};
    GpuTensor x(type, dims, Layout::kContiguous);
    x.Fill([] { return 1.0; });
    GpuTensor label(DataType::kInt64, {rows}, Layout::kContiguous);
    std::size_t next = 0;
    label.Fill([&] { return labels.at(next++); });
    GpuTensor weight(type, {5}, Layout::kContiguous);
    double counted = 0;
    weight.Fill([&] { return ++counted; });
    GpuTensor y(type, dims, Layout::kContiguous);
    constexpr std::array<std::string_view, 4> kOperands = {"X", "label", "weight", "Y"};
    const internal::FunctorKernels kernels = {
        .name = name, .operands = kOperands, .image = &kImage_words_of_formulas};
    const std::array<ConstTensorRef, 3> from = {x.GpuRef(), label.GpuRef(), weight.GpuRef()};
    const TensorRef to = y.GpuRef();
    const Context gpu(OnGpu());
    const Status status = internal::RowsOnBackend<Functor>(
        gpu, kernels, internal::AlongAxis(axis), {}, from.data(), &from[1], &from[2], &to);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(Synchronize(gpu).ok());
    std::vector<double> found;
    const std::vector<double> values = y.GpuValues();
    for (std::size_t row = 0; row < labels.size(); ++row) {
      found.push_back(values.at(axis == 1 ? row * 5 : row));
    }
    return found;
  }

  Random random_{"words of formulas"};
};

TEST_F(CudaWords, InverseHyperbolicFunctionsAndAngles) {
  CheckAngles(DataType::kFloat, 2e-6);
  CheckAngles(DataType::kDouble, 1e-14);
  CheckAngles(DataType::kMLFloat16, 1e-3);
  CheckAngles(DataType::kBFloat16, 8e-3);
}

TEST_F(CudaWords, WhatLiesOutsideIsZeroWhereItIsIgnored) {
  for (const int axis : {0, 1}) {
    EXPECT_EQ(
        Labelled<IgnoringRows>("IgnoringRows", DataType::kFloat, {0, 4, 5, -1, 1e15}, axis),
        (std::vector<double>{1, 5, 0, 0, 0}));
  }
}

TEST_F(CudaWords, WhatLiesOutsideIsNanWhereItIsRefused) {
  for (const DataType type : {DataType::kFloat, DataType::kDouble, DataType::kMLFloat16}) {
    for (const int axis : {0, 1}) {
      const std::vector<double> found =
          Labelled<RefusingRows>("RefusingRows", type, {0, 4, 5, -1, 1e15}, axis);
      EXPECT_EQ(found.at(0), 1);
      EXPECT_EQ(found.at(1), 5);
      for (const std::size_t outside : {2U, 3U, 4U}) {
        EXPECT_TRUE(std::isnan(found.at(outside))) << outside << " is " << found.at(outside);
      }
    }
  }
}

}  // namespace
}  // namespace gradsmith::cuda
