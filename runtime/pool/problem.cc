#include "pool/problem.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/arguments.h"
#include "core/window.h"
#include "pool/shape_rules.h"

namespace gradsmith::pool {

namespace {

using internal::Argument;
using internal::kWindowAxes;
using internal::MakeArgument;
using internal::WindowFault;
using internal::WindowsGeometry;

Status AxisError(int axis, const std::string& what) {
  return InvalidArgument("spatial axis " + std::to_string(axis) + ": " + what);
}

Status CheckRank(const Dims& D) {
  if (!D.empty() && D.size() <= kWindowAxes) {
    return {};
  }
  return InvalidArgument(
      "X has " + std::to_string(D.size()) + " spatial axes; expected from 1 to 3");
}

Status CheckAttributes(const WindowAttributes& attributes, const Dims& D) {
  if (Status status = CheckRank(D); !status.ok()) {
    return status;
  }
  const internal::WindowList lists[] = {
      {"kernel_shape", attributes.kernel_shape, 1, 1},
      {"strides", attributes.strides, 1, 1},
      {"pads", attributes.pads, 2, 0},
      {"dilations", attributes.dilations, 1, 1}};
  return internal::CheckWindowLists(lists, D.size());
}

Status FaultText(WindowFault fault, int axis) {
  switch (fault) {
    case WindowFault::kNone:
      break;
    case WindowFault::kWindowTooLarge:
      return AxisError(
          axis, "the window, with dilations, passes 2^62 positions; expected at most 2^62");
    case WindowFault::kInputTooLarge:
      return AxisError(axis, "the input, with pads, passes 2^62 positions; expected at most 2^62");
  }
  return {};
}

Result<WindowsGeometry> GeometryOf(const WindowAttributes& attributes, const Dims& D) {
  if (Status status = CheckAttributes(attributes, D); !status.ok()) {
    return status;
  }
  WindowsGeometry geometry;
  geometry.rank = D.size();
  for (int axis = 0; axis < D.size(); ++axis) {
    const rules::PooledSpatial rule{attributes, D, axis};
    WindowFault fault = WindowFault::kNone;
    geometry.axes[kWindowAxes - D.size() + axis] =
        internal::PlaceWindows(rule, attributes.auto_pad, &fault);
    if (fault != WindowFault::kNone) {
      return FaultText(fault, axis);
    }
    if (!rule.Holds()) {
      return internal::FaultOf<rules::PooledSpatial>(axis, attributes, D);
    }
  }
  return geometry;
}

/// One window for each channel, with all of its elements. It has a position where there are none.
Result<WindowsGeometry> GeometryOf(const NoAttributes& /*attributes*/, const Dims& D) {
  if (Status status = CheckRank(D); !status.ok()) {
    return status;
  }
  WindowsGeometry geometry;
  geometry.rank = D.size();
  for (int axis = 0; axis < D.size(); ++axis) {
    geometry.axes[kWindowAxes - D.size() + axis] = {
        .input = D[axis], .size = std::max<std::int64_t>(D[axis], 1)};
  }
  return geometry;
}

Dims SpatialDims(const Dims& dims) {
  return Dims(std::span(dims.begin() + std::min(dims.size(), 2), dims.end()));
}

/// The dims of the tensors over the windows, where those over the input have `dims`.
Dims OutputDims(const WindowsGeometry& geometry, const Dims& dims) {
  Dims output = dims;
  for (int axis = 0; axis < geometry.rank; ++axis) {
    output[2 + axis] = geometry.axes[kWindowAxes - geometry.rank + axis].output;
  }
  return output;
}

/// What a kernel says of its arguments.
struct Signature {
  std::string_view shapes;
  std::string_view types;
};

template <typename Kernel>
constexpr Signature kSignatureOf = {.shapes = Kernel::kShapes, .types = Kernel::kTypes};

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

TensorRef Operand(const ConstTensorRef& tensor) {
  return internal::Unconst(tensor);
}
TensorRef Operand(const TensorRef* tensor) {
  return tensor == nullptr ? TensorRef() : *tensor;
}

/// A tensor over the input: its dims say what windows there are.
template <typename Attributes, typename Ref>
Result<Problem> ProblemOver(const Attributes& attributes, const Ref& input) {
  const Result<WindowsGeometry> geometry = GeometryOf(attributes, SpatialDims(input.dims));
  if (!geometry.ok()) {
    return geometry.status();
  }
  return Problem{.windows = *geometry, .tensors = {}};
}

/// Reads the arguments of a pooling without indices.
template <typename Kernel>
Result<Problem> ForwardProblem(
    const typename Kernel::Attributes& attributes,
    const typename Kernel::Inputs& inputs,
    const typename Kernel::Outputs& outputs) {
  Result<Problem> problem = ProblemOver(attributes, *inputs.X);
  if (!problem.ok()) {
    return problem;
  }
  const Dims output = OutputDims(problem->windows, inputs.X->dims);
  const Argument arguments[] = {MakeArgument("Y", outputs.Y, output, inputs.X->type)};
  if (Status status = CheckArguments(kSignatureOf<Kernel>, arguments); !status.ok()) {
    return status;
  }
  problem->tensors = {Operand(*inputs.X), *outputs.Y};
  return problem;
}

/// Reads the arguments of the gradient of an average.
template <typename Kernel>
Result<Problem> AverageGradProblem(
    const typename Kernel::Attributes& attributes,
    const typename Kernel::Inputs& inputs,
    const typename Kernel::Outputs& outputs) {
  Result<Problem> problem = ProblemOver(attributes, *inputs.X);
  if (!problem.ok()) {
    return problem;
  }
  const DataType type = inputs.X->type;
  const Dims output = OutputDims(problem->windows, inputs.X->dims);
  const Argument arguments[] = {
      MakeArgument("dY", inputs.dY, output, type),
      MakeArgument("dX", outputs.dX, inputs.X->dims, type)};
  if (Status status = CheckArguments(kSignatureOf<Kernel>, arguments); !status.ok()) {
    return status;
  }
  problem->tensors = {Operand(*inputs.dY), *outputs.dX};
  return problem;
}

/// Reads the arguments of the gradient of a maximum, from X and Y.
template <typename Kernel>
Result<Problem> MaxGradProblem(
    const typename Kernel::Attributes& attributes,
    const typename Kernel::Inputs& inputs,
    const typename Kernel::Outputs& outputs) {
  Result<Problem> problem = ProblemOver(attributes, *inputs.X);
  if (!problem.ok()) {
    return problem;
  }
  const DataType type = inputs.X->type;
  const Dims output = OutputDims(problem->windows, inputs.X->dims);
  const Argument arguments[] = {
      MakeArgument("dY", inputs.dY, output, type), MakeArgument("Y", inputs.Y, output, type),
      MakeArgument("dX", outputs.dX, inputs.X->dims, type)};
  if (Status status = CheckArguments(kSignatureOf<Kernel>, arguments); !status.ok()) {
    return status;
  }
  problem->tensors = {Operand(*inputs.dY), Operand(*inputs.X), Operand(*inputs.Y), *outputs.dX};
  return problem;
}

}  // namespace

Result<Dims> PooledSpatial(const WindowAttributes& attributes, const Dims& D) {
  const Result<WindowsGeometry> geometry = GeometryOf(attributes, D);
  if (!geometry.ok()) {
    return geometry.status();
  }
  Dims output;
  for (int axis = kWindowAxes - D.size(); axis < kWindowAxes; ++axis) {
    output.push_back(geometry->axes[axis].output);
  }
  return output;
}

Result<Dims> GlobalSpatial(const NoAttributes& attributes, const Dims& D) {
  return internal::SizesBy<rules::GlobalSpatial>(attributes, D);
}

Result<WindowsGeometry> WindowsOver(const WindowAttributes& attributes, const Dims& input) {
  return GeometryOf(attributes, SpatialDims(input));
}

Result<Problem> ProblemOf(
    const MaxPoolAttributes& attributes,
    const MaxPool::Inputs& inputs,
    const MaxPool::Outputs& outputs) {
  Result<Problem> problem = ProblemOver(attributes, *inputs.X);
  if (!problem.ok()) {
    return problem;
  }
  const Dims output = OutputDims(problem->windows, inputs.X->dims);
  const Argument arguments[] = {
      MakeArgument("Y", outputs.Y, output, inputs.X->type),
      MakeArgument("Indices", outputs.Indices, output, DataType::kInt64)};
  if (Status status = CheckArguments(kSignatureOf<MaxPool>, arguments); !status.ok()) {
    return status;
  }
  problem->windows.column_major = attributes.storage_order == 1;
  problem->tensors = {Operand(*inputs.X), *outputs.Y, Operand(outputs.Indices)};
  return problem;
}

Result<Problem> ProblemOf(
    const MaxPoolGradAttributes& attributes,
    const MaxPoolGrad::Inputs& inputs,
    const MaxPoolGrad::Outputs& outputs) {
  Result<Problem> problem = ProblemOver(attributes, *outputs.dX);
  if (!problem.ok()) {
    return problem;
  }
  const DataType type = outputs.dX->type;
  const Dims output = OutputDims(problem->windows, outputs.dX->dims);
  if (!(inputs.dY->dims == output)) {
    return internal::WrongDims(
        "dY", inputs.dY->dims, output,
        ", as pool::PooledSpatial makes of dX's " + ToString(outputs.dX->dims));
  }
  const Argument arguments[] = {
      MakeArgument("dY", inputs.dY, output, type),
      MakeArgument("Indices", inputs.Indices, output, DataType::kInt64)};
  if (Status status = CheckArguments(kSignatureOf<MaxPoolGrad>, arguments); !status.ok()) {
    return status;
  }
  problem->windows.column_major = attributes.storage_order == 1;
  problem->tensors = {Operand(*inputs.dY), Operand(*inputs.Indices), *outputs.dX};
  return problem;
}

Result<Problem> ProblemOf(
    const MaxPoolAttributes& attributes,
    const MaxPoolXYGrad::Inputs& inputs,
    const MaxPoolXYGrad::Outputs& outputs) {
  return MaxGradProblem<MaxPoolXYGrad>(attributes, inputs, outputs);
}

Result<Problem> ProblemOf(
    const AveragePoolAttributes& attributes,
    const AveragePool::Inputs& inputs,
    const AveragePool::Outputs& outputs) {
  Result<Problem> problem = ForwardProblem<AveragePool>(attributes, inputs, outputs);
  if (problem.ok()) {
    problem->windows.counts_padding = attributes.count_include_pad;
  }
  return problem;
}

Result<Problem> ProblemOf(
    const AveragePoolAttributes& attributes,
    const AveragePoolGrad::Inputs& inputs,
    const AveragePoolGrad::Outputs& outputs) {
  Result<Problem> problem = AverageGradProblem<AveragePoolGrad>(attributes, inputs, outputs);
  if (problem.ok()) {
    problem->windows.counts_padding = attributes.count_include_pad;
  }
  return problem;
}

Result<Problem> ProblemOf(
    const NoAttributes& attributes,
    const GlobalMaxPool::Inputs& inputs,
    const GlobalMaxPool::Outputs& outputs) {
  return ForwardProblem<GlobalMaxPool>(attributes, inputs, outputs);
}

Result<Problem> ProblemOf(
    const NoAttributes& attributes,
    const GlobalMaxPoolGrad::Inputs& inputs,
    const GlobalMaxPoolGrad::Outputs& outputs) {
  return MaxGradProblem<GlobalMaxPoolGrad>(attributes, inputs, outputs);
}

Result<Problem> ProblemOf(
    const NoAttributes& attributes,
    const GlobalAveragePool::Inputs& inputs,
    const GlobalAveragePool::Outputs& outputs) {
  return ForwardProblem<GlobalAveragePool>(attributes, inputs, outputs);
}

Result<Problem> ProblemOf(
    const NoAttributes& attributes,
    const GlobalAveragePoolGrad::Inputs& inputs,
    const GlobalAveragePoolGrad::Outputs& outputs) {
  return AverageGradProblem<GlobalAveragePoolGrad>(attributes, inputs, outputs);
}

}  // namespace gradsmith::pool
