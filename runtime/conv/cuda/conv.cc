#include <array>
#include <cstddef>
#include <memory>

#include "conv/cuda/search_space.h"
#include "conv/cuda/task.h"
#include "conv/kernels.h"
#include "conv/problem.h"
#include "cuda/selected_run.h"
#include "cuda/tensor_ops.h"
#include "cuda/workspace_arena.h"

/// The four ops on CUDA.
namespace gradsmith::conv {

namespace {

using cuda::DeviceInfo;

template <typename Ref>
bool IsPresent(const Ref* tensor) {
  return tensor != nullptr && tensor->present;
}

CUstream StreamOf(const Context& context) {
  return static_cast<CUstream>(context.options().stream);
}

class ConvSpaceMaker final : public cuda::SpaceMaker {
 public:
  ConvSpaceMaker(
      const Context& context,
      const DeviceInfo& device,
      const Task& task,
      const std::array<void*, kOperands>& operands)
      : context_(context), device_(device), task_(task), operands_(operands) {}

  [[nodiscard]] std::unique_ptr<internal::SearchSpace> Make() const override {
    return std::make_unique<ConvSearchSpace>(
        device_, StreamOf(context_), task_, operands_, context_.options().allow_tf32);
  }

 private:
  const Context& context_;
  const DeviceInfo& device_;
  const Task& task_;
  const std::array<void*, kOperands>& operands_;
};

/// Nothing is summed: the result is zero, or what was there.
Status RunEmpty(const Context& context, const DeviceInfo& device, const TensorRef& result) {
  if (result.accumulate || context.preparing()) {
    return {};
  }
  return cuda::FillTensor(device, StreamOf(context), 0, result);
}

/// Runs a primitive whose result is `result`, one of x, w and y; the problem's strides are theirs.
Status RunPrimitive(
    const Context& context,
    const DeviceInfo& device,
    Primitive primitive,
    const Problem& problem,
    const std::array<const void*, kOperands>& inputs,
    const TensorRef& result) {
  if (NumElements(result.dims) == 0) {
    return {};
  }
  Task task;
  task.primitive = primitive;
  task.problem = problem;
  task.accumulate = result.accumulate;
  std::array<void*, kOperands> operands{};
  for (const Operand operand : {kX, kW, kY}) {
    if (NumElements(DimsOf(problem, operand)) == 0) {
      return RunEmpty(context, device, result);
    }
    operands.at(operand) =
        operand == ResultOf(primitive) ? result.data : const_cast<void*>(inputs.at(operand));
    task.alignment.at(operand) = cuda::AlignmentClass(operands.at(operand), problem.type);
  }
  internal::ProblemKey key;
  AddTo(task, &key);
  cuda::AddPolicy(context, device, problem.type, &key);
  const ConvSpaceMaker maker(context, device, task, operands);
  return cuda::RunSelected(context, device, problem.type, key, operands, maker);
}

/// Fills y with the bias of each channel, to which the convolution is then added: one rounding, and
/// no pass more than adding the bias afterwards.
Status FillWithBias(
    const Context& context,
    const DeviceInfo& device,
    const ConstTensorRef& bias,
    const TensorRef& y) {
  if (context.preparing()) {
    return {};
  }
  Strides strides = Strides::Filled(y.rank(), 0);
  strides[1] = bias.strides[0];
  const ConstTensorRef broadcast(bias.type, bias.data, y.dims, strides, bias.device);
  return cuda::CopyTensor(device, StreamOf(context), broadcast, y);
}

/// Runs a primitive that makes an op's Y, with the bias where there is one.
Status RunWithBias(
    const Context& context,
    const DeviceInfo& device,
    Primitive primitive,
    const Problem& problem,
    const std::array<const void*, kOperands>& inputs,
    const ConstTensorRef* bias,
    const TensorRef& y) {
  if (!IsPresent(bias)) {
    return RunPrimitive(context, device, primitive, problem, inputs, y);
  }
  if (Status status = FillWithBias(context, device, *bias, y); !status.ok()) {
    return status;
  }
  return RunPrimitive(context, device, primitive, problem, inputs, y.Accumulating());
}

Status BackwardBias(
    const Context& context,
    const DeviceInfo& device,
    const ConstTensorRef& dY,
    const TensorRef& dB) {
  Result<internal::WorkspaceArena::Lease> lease =
      context.workspace_arena()->Take(cuda::SumChannelsWorkspace(device, dY));
  if (!lease.ok() || context.preparing()) {
    return lease.status();
  }
  return cuda::SumChannels(device, StreamOf(context), dY, dB, lease->address);
}

}  // namespace

Status Conv::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  const Result<const DeviceInfo*> device = cuda::OpenCall(context);
  if (!device.ok()) {
    return device.status();
  }
  const Result<Problem> problem = ConvolutionProblem(attributes, *inputs.X, *inputs.W);
  if (!problem.ok()) {
    return problem.status();
  }
  const cuda::CurrentDevice current(**device);
  return RunWithBias(
      context, **device, Primitive::kForward,
      WithStrides(*problem, inputs.X->strides, inputs.W->strides, outputs.Y->strides),
      {inputs.X->data, inputs.W->data, nullptr}, inputs.B, *outputs.Y);
}

Status ConvGrad::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  const Result<const DeviceInfo*> device = cuda::OpenCall(context);
  if (!device.ok()) {
    return device.status();
  }
  const Result<Problem> problem = ConvolutionProblem(attributes, *inputs.X, *inputs.W);
  if (!problem.ok()) {
    return problem.status();
  }
  const cuda::CurrentDevice current(**device);
  Status status;
  if (IsPresent(outputs.dX)) {
    status = RunPrimitive(
        context, **device, Primitive::kBackwardData,
        WithStrides(*problem, outputs.dX->strides, inputs.W->strides, inputs.dY->strides),
        {nullptr, inputs.W->data, inputs.dY->data}, *outputs.dX);
  }
  if (status.ok() && IsPresent(outputs.dW)) {
    status = RunPrimitive(
        context, **device, Primitive::kBackwardFilter,
        WithStrides(*problem, inputs.X->strides, outputs.dW->strides, inputs.dY->strides),
        {inputs.X->data, nullptr, inputs.dY->data}, *outputs.dW);
  }
  if (status.ok() && IsPresent(outputs.dB)) {
    status = BackwardBias(context, **device, *inputs.dY, *outputs.dB);
  }
  return status;
}

Status ConvTranspose::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  const Result<const DeviceInfo*> device = cuda::OpenCall(context);
  if (!device.ok()) {
    return device.status();
  }
  const Result<Problem> problem = TransposedProblem(attributes, *inputs.X, *inputs.W);
  if (!problem.ok()) {
    return problem.status();
  }
  const cuda::CurrentDevice current(**device);
  return RunWithBias(
      context, **device, Primitive::kBackwardData,
      WithStrides(*problem, outputs.Y->strides, inputs.W->strides, inputs.X->strides),
      {nullptr, inputs.W->data, inputs.X->data}, inputs.B, *outputs.Y);
}

Status ConvTransposeGrad::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  const Result<const DeviceInfo*> device = cuda::OpenCall(context);
  if (!device.ok()) {
    return device.status();
  }
  const Result<Problem> problem = TransposedProblem(attributes, *inputs.X, *inputs.W);
  if (!problem.ok()) {
    return problem.status();
  }
  const cuda::CurrentDevice current(**device);
  Status status;
  if (IsPresent(outputs.dX)) {
    status = RunPrimitive(
        context, **device, Primitive::kForward,
        WithStrides(*problem, inputs.dY->strides, inputs.W->strides, outputs.dX->strides),
        {inputs.dY->data, inputs.W->data, nullptr}, *outputs.dX);
  }
  if (status.ok() && IsPresent(outputs.dW)) {
    status = RunPrimitive(
        context, **device, Primitive::kBackwardFilter,
        WithStrides(*problem, inputs.dY->strides, outputs.dW->strides, inputs.X->strides),
        {inputs.dY->data, nullptr, inputs.X->data}, *outputs.dW);
  }
  if (status.ok() && IsPresent(outputs.dB)) {
    status = BackwardBias(context, **device, *inputs.dY, *outputs.dB);
  }
  return status;
}

}  // namespace gradsmith::conv
