#ifndef GRADSMITH_CONV_PROBLEM_H_
#define GRADSMITH_CONV_PROBLEM_H_

#include <array>
#include <cstdint>

#include "conv/kernels.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"
#include "gradsmith/types.h"

namespace gradsmith::conv {

inline constexpr int kMaxSpatialRank = 3;

/// Axis is a convolution along one spatial axis: y[o] sums x[o * stride + k * dilation - pad_begin]
/// * w[k].
struct Axis {
  std::int64_t x = 1;
  std::int64_t w = 1;
  std::int64_t y = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t pad_begin = 0;
  std::int64_t pad_end = 0;

  friend bool operator==(const Axis&, const Axis&) = default;
};

/// Problem is a convolution in the terms of its three primitives: x (batch, x_channels, x...), the
/// filter w (y_channels, x_channels / group, w...), y (batch, y_channels, y...). A ConvTranspose is
/// the convolution whose x is the op's Y and whose y is the op's X. Made only by the functions
/// below, which validate it.
struct Problem {
  DataType type = DataType::kFloat;
  std::int64_t batch = 0;
  std::int64_t x_channels = 0;
  std::int64_t y_channels = 0;
  std::int64_t group = 1;
  int spatial_rank = 0;
  /// The first `spatial_rank` count.
  std::array<Axis, kMaxSpatialRank> axes;
  Strides x_strides;
  Strides w_strides;
  Strides y_strides;

  friend bool operator==(const Problem&, const Problem&) = default;
};

/// ConvolutionProblem reads X and W as Conv does. Strides are left empty.
Result<Problem>
ConvolutionProblem(const Attributes& attributes, const ConstTensorRef& X, const ConstTensorRef& W);

/// TransposedProblem reads X and W as ConvTranspose does. Strides are left empty.
Result<Problem> TransposedProblem(
    const TransposedAttributes& attributes,
    const ConstTensorRef& X,
    const ConstTensorRef& W);

/// ConvolutionProblem reads the arguments of Conv or ConvGrad. An error where their dims or types
/// do not fit together as the kernel's kShapes and kTypes say: then an op's entry in ops.yaml has
/// let them pass.
Result<Problem> ConvolutionProblem(
    const Attributes& attributes,
    const Conv::Inputs& inputs,
    const Conv::Outputs& outputs);
Result<Problem> ConvolutionProblem(
    const Attributes& attributes,
    const ConvGrad::Inputs& inputs,
    const ConvGrad::Outputs& outputs);

/// TransposedProblem reads the arguments of ConvTranspose or ConvTransposeGrad likewise.
Result<Problem> TransposedProblem(
    const TransposedAttributes& attributes,
    const ConvTranspose::Inputs& inputs,
    const ConvTranspose::Outputs& outputs);
Result<Problem> TransposedProblem(
    const TransposedAttributes& attributes,
    const ConvTransposeGrad::Inputs& inputs,
    const ConvTransposeGrad::Outputs& outputs);

/// WithStrides returns the problem with the strides of its three tensors.
Problem WithStrides(Problem problem, const Strides& x, const Strides& w, const Strides& y);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_PROBLEM_H_
