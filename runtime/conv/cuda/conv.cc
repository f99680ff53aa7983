#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "conv/cuda/call_plan.h"
#include "conv/cuda/search_space.h"
#include "conv/cuda/together.h"
#include "conv/kernels.h"
#include "conv/problem.h"
#include "conv/task.h"
#include "core/arguments.h"
#include "cuda/alignment.h"
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

/// Nothing is summed: the result is zero, or what was there.
Status RunEmpty(const Call& call, const TensorRef& result) {
  if (result.accumulate || call.context.preparing()) {
    return {};
  }
  return cuda::FillTensor(call.device, call.stream(), 0, result);
}

/// A primitive with its tensors, one of which is its result.
struct PrimitiveCall {
  Primitive primitive = Primitive::kForward;
  ConstTensorRef x;
  ConstTensorRef w;
  ConstTensorRef y;
};

/// CallOutputs computes what a call asks for. All that can fail or take long is done first.
class CallOutputs {
 public:
  /// `shared` is the operand that several outputs are computed from.
  CallOutputs(const Call& call, Operand shared) : call_(call), shared_(shared) {}

  /// Adds what a primitive computes. A tensor's strides are its own, its dims the problem's.
  Status Add(const PrimitiveCall& primitive) {
    const std::array<ConstTensorRef, kOperands> tensors = {primitive.x, primitive.w, primitive.y};
    const Operand result = ResultOf(primitive.primitive);
    if (NumElements(tensors.at(result).dims) == 0) {
      return {};
    }
    ReadyTask& ready = tasks_.at(count_);
    ready.task = TaskOf(primitive, tensors);
    const Task& task = ready.task;
    std::array<void*, kOperands> operands{};
    for (const Operand operand : {kX, kW, kY}) {
      if (NumElements(DimsOf(task.problem, operand)) == 0) {
        return RunEmpty(call_, Writable(tensors.at(result)));
      }
      operands.at(operand) = const_cast<void*>(tensors.at(operand).data);
      addresses_.at(PlaceOf(result, operand)) = operands.at(operand);
    }
    ready.key = {};
    AddTo(task, &ready.key);
    cuda::AddPolicy(
        call_.context, cuda::OriginOf(call_.device, kRevision), task.problem.type, &ready.key);
    const auto make = [&] {
      return std::make_unique<ConvSearchSpace>(
          call_.device, call_.stream(), task, operands,
          cuda::PolicyOf(call_.context, task.problem.type));
    };
    const Result<internal::Plan*> plan =
        cuda::FindPlan(call_.context, call_.device, task.problem.type, ready.key, std::cref(make));
    if (!plan.ok()) {
      return plan.status();
    }
    ready.plan = *plan;
    ++count_;
    return {};
  }

  /// Adds the sums of dY's channels.
  void AddBias(const ConstTensorRef& dY, const TensorRef& dB) {
    sums_ = {dY, dB, cuda::PlanSums(dY, call_.context.workspace_arena()->limit())};
    has_sums_ = true;
    addresses_.at(kInputs + shared_) = const_cast<void*>(dY.data);
    addresses_.at(kSums) = dB.data;
  }

  Status Run() {
    if (count_ == 0 && !has_sums_) {
      return {};
    }
    CallPlan& plan = FindCallPlan(
        call_.context, call_.device, std::span(tasks_).first(count_), has_sums_ ? &sums_ : nullptr,
        shared_, addresses_);
    // Rounded up it may be more than a limit that each plan respects.
    cuda::PlannedCall planned = {
        .plan = plan,
        .workspace = std::min(plan.workspace(), call_.context.workspace_arena()->limit())};
    cuda::AddAddresses(addresses_, &planned.key);
    std::array<internal::Plan*, 2> parts{};
    for (std::size_t i = 0; i < count_; ++i) {
      parts.at(i) = tasks_.at(i).plan;
    }
    planned.uses = std::span(parts).first(count_);
    const auto enqueue = [&](cuda::Branches& branches, void* workspace) {
      return plan.Enqueue(branches, addresses_, workspace);
    };
    return Explained(cuda::RunPlanned(call_.context, call_.device, &planned, std::cref(enqueue)));
  }

 private:
  [[nodiscard]] Status Explained(const Status& status) const {
    if (status.ok()) {
      return status;
    }
    std::string what;
    for (const ReadyTask& ready : std::span(tasks_).first(count_)) {
      what += (what.empty() ? "" : " and ") + Describe(ready.task);
    }
    return cuda::Explained(
        call_.context, call_.problem.type, what.empty() ? "the bias gradient" : what, status);
  }

  static TensorRef Writable(const ConstTensorRef& result) {
    TensorRef writable = internal::Unconst(result);
    writable.accumulate = result.accumulate;
    return writable;
  }

  [[nodiscard]] Task TaskOf(
      const PrimitiveCall& primitive,
      const std::array<ConstTensorRef, kOperands>& tensors) const {
    Task task;
    task.primitive = primitive.primitive;
    task.problem = call_.problem;
    task.accumulate = tensors.at(ResultOf(primitive.primitive)).accumulate;
    for (const Operand operand : {kX, kW, kY}) {
      StridesOf(task.problem, operand) = tensors.at(operand).strides;
      task.alignment.at(operand) =
          cuda::AlignmentClass(tensors.at(operand).data, task.problem.type);
    }
    return task;
  }

  const Call& call_;
  Operand shared_;
  std::array<ReadyTask, 2> tasks_;
  std::size_t count_ = 0;
  BiasSums sums_;
  bool has_sums_ = false;
  CallAddresses addresses_{};
};

/// Runs a primitive alone.
Status RunPrimitive(const Call& call, const PrimitiveCall& primitive) {
  CallOutputs outputs(call, ResultOf(primitive.primitive));
  const Status status = outputs.Add(primitive);
  return status.ok() ? outputs.Run() : status;
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

/// What one of the gradients may be asked for.
struct Gradients {
  const TensorRef* dX;
  const TensorRef* dW;
  const TensorRef* dB;
};

/// Computes those outputs that are wanted, by `data` and `filter`, which are given where the result
/// goes. `shared` is dY's place among the operands.
template <typename Data, typename Filter>
Status RunGradients(
    const Call& call,
    Operand shared,
    const ConstTensorRef& dY,
    const Gradients& gradients,
    const Data& data,
    const Filter& filter) {
  CallOutputs outputs(call, shared);
  Status status;
  if (IsPresent(gradients.dX)) {
    status = outputs.Add(data(*gradients.dX));
  }
  if (status.ok() && IsPresent(gradients.dW)) {
    status = outputs.Add(filter(*gradients.dW));
  }
  if (status.ok() && IsPresent(gradients.dB)) {
    outputs.AddBias(dY, *gradients.dB);
  }
  return status.ok() ? outputs.Run() : status;
}

}  // namespace

Status Conv::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Open(context, ConvolutionProblem(attributes, inputs, outputs), [&](const Call& call) {
    return WithBias(call, inputs.B, *outputs.Y, [&](const TensorRef& y) {
      return RunPrimitive(call, {Primitive::kForward, *inputs.X, *inputs.W, y});
    });
  });
}

Status ConvGrad::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Open(context, ConvolutionProblem(attributes, inputs, outputs), [&](const Call& call) {
    return RunGradients(
        call, kY, *inputs.dY, {outputs.dX, outputs.dW, outputs.dB},
        [&](const TensorRef& dX) -> PrimitiveCall {
          return {Primitive::kBackwardData, dX, *inputs.W, *inputs.dY};
        },
        [&](const TensorRef& dW) -> PrimitiveCall {
          return {Primitive::kBackwardFilter, *inputs.X, dW, *inputs.dY};
        });
  });
}

Status ConvTranspose::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Open(context, TransposedProblem(attributes, inputs, outputs), [&](const Call& call) {
    return WithBias(call, inputs.B, *outputs.Y, [&](const TensorRef& y) {
      return RunPrimitive(call, {Primitive::kBackwardData, y, *inputs.W, *inputs.X});
    });
  });
}

Status ConvTransposeGrad::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Open(context, TransposedProblem(attributes, inputs, outputs), [&](const Call& call) {
    return RunGradients(
        call, kX, *inputs.dY, {outputs.dX, outputs.dW, outputs.dB},
        [&](const TensorRef& dX) -> PrimitiveCall {
          return {Primitive::kForward, *inputs.dY, *inputs.W, dX};
        },
        [&](const TensorRef& dW) -> PrimitiveCall {
          return {Primitive::kBackwardFilter, *inputs.dY, dW, *inputs.X};
        });
  });
}

}  // namespace gradsmith::conv
