#include <gtest/gtest.h>

#include <string>

#include "batch_norm/kernels.h"
#include "gradsmith/context.h"
#include "gradsmith/tensor.h"

/// What is refused of batch normalization's arguments, which do not fit X or each other.
namespace gradsmith::batch_norm {
namespace {

ConstTensorRef WithDims(const Dims& dims) {
  return {DataType::kFloat, nullptr, dims};
}

TEST(BatchNormShapes, ArgumentsFitX) {
  const ConstTensorRef X = WithDims({2, 3, 4});
  const ConstTensorRef good = WithDims({3});
  const ConstTensorRef bad = WithDims({2});
  const TensorRef Y(DataType::kFloat, nullptr, {2, 3, 4});
  const TensorRef BadY(DataType::kFloat, nullptr, {3, 2, 4});
  const TensorRef BadMean(DataType::kFloat, nullptr, {4});
  const auto refusal = [&](const BatchNormalization::Inputs& inputs,
                           const BatchNormalization::Outputs& outputs) {
    const Status status =
        BatchNormalizationRelu::RunCpu(Context({.threads = 1}), {}, inputs, outputs);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return status.message();
  };
  BatchNormalization::Inputs inputs{
      .X = &X, .scale = &good, .B = &good, .running_mean = &good, .running_var = &good};
  EXPECT_EQ(refusal(inputs, {.Y = &BadY}), "Y has shape [3, 2, 4]; expected [2, 3, 4], as X");
  EXPECT_EQ(
      refusal(inputs, {.Y = &Y, .saved_mean = &BadMean}),
      "saved_mean has shape [4]; expected [3], X's channels");
  inputs.running_var = &bad;
  EXPECT_EQ(refusal(inputs, {.Y = &Y}), "running_var has shape [2]; expected [3], X's channels");
  for (const Dims& dims : {Dims{}, Dims{3}, Dims{1, 3, 1, 1, 1, 1}}) {
    const ConstTensorRef other = WithDims(dims);
    inputs.X = &other;
    EXPECT_EQ(
        refusal(inputs, {.Y = &Y}), "X has shape " + ToString(dims) + ", rank " +
                                        std::to_string(dims.size()) +
                                        "; expected rank 2 to 5: [N, C, *D]");
  }
}

TEST(BatchNormShapes, GradientsFitX) {
  const ConstTensorRef X = WithDims({2, 3, 4});
  const ConstTensorRef BadDY = WithDims({2, 3, 5});
  const ConstTensorRef good = WithDims({3});
  const TensorRef BadDX(DataType::kFloat, nullptr, {2, 3});
  const TensorRef BadDScale(DataType::kFloat, nullptr, {2});
  const auto refusal = [&](const ConstTensorRef& dY,
                           const BatchNormalizationGrad::Outputs& outputs) {
    const Status status = BatchNormalizationGrad::RunCpu(
        Context({.threads = 1}), {},
        {.dY = &dY, .X = &X, .scale = &good, .saved_mean = &good, .saved_inv_std = &good}, outputs);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return status.message();
  };
  EXPECT_EQ(refusal(BadDY, {}), "dY has shape [2, 3, 5]; expected [2, 3, 4], as X");
  EXPECT_EQ(refusal(X, {.dX = &BadDX}), "dX has shape [2, 3]; expected [2, 3, 4], as X");
  EXPECT_EQ(refusal(X, {.dScale = &BadDScale}), "dScale has shape [2]; expected [3], X's channels");
}

/// Two arguments for which the kernels have one type are not of two.
TEST(BatchNormShapes, WhatHasOneTypeMayNotHaveTwo) {
  const ConstTensorRef X = WithDims({2, 3, 4});
  const ConstTensorRef good = WithDims({3});
  const ConstTensorRef half(DataType::kMLFloat16, nullptr, {3});
  const TensorRef Y(DataType::kFloat, nullptr, {2, 3, 4});
  const TensorRef half_y(DataType::kMLFloat16, nullptr, {2, 3, 4});
  const TensorRef half_mean(DataType::kMLFloat16, nullptr, {3});
  const auto expect_refusal = [](const Status& status, const std::string& message) {
    EXPECT_EQ(status.code(), StatusCode::kInternal);
    EXPECT_EQ(status.message().substr(0, message.size()), message);
  };
  BatchNormalization::Inputs inputs{
      .X = &X, .scale = &good, .B = &good, .running_mean = &good, .running_var = &good};
  const auto run = [&](const BatchNormalization::Outputs& outputs) {
    return BatchNormalization::RunCpu(Context({.threads = 1}), {}, inputs, outputs);
  };
  expect_refusal(run({.Y = &half_y}), "Y has type MLFloat16; expected float: the kernel takes X T");
  expect_refusal(
      run({.Y = &Y, .saved_mean = &half_mean}), "saved_mean has type MLFloat16; expected float");
  inputs.B = &half;
  expect_refusal(run({.Y = &Y}), "B has type MLFloat16; expected float");
  expect_refusal(
      BatchNormalizationGrad::RunCpu(
          Context({.threads = 1}), {},
          {.dY = &X, .X = &X, .scale = &good, .saved_mean = &good, .saved_inv_std = &half},
          {.dX = &Y}),
      "saved_inv_std has type MLFloat16; expected float: the kernel takes dY T");
}

}  // namespace
}  // namespace gradsmith::batch_norm
