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

/// Call is an op's call with its convolution worked out; strides are left empty.
struct Call {
  const Context& context;
  const DeviceInfo& device;
  const Problem& problem;

  [[nodiscard]] CUstream stream() const { return static_cast<CUstream>(context.options().stream); }
};

/// Calls run(call) with the context's device current.
template <typename Run>
Status Open(const Context& context, const Result<Problem>& problem, const Run& run) {
  const Result<const DeviceInfo*> device = cuda::OpenCall(context);
  if (!device.ok()) {
    return device.status();
  }
  if (!problem.ok()) {
    return problem.status();
  }
  const cuda::CurrentDevice current(**device);
  return run(Call{context, **device, *problem});
}

template <typename Ref>
bool IsPresent(const Ref* tensor) {
  return tensor != nullptr && tensor->present;
}

class ConvSpaceMaker final : public cuda::SpaceMaker {
 public:
  ConvSpaceMaker(const Call& call, const Task& task, const std::array<void*, kOperands>& operands)
      : call_(call), task_(task), operands_(operands) {}

  [[nodiscard]] std::unique_ptr<internal::SearchSpace> Make() const override {
    return std::make_unique<ConvSearchSpace>(
        call_.device, call_.stream(), task_, operands_, call_.context.options().allow_tf32);
  }

 private:
  const Call& call_;
  const Task& task_;
  const std::array<void*, kOperands>& operands_;
};

/// Nothing is summed: the result is zero, or what was there.
Status RunEmpty(const Call& call, const TensorRef& result) {
  if (result.accumulate || call.context.preparing()) {
    return {};
  }
  return cuda::FillTensor(call.device, call.stream(), 0, result);
}

/// Runs a primitive whose result is `result`, one of x, w and y. `problem` is the call's with their
/// strides.
Status RunPrimitive(
    const Call& call,
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
      return RunEmpty(call, result);
    }
    operands.at(operand) =
        operand == ResultOf(primitive) ? result.data : const_cast<void*>(inputs.at(operand));
    task.alignment.at(operand) = cuda::AlignmentClass(operands.at(operand), problem.type);
  }
  internal::ProblemKey key;
  AddTo(task, &key);
  cuda::AddPolicy(call.context, call.device, problem.type, &key);
  const ConvSpaceMaker maker(call, task, operands);
  return cuda::RunSelected(call.context, call.device, problem.type, key, operands, maker);
}

Status
Forward(const Call& call, const ConstTensorRef& x, const ConstTensorRef& w, const TensorRef& y) {
  return RunPrimitive(
      call, Primitive::kForward, WithStrides(call.problem, x.strides, w.strides, y.strides),
      {x.data, w.data, nullptr}, y);
}

Status BackwardData(
    const Call& call,
    const ConstTensorRef& y,
    const ConstTensorRef& w,
    const TensorRef& x) {
  return RunPrimitive(
      call, Primitive::kBackwardData, WithStrides(call.problem, x.strides, w.strides, y.strides),
      {nullptr, w.data, y.data}, x);
}

Status BackwardFilter(
    const Call& call,
    const ConstTensorRef& x,
    const ConstTensorRef& y,
    const TensorRef& w) {
  return RunPrimitive(
      call, Primitive::kBackwardFilter, WithStrides(call.problem, x.strides, w.strides, y.strides),
      {x.data, nullptr, y.data}, w);
}

Status BackwardBias(const Call& call, const ConstTensorRef& dY, const TensorRef& dB) {
  Result<internal::WorkspaceArena::Lease> lease =
      call.context.workspace_arena()->Take(cuda::SumChannelsWorkspace(call.device, dY));
  if (!lease.ok() || call.context.preparing()) {
    return lease.status();
  }
  return cuda::SumChannels(call.device, call.stream(), dY, dB, lease->address);
}

/// Fills y with the bias of each channel, to which the convolution is then added: one rounding, and
/// no pass more than adding the bias afterwards.
Status FillWithBias(const Call& call, const ConstTensorRef& bias, const TensorRef& y) {
  if (call.context.preparing()) {
    return {};
  }
  Strides strides = Strides::Filled(y.rank(), 0);
  strides[1] = bias.strides[0];
  const ConstTensorRef broadcast(bias.type, bias.data, y.dims, strides, bias.device);
  return cuda::CopyTensor(call.device, call.stream(), broadcast, y);
}

/// Makes an op's Y by run(y), with the bias where there is one.
template <typename Run>
Status WithBias(const Call& call, const ConstTensorRef* bias, const TensorRef& y, const Run& run) {
  if (!IsPresent(bias)) {
    return run(y);
  }
  if (Status status = FillWithBias(call, *bias, y); !status.ok()) {
    return status;
  }
  return run(y.Accumulating());
}

/// The status, or that of run(output) where all is well so far and the output is wanted.
template <typename Run>
Status Then(const Status& status, const TensorRef* output, const Run& run) {
  return status.ok() && IsPresent(output) ? run(*output) : status;
}

}  // namespace

Status Conv::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Open(context, ConvolutionProblem(attributes, *inputs.X, *inputs.W), [&](const Call& call) {
    return WithBias(call, inputs.B, *outputs.Y, [&](const TensorRef& y) {
      return Forward(call, *inputs.X, *inputs.W, y);
    });
  });
}

Status ConvGrad::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Open(context, ConvolutionProblem(attributes, *inputs.X, *inputs.W), [&](const Call& call) {
    Status status = Then({}, outputs.dX, [&](const TensorRef& dX) {
      return BackwardData(call, *inputs.dY, *inputs.W, dX);
    });
    status = Then(status, outputs.dW, [&](const TensorRef& dW) {
      return BackwardFilter(call, *inputs.X, *inputs.dY, dW);
    });
    return Then(status, outputs.dB, [&](const TensorRef& dB) {
      return BackwardBias(call, *inputs.dY, dB);
    });
  });
}

Status ConvTranspose::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Open(context, TransposedProblem(attributes, *inputs.X, *inputs.W), [&](const Call& call) {
    return WithBias(call, inputs.B, *outputs.Y, [&](const TensorRef& y) {
      return BackwardData(call, *inputs.X, *inputs.W, y);
    });
  });
}

Status ConvTransposeGrad::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Open(context, TransposedProblem(attributes, *inputs.X, *inputs.W), [&](const Call& call) {
    Status status = Then({}, outputs.dX, [&](const TensorRef& dX) {
      return Forward(call, *inputs.dY, *inputs.W, dX);
    });
    status = Then(status, outputs.dW, [&](const TensorRef& dW) {
      return BackwardFilter(call, *inputs.dY, *inputs.X, dW);
    });
    return Then(status, outputs.dB, [&](const TensorRef& dB) {
      return BackwardBias(call, *inputs.dY, dB);
    });
  });
}

}  // namespace gradsmith::conv
