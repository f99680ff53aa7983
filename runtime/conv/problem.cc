#include "conv/problem.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "conv/task.h"
#include "core/arguments.h"
#include "core/window.h"

namespace gradsmith::conv {
namespace {

using internal::EntryOr;
using internal::IsSame;
using internal::kMaxExtent;
using internal::Wide;
using internal::WindowFault;
using internal::WindowList;
using internal::WindowSpan;

/// What the attributes say of one axis.
struct AxisAttributes {
  std::int64_t stride;
  std::int64_t dilation;
  std::int64_t pad_begin;
  std::int64_t pad_end;
};

/// An input axis of D positions meets a filter of K; both rules turn that into an Axis.
struct AxisSizes {
  std::int64_t D;
  std::int64_t K;
};

Status AxisError(int axis, const std::string& what) {
  return InvalidArgument("spatial axis " + std::to_string(axis) + ": " + what);
}

std::string Text(std::string_view name, std::int64_t value) {
  return std::string(name) + " " + std::to_string(value);
}

Status TooLarge(int axis, std::string_view what) {
  return AxisError(axis, std::string(what) + " passes 2^62 positions; expected at most 2^62");
}

bool AllZero(const IntList& list) {
  return std::all_of(list.begin(), list.end(), [](std::int64_t value) { return value == 0; });
}

Status CheckLists(const Attributes& attributes, int rank) {
  const WindowList lists[] = {
      {"kernel_shape", attributes.kernel_shape, 1, 1},
      {"strides", attributes.strides, 1, 1},
      {"pads", attributes.pads, 2, 0},
      {"dilations", attributes.dilations, 1, 1}};
  return internal::CheckWindowLists(lists, rank);
}

Status CheckLists(const TransposedAttributes& attributes, int rank) {
  const Attributes& shared = attributes;
  if (Status status = CheckLists(shared, rank); !status.ok()) {
    return status;
  }
  const WindowList lists[] = {
      {"output_padding", attributes.output_padding, 1, 0},
      {"output_shape", attributes.output_shape, 1, 0}};
  return internal::CheckWindowLists(lists, rank);
}

Status CheckPadSources(const Attributes& attributes) {
  return internal::CheckPadSources(attributes.auto_pad, attributes.pads);
}

Status CheckPadSources(const TransposedAttributes& attributes) {
  const Attributes& shared = attributes;
  if (Status status = CheckPadSources(shared); !status.ok() || attributes.output_shape.empty()) {
    return status;
  }
  if (!AllZero(attributes.pads)) {
    return InvalidArgument(
        "attribute pads is " + ToString(attributes.pads) +
        "; expected none, or zeros, where output_shape sets the pads");
  }
  if (attributes.auto_pad == AutoPad::VALID) {
    return InvalidArgument(
        "attribute output_shape is given; expected none where auto_pad is VALID, as both set the pads");
  }
  return {};
}

Status CheckFilter(const Attributes& attributes, const Dims& D, const Dims& K) {
  if (D.size() < 1 || D.size() > kMaxSpatialRank || K.size() != D.size()) {
    return InvalidArgument(
        "X has " + std::to_string(D.size()) + " spatial axes and W has " +
        std::to_string(K.size()) + "; expected the same number, from 1 to 3");
  }
  for (int axis = 0; axis < K.size(); ++axis) {
    if (K[axis] < 1) {
      return AxisError(axis, Text("the filter has size", K[axis]) + "; expected 1 or more");
    }
    if (D[axis] < 0 || std::max(D[axis], K[axis]) > kMaxExtent) {
      return AxisError(
          axis, "X has " + std::to_string(D[axis]) + " and W has " + std::to_string(K[axis]) +
                    " positions; expected at most 2^62");
    }
  }
  if (!attributes.kernel_shape.empty() && !(attributes.kernel_shape == K)) {
    return InvalidArgument(
        "attribute kernel_shape is " + ToString(attributes.kernel_shape) +
        "; expected W's spatial dims " + ToString(K));
  }
  return {};
}

template <typename Given>
Status CheckArguments(const Given& attributes, const Dims& D, const Dims& K) {
  if (Status status = CheckFilter(attributes, D, K); !status.ok()) {
    return status;
  }
  if (Status status = CheckLists(attributes, D.size()); !status.ok()) {
    return status;
  }
  return CheckPadSources(attributes);
}

AxisAttributes AttributesOf(const Attributes& attributes, int axis, int rank) {
  return {
      .stride = EntryOr(1, attributes.strides, axis),
      .dilation = EntryOr(1, attributes.dilations, axis),
      .pad_begin = EntryOr(0, attributes.pads, axis),
      .pad_end = EntryOr(0, attributes.pads, axis + rank)};
}

Status DoesNotReach(int axis, const Axis& resolved) {
  return AxisError(
      axis,
      Text("the padded input has", resolved.x + resolved.pad_begin + resolved.pad_end) +
          " positions (" + std::to_string(resolved.x) + " and " + Text("pads", resolved.pad_begin) +
          ", " + std::to_string(resolved.pad_end) + "); expected at least the " +
          std::to_string(static_cast<std::int64_t>(WindowSpan(resolved.w, resolved.dilation))) +
          " that the filter spans (" + Text("size", resolved.w) + ", " +
          Text("dilation", resolved.dilation) + ")");
}

Result<Axis> ConvolutionAxis(const Attributes& attributes, int index, AxisSizes sizes, int rank) {
  const AxisAttributes given = AttributesOf(attributes, index, rank);
  internal::WindowAxis windows{
      .input = sizes.D,
      .size = sizes.K,
      .stride = given.stride,
      .dilation = given.dilation,
      .pad_begin = given.pad_begin,
      .pad_end = given.pad_end};
  const WindowFault fault = internal::PlaceWindows(attributes.auto_pad, false, &windows);
  const Axis axis{
      .x = windows.input,
      .w = windows.size,
      .y = windows.output,
      .stride = windows.stride,
      .dilation = windows.dilation,
      .pad_begin = windows.pad_begin,
      .pad_end = windows.pad_end};
  switch (fault) {
    case WindowFault::kNone:
      break;
    case WindowFault::kWindowTooLarge:
      return TooLarge(index, "the filter, with dilations,");
    case WindowFault::kInputTooLarge:
      return TooLarge(index, "the input, with pads,");
    case WindowFault::kDoesNotReach:
      return DoesNotReach(index, axis);
  }
  return axis;
}

Status CheckOutputPadding(int index, std::int64_t output_padding, const AxisAttributes& given) {
  const std::int64_t limit = std::max(given.stride, given.dilation);
  if (output_padding < limit) {
    return {};
  }
  return AxisError(
      index, Text("output_padding is", output_padding) + "; expected less than " +
                 std::to_string(limit) + ", the larger of " + Text("stride", given.stride) +
                 " and " + Text("dilation", given.dilation));
}

/// Sets the size of the transposed convolution's output, which is axis->x, and the pads. `full` is
/// the size before pads take from it.
Status
SetTransposedOutput(const TransposedAttributes& attributes, int index, Wide full, Axis* axis) {
  const bool has_output_shape = !attributes.output_shape.empty();
  if (axis->y == 0) {
    axis->x = has_output_shape ? attributes.output_shape[index] : 0;
  } else if (has_output_shape || IsSame(attributes.auto_pad)) {
    const Wide size =
        has_output_shape ? attributes.output_shape[index] : Wide{axis->y} * axis->stride;
    axis->x = static_cast<std::int64_t>(std::min<Wide>(size, kMaxExtent + Wide{1}));
    internal::SplitPads(
        full - size, attributes.auto_pad == AutoPad::SAME_UPPER, &axis->pad_begin, &axis->pad_end);
  } else {
    const Wide size = full - axis->pad_begin - axis->pad_end;
    if (size < 0) {
      return AxisError(
          index, "pads " + std::to_string(axis->pad_begin) + ", " + std::to_string(axis->pad_end) +
                     " are cut from an output of " +
                     std::to_string(static_cast<std::int64_t>(full)) +
                     " positions; expected no more than that");
    }
    axis->x = static_cast<std::int64_t>(size);
  }
  return axis->x > kMaxExtent ? TooLarge(index, "the output") : Status();
}

Result<Axis>
TransposedAxis(const TransposedAttributes& attributes, int index, AxisSizes sizes, int rank) {
  const AxisAttributes given = AttributesOf(attributes, index, rank);
  const std::int64_t output_padding = EntryOr(0, attributes.output_padding, index);
  if (Status status = CheckOutputPadding(index, output_padding, given); !status.ok()) {
    return status;
  }
  Axis axis{
      .x = 0,
      .w = sizes.K,
      .y = sizes.D,
      .stride = given.stride,
      .dilation = given.dilation,
      .pad_begin = given.pad_begin,
      .pad_end = given.pad_end};
  const Wide filter = WindowSpan(axis.w, axis.dilation);
  if (filter > kMaxExtent) {
    return TooLarge(index, "the filter, with dilations,");
  }
  const Wide full = (Wide{axis.stride} * (axis.y - 1)) + output_padding + filter;
  if (full > kMaxExtent) {
    return TooLarge(index, "the output before pads");
  }
  if (Status status = SetTransposedOutput(attributes, index, full, &axis); !status.ok()) {
    return status;
  }
  return axis;
}

template <typename Given>
using AxisRule = Result<Axis> (*)(const Given&, int, AxisSizes, int);

template <typename Given>
Result<std::array<Axis, kMaxSpatialRank>>
ResolveAxes(const Given& attributes, const Dims& D, const Dims& K, AxisRule<Given> rule) {
  if (Status status = CheckArguments(attributes, D, K); !status.ok()) {
    return status;
  }
  std::array<Axis, kMaxSpatialRank> axes;
  for (int i = 0; i < D.size(); ++i) {
    Result<Axis> axis = rule(attributes, i, {.D = D[i], .K = K[i]}, D.size());
    if (!axis.ok()) {
      return axis.status();
    }
    axes[i] = *axis;
  }
  return axes;
}

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
Result<Problem> MakeProblem(
    const Given& attributes,
    const ConstTensorRef& X,
    const ConstTensorRef& W,
    AxisRule<Given> rule) {
  Result<std::array<Axis, kMaxSpatialRank>> axes =
      ResolveAxes(attributes, SpatialDims(X.dims), SpatialDims(W.dims), rule);
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

Result<Dims> OutputSpatial(const Attributes& attributes, const Dims& D, const Dims& K) {
  Result<std::array<Axis, kMaxSpatialRank>> axes = ResolveAxes(attributes, D, K, ConvolutionAxis);
  if (!axes.ok()) {
    return axes.status();
  }
  Dims output;
  for (int i = 0; i < D.size(); ++i) {
    output.push_back((*axes)[i].y);
  }
  return output;
}

Result<Dims>
TransposedOutputSpatial(const TransposedAttributes& attributes, const Dims& D, const Dims& K) {
  Result<std::array<Axis, kMaxSpatialRank>> axes = ResolveAxes(attributes, D, K, TransposedAxis);
  if (!axes.ok()) {
    return axes.status();
  }
  Dims output;
  for (int i = 0; i < D.size(); ++i) {
    output.push_back((*axes)[i].x);
  }
  return output;
}

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
  Result<Problem> problem = MakeProblem(attributes, X, W, ConvolutionAxis);
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
  Result<Problem> problem = MakeProblem(attributes, X, W, TransposedAxis);
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
