#include "conv/problem.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "conv/axes.h"
#include "conv/task.h"
#include "core/arguments.h"
#include "core/window.h"

namespace gradsmith::conv {
namespace {

using internal::kMaxExtent;
using internal::Wide;

Dims SpatialDims(const Dims& dims) {
  return Dims(std::span(dims.begin() + 2, dims.end()));
}

Status CheckRanks(const ConstTensorRef& X, const ConstTensorRef& W) {
  constexpr int kLargest = kMaxSpatialRank + 2;
  if (X.rank() == W.rank() && X.rank() > 2 && X.rank() <= kLargest) {
    return {};
  }
  return InvalidArgument(
      "X has rank " + std::to_string(X.rank()) + " and W " + std::to_string(W.rank()) +
      "; expected the same, from 3 to " + std::to_string(kLargest));
}

Status CheckGroup(std::string_view what, std::int64_t channels, std::int64_t group) {
  if (group >= 1 && channels % group == 0) {
    return {};
  }
  return InvalidArgument(
      std::string(what) + " are " + std::to_string(channels) + "; expected a multiple of group " +
      std::to_string(group));
}

using internal::Argument;
using internal::MakeArgument;

/// What a kernel says of its arguments.
struct Signature {
  std::string_view shapes;
  std::string_view types;
};

Status CheckArguments(const Signature& signature, std::span<const Argument> arguments) {
  for (const Argument& argument : arguments) {
    if (internal::HasWrongDims(argument)) {
      return internal::WrongDims(
          argument.name, *argument.dims, *argument.expected_dims,
          ": the kernel takes " + std::string(signature.shapes));
    }
  }
  return internal::CheckTypes(arguments, signature.types);
}

/// The dims of an op's X, W and Y, and of its bias.
struct ExpectedDims {
  Dims X;
  Dims W;
  Dims Y;
  Dims B;
};

ExpectedDims ExpectedOfConvolution(const Problem& problem) {
  return {
      .X = DimsOf(problem, kX),
      .W = DimsOf(problem, kW),
      .Y = DimsOf(problem, kY),
      .B = {problem.y_channels}};
}

/// Its X is the problem's y.
ExpectedDims ExpectedOfTransposed(const Problem& problem) {
  return {
      .X = DimsOf(problem, kY),
      .W = DimsOf(problem, kW),
      .Y = DimsOf(problem, kX),
      .B = {problem.x_channels}};
}

Status CheckArguments(
    const Signature& signature,
    const ExpectedDims& expected,
    DataType type,
    const Conv::Inputs& inputs,
    const Conv::Outputs& outputs) {
  const Argument arguments[] = {
      MakeArgument("X", inputs.X, expected.X, type), MakeArgument("W", inputs.W, expected.W, type),
      MakeArgument("B", inputs.B, expected.B, type),
      MakeArgument("Y", outputs.Y, expected.Y, type)};
  return CheckArguments(signature, arguments);
}

Status CheckArguments(
    const Signature& signature,
    const ExpectedDims& expected,
    DataType type,
    const ConvGrad::Inputs& inputs,
    const ConvGrad::Outputs& outputs) {
  const Argument arguments[] = {MakeArgument("dY", inputs.dY, expected.Y, type),
                                MakeArgument("X", inputs.X, expected.X, type),
                                MakeArgument("W", inputs.W, expected.W, type),
                                MakeArgument("dX", outputs.dX, expected.X, type),
                                MakeArgument("dW", outputs.dW, expected.W, type),
                                MakeArgument("dB", outputs.dB, expected.B, type)};
  return CheckArguments(signature, arguments);
}

/// Puts the error of arguments that do not fit it in the place of the problem that X and W make.
template <typename Kernel, typename Inputs, typename Outputs>
void CheckArgumentsOf(
    ExpectedDims (*expected_of)(const Problem&),
    const Inputs& inputs,
    const Outputs& outputs,
    Result<Problem>* problem) {
  if (!problem->ok()) {
    return;
  }
  const Signature signature = {Kernel::kShapes, Kernel::kTypes};
  const Problem& made = **problem;
  if (Status status = CheckArguments(signature, expected_of(made), made.type, inputs, outputs);
      !status.ok()) {
    *problem = std::move(status);
  }
}

template <typename Given>
Result<Problem> MakeProblem(
    const Given& attributes,
    const ConstTensorRef& X,
    const ConstTensorRef& W,
    std::int64_t x_channels,
    std::int64_t y_channels) {
  const Result<Axes> axes = ResolveAxes(attributes, SpatialDims(X.dims), SpatialDims(W.dims));
  if (!axes.ok()) {
    return axes.status();
  }
  Problem problem;
  problem.type = X.type;
  problem.batch = X.dims[0];
  problem.x_channels = x_channels;
  problem.y_channels = y_channels;
  problem.group = attributes.group;
  problem.spatial_rank = X.rank() - 2;
  problem.axes = *axes;
  return problem;
}

}  // namespace

Result<Problem>
ConvolutionProblem(const Attributes& attributes, const ConstTensorRef& X, const ConstTensorRef& W) {
  if (Status status = CheckRanks(X, W); !status.ok()) {
    return status;
  }
  if (Status status = CheckGroup("the output channels, W's dim 0,", W.dims[0], attributes.group);
      !status.ok()) {
    return status;
  }
  if (Status status = CheckGroup("the input channels, X's dim 1,", X.dims[1], attributes.group);
      !status.ok()) {
    return status;
  }
  return MakeProblem(attributes, X, W, X.dims[1], W.dims[0]);
}

Result<Problem> TransposedProblem(
    const TransposedAttributes& attributes,
    const ConstTensorRef& X,
    const ConstTensorRef& W) {
  if (Status status = CheckRanks(X, W); !status.ok()) {
    return status;
  }
  if (Status status = CheckGroup("the input channels, X's dim 1,", X.dims[1], attributes.group);
      !status.ok()) {
    return status;
  }
  const Wide output_channels = Wide{W.dims[1]} * attributes.group;
  if (output_channels > kMaxExtent) {
    return InvalidArgument(
        "W's dim 1, " + std::to_string(W.dims[1]) + ", times group " +
        std::to_string(attributes.group) + "; expected at most 2^62 output channels");
  }
  return MakeProblem(attributes, X, W, static_cast<std::int64_t>(output_channels), X.dims[1]);
}

Result<Problem> ConvolutionProblem(
    const Attributes& attributes,
    const Conv::Inputs& inputs,
    const Conv::Outputs& outputs) {
  Result<Problem> problem = ConvolutionProblem(attributes, *inputs.X, *inputs.W);
  CheckArgumentsOf<Conv>(ExpectedOfConvolution, inputs, outputs, &problem);
  return problem;
}

Result<Problem> ConvolutionProblem(
    const Attributes& attributes,
    const ConvGrad::Inputs& inputs,
    const ConvGrad::Outputs& outputs) {
  Result<Problem> problem = ConvolutionProblem(attributes, *inputs.X, *inputs.W);
  CheckArgumentsOf<ConvGrad>(ExpectedOfConvolution, inputs, outputs, &problem);
  return problem;
}

Result<Problem> TransposedProblem(
    const TransposedAttributes& attributes,
    const ConvTranspose::Inputs& inputs,
    const ConvTranspose::Outputs& outputs) {
  Result<Problem> problem = TransposedProblem(attributes, *inputs.X, *inputs.W);
  CheckArgumentsOf<ConvTranspose>(ExpectedOfTransposed, inputs, outputs, &problem);
  return problem;
}

Result<Problem> TransposedProblem(
    const TransposedAttributes& attributes,
    const ConvTransposeGrad::Inputs& inputs,
    const ConvTransposeGrad::Outputs& outputs) {
  Result<Problem> problem = TransposedProblem(attributes, *inputs.X, *inputs.W);
  CheckArgumentsOf<ConvTransposeGrad>(ExpectedOfTransposed, inputs, outputs, &problem);
  return problem;
}

Problem WithStrides(Problem problem, const Strides& x, const Strides& w, const Strides& y) {
  problem.x_strides = x;
  problem.w_strides = w;
  problem.y_strides = y;
  return problem;
}

}  // namespace gradsmith::conv
