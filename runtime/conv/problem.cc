#include "conv/problem.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

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
    if (argument.dims != nullptr && !(*argument.dims == argument.expected_dims)) {
      return internal::WrongDims(
          argument.name, *argument.dims, argument.expected_dims,
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

/// The problem that X and W make, if all arguments fit it.
Result<Problem> Checked(
    Result<Problem> problem,
    ExpectedDims (*expected_of)(const Problem&),
    const Signature& signature,
    const Conv::Inputs& inputs,
    const Conv::Outputs& outputs) {
  if (!problem.ok()) {
    return problem;
  }
  const ExpectedDims expected = expected_of(*problem);
  const Argument arguments[] = {
      MakeArgument("X", inputs.X, expected.X, problem->type),
      MakeArgument("W", inputs.W, expected.W, problem->type),
      MakeArgument("B", inputs.B, expected.B, problem->type),
      MakeArgument("Y", outputs.Y, expected.Y, problem->type)};
  if (Status status = CheckArguments(signature, arguments); !status.ok()) {
    return status;
  }
  return problem;
}

Result<Problem> Checked(
    Result<Problem> problem,
    ExpectedDims (*expected_of)(const Problem&),
    const Signature& signature,
    const ConvGrad::Inputs& inputs,
    const ConvGrad::Outputs& outputs) {
  if (!problem.ok()) {
    return problem;
  }
  const ExpectedDims expected = expected_of(*problem);
  const Argument arguments[] = {
      MakeArgument("dY", inputs.dY, expected.Y, problem->type),
      MakeArgument("X", inputs.X, expected.X, problem->type),
      MakeArgument("W", inputs.W, expected.W, problem->type),
      MakeArgument("dX", outputs.dX, expected.X, problem->type),
      MakeArgument("dW", outputs.dW, expected.W, problem->type),
      MakeArgument("dB", outputs.dB, expected.B, problem->type)};
  if (Status status = CheckArguments(signature, arguments); !status.ok()) {
    return status;
  }
  return problem;
}

template <typename Given>
Result<Problem>
MakeProblem(const Given& attributes, const ConstTensorRef& X, const ConstTensorRef& W) {
  const Result<Axes> axes = ResolveAxes(attributes, SpatialDims(X.dims), SpatialDims(W.dims));
  if (!axes.ok()) {
    return axes.status();
  }
  Problem problem;
  problem.type = X.type;
  problem.batch = X.dims[0];
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
  Result<Problem> problem = MakeProblem(attributes, X, W);
  if (problem.ok()) {
    problem->x_channels = X.dims[1];
    problem->y_channels = W.dims[0];
  }
  return problem;
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
  Result<Problem> problem = MakeProblem(attributes, X, W);
  if (problem.ok()) {
    problem->x_channels = static_cast<std::int64_t>(output_channels);
    problem->y_channels = X.dims[1];
  }
  return problem;
}

Result<Problem> ConvolutionProblem(
    const Attributes& attributes,
    const Conv::Inputs& inputs,
    const Conv::Outputs& outputs) {
  return Checked(
      ConvolutionProblem(attributes, *inputs.X, *inputs.W), ExpectedOfConvolution,
      {Conv::kShapes, Conv::kTypes}, inputs, outputs);
}

Result<Problem> ConvolutionProblem(
    const Attributes& attributes,
    const ConvGrad::Inputs& inputs,
    const ConvGrad::Outputs& outputs) {
  return Checked(
      ConvolutionProblem(attributes, *inputs.X, *inputs.W), ExpectedOfConvolution,
      {ConvGrad::kShapes, ConvGrad::kTypes}, inputs, outputs);
}

Result<Problem> TransposedProblem(
    const TransposedAttributes& attributes,
    const ConvTranspose::Inputs& inputs,
    const ConvTranspose::Outputs& outputs) {
  return Checked(
      TransposedProblem(attributes, *inputs.X, *inputs.W), ExpectedOfTransposed,
      {ConvTranspose::kShapes, ConvTranspose::kTypes}, inputs, outputs);
}

Result<Problem> TransposedProblem(
    const TransposedAttributes& attributes,
    const ConvTransposeGrad::Inputs& inputs,
    const ConvTransposeGrad::Outputs& outputs) {
  return Checked(
      TransposedProblem(attributes, *inputs.X, *inputs.W), ExpectedOfTransposed,
      {ConvTransposeGrad::kShapes, ConvTransposeGrad::kTypes}, inputs, outputs);
}

Problem WithStrides(Problem problem, const Strides& x, const Strides& w, const Strides& y) {
  problem.x_strides = x;
  problem.w_strides = w;
  problem.y_strides = y;
  return problem;
}

}  // namespace gradsmith::conv
