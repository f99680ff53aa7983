#include <array>
#include <memory>
#include <span>

#include "batch_norm/cuda/search_space.h"
#include "batch_norm/cuda/task.h"
#include "batch_norm/kernels.h"
#include "batch_norm/shapes.h"
#include "cuda/selected_run.h"
#include "cuda/workspace_arena.h"

/// The ops on CUDA.
namespace gradsmith::batch_norm {

namespace {

using cuda::DeviceInfo;

CUstream StreamOf(const Context& context) {
  return static_cast<CUstream>(context.options().stream);
}

class BatchNormSpaceMaker final : public internal::SpaceMaker {
 public:
  BatchNormSpaceMaker(const Context& context, const DeviceInfo& device, const Task& task)
      : context_(context), device_(device), task_(task) {}

  [[nodiscard]] std::unique_ptr<internal::SearchSpace> Make() const override {
    return std::make_unique<BatchNormSearchSpace>(
        device_, StreamOf(context_), task_, context_.options().allow_reduced_accuracy);
  }

 private:
  const Context& context_;
  const DeviceInfo& device_;
  const Task& task_;
};

bool WantsNothing(const Task& task) {
  for (int i = InputsOf(task.direction); i < OperandsOf(task.direction); ++i) {
    if (task.tensors.at(i).present) {
      return false;
    }
  }
  return true;
}

/// Runs our own kernels without a choice.
Status RunOwn(
    const Context& context,
    const DeviceInfo& device,
    const Task& task,
    std::span<void* const> operands,
    std::span<const double> scalars) {
  const std::unique_ptr<internal::Plan> plan = MakeOwnPlan(device, task);
  Result<internal::WorkspaceArena::Lease> lease =
      context.workspace_arena()->Take(plan->workspace());
  if (!lease.ok() || context.preparing()) {
    return lease.status();
  }
  return plan->Run({context.options().stream, operands, lease->address, scalars});
}

Status Run(const Context& context, const Task& task, std::span<const double> scalars) {
  const Result<const DeviceInfo*> device = cuda::OpenCall(context);
  if (!device.ok()) {
    return device.status();
  }
  if (WantsNothing(task)) {
    return {};
  }
  const cuda::CurrentDevice current(**device);
  const std::array<void*, kMaxOperands> operands = AddressesOf(task);
  // Of an empty tensor there is nothing to compute, and the variance of a single value is not
  // defined: cuDNN and we need not agree.
  if (NumElements(XOf(task).dims) == 0 || SamplesPerChannel(task) == 1) {
    return RunOwn(context, **device, task, operands, scalars);
  }
  const DataType type = XOf(task).type;
  internal::ProblemKey key;
  AddTo(task, &key);
  cuda::AddPolicy(context, cuda::OriginOf(**device), type, &key);
  const BatchNormSpaceMaker maker(context, **device, task);
  return cuda::RunSelected(context, **device, type, key, operands, maker, scalars);
}

Status RunForward(
    const Context& context,
    Activation activation,
    const Attributes& attributes,
    const BatchNormalization::Inputs& inputs,
    const BatchNormalization::Outputs& outputs) {
  if (Status status = CheckShapes(inputs, outputs); !status.ok()) {
    return status;
  }
  std::array<double, 2> scalars{};
  scalars[forward::kEpsilon] = attributes.epsilon;
  scalars[forward::kMomentum] = attributes.momentum;
  return Run(context, MakeTask(activation, inputs, outputs), scalars);
}

Status RunBackward(
    const Context& context,
    const BatchNormalizationReluGrad::Inputs& inputs,
    const BatchNormalizationGrad::Outputs& outputs) {
  if (Status status = CheckShapes(inputs, outputs); !status.ok()) {
    return status;
  }
  return Run(context, MakeTask(inputs, outputs), {});
}

}  // namespace

Status BatchNormalization::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return RunForward(context, Activation::kNone, attributes, inputs, outputs);
}

Status BatchNormalizationRelu::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return RunForward(context, Activation::kRelu, attributes, inputs, outputs);
}

Status BatchNormalizationGrad::RunCuda(
    const Context& context,
    const Attributes& /*attributes*/,
    const Inputs& inputs,
    const Outputs& outputs) {
  return RunBackward(context, WithoutActivation(inputs), outputs);
}

Status BatchNormalizationReluGrad::RunCuda(
    const Context& context,
    const Attributes& /*attributes*/,
    const Inputs& inputs,
    const Outputs& outputs) {
  return RunBackward(context, inputs, outputs);
}

}  // namespace gradsmith::batch_norm
