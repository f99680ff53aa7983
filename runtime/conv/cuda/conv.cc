#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "conv/cuda/search_space.h"
#include "conv/cuda/task.h"
#include "conv/kernels.h"
#include "conv/problem.h"
#include "cuda/selected_run.h"
#include "cuda/tensor_ops.h"
#include "cuda/thread_state.h"
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
        call_.device, call_.stream(), task_, operands_,
        cuda::PolicyOf(call_.context, task_.problem.type));
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

/// Whether the gradients of x and w are quicker side by side than one after the other: what one
/// leaves of the device, the other fills. But those of half and bf16 that wait for memory evict
/// from the cache what they both read (docs/performance.md).
bool ArePromisingSideBySide(const Problem& problem) {
  constexpr double kEnoughForEachByte = 95;  // multiplications and additions
  const double terms = TermsOf({.primitive = Primitive::kForward, .problem = problem});
  const auto x = static_cast<double>(NumElements(DimsOf(problem, kX)));
  const auto y = static_cast<double>(NumElements(DimsOf(problem, kY)));
  const auto size = static_cast<double>(SizeOf(problem.type));
  return SizeOf(problem.type) > 2 || 4 * y * terms >= kEnoughForEachByte * (2 * x + y) * size;
}

/// A primitive with its tensors, one of which is its result.
struct PrimitiveCall {
  Primitive primitive = Primitive::kForward;
  ConstTensorRef x;
  ConstTensorRef w;
  ConstTensorRef y;
};

/// Steps computes the outputs of a call. All that can fail or take long is done first. They go side
/// by side where the call is recorded and nothing is shared, each with its part of the workspace,
/// and otherwise one after the other.
class Steps {
 public:
  /// `shared` is the operand that several outputs are computed from: where they need the same copy
  /// of it, it is made once.
  Steps(const Call& call, Operand shared) : call_(call), shared_(shared) {}

  /// Adds what a primitive computes. A tensor's strides are its own, its dims the problem's.
  Status Add(const PrimitiveCall& primitive) {
    const std::array<ConstTensorRef, kOperands> tensors = {primitive.x, primitive.w, primitive.y};
    const ConstTensorRef& result = tensors.at(ResultOf(primitive.primitive));
    const Task task = TaskOf(primitive, tensors);
    if (NumElements(result.dims) == 0) {
      return {};
    }
    std::array<void*, kOperands> operands{};
    for (const Operand operand : {kX, kW, kY}) {
      if (NumElements(DimsOf(task.problem, operand)) == 0) {
        return RunEmpty(call_, Writable(result));
      }
      operands.at(operand) = const_cast<void*>(tensors.at(operand).data);
    }
    internal::ProblemKey key;
    AddTo(task, &key);
    cuda::AddPolicy(call_.context, call_.device, task.problem.type, &key);
    const Result<internal::Plan*> plan = cuda::FindPlan(
        call_.context, call_.device, task.problem.type, key, ConvSpaceMaker(call_, task, operands));
    if (!plan.ok()) {
      return plan.status();
    }
    steps_.at(count_++) = {*plan, operands};
    return {};
  }

  /// Adds the sums of dY's channels.
  void AddBias(const ConstTensorRef& dY, const TensorRef& dB) {
    sums_ = cuda::PlanSums(dY, call_.context.workspace_arena()->limit());
    dY_ = &dY;
    dB_ = &dB;
  }

  Status Run() {
    const Result<internal::WorkspaceArena::Lease> lease =
        call_.context.workspace_arena()->Take(PlaceAll());
    if (!lease.ok() || call_.context.preparing()) {
      return lease.status();
    }
    const auto enqueue = [&](cuda::Branches& branches) {
      return Enqueue(branches, static_cast<std::byte*>(lease->address));
    };
    if (const bool has_work = count_ > 0 || dB_ != nullptr; !has_work || lease->capturing) {
      cuda::Branches alone(call_.stream());
      return enqueue(alone);
    }
    return cuda::ThreadState::OfThisThread(call_.device)
        .call_graphs()
        .Run(call_.stream(), Key(lease->address), enqueue);
  }

 private:
  struct Step {
    internal::Plan* plan = nullptr;
    std::array<void*, kOperands> operands = {};
    /// Where its workspace begins.
    std::size_t offset = 0;
  };

  /// Places every step's workspace and returns the size of all: one behind the other where they may
  /// go side by side, all at the beginning where that would take much more.
  std::size_t PlaceAll() {
    constexpr std::size_t kMostForIt = std::size_t{64} << 20U;
    std::size_t all = RoundedUp(sums_.workspace);
    std::size_t largest = all;
    for (int i = 0; i < count_; ++i) {
      Step& step = steps_.at(i);
      const std::size_t size = RoundedUp(step.plan->workspace());
      step.offset = i > 0 && SharesCopy() ? steps_[0].offset : all;
      all = std::max(all, step.offset + size);
      largest = std::max(largest, size);
    }
    const std::size_t limit = call_.context.workspace_arena()->limit();
    if (all <= limit && all - largest <= kMostForIt && ArePromisingSideBySide(call_.problem)) {
      side_by_side_ = true;
      return all;
    }
    for (Step& step : steps_) {
      step.offset = 0;
    }
    return std::min(largest, limit);
  }

  static std::size_t RoundedUp(std::size_t bytes) {
    constexpr std::size_t kAlignment = 256;
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  /// All that the work depends on: dY's sums on its layout as well, which no plan has.
  [[nodiscard]] internal::ProblemKey Key(void* workspace) const {
    internal::ProblemKey key;
    const auto add = [&key](const void* address) { key.Add(cuda::AddressWord(address)); };
    add(workspace);
    for (int i = 0; i < count_; ++i) {
      const Step& step = steps_.at(i);
      key.Add(static_cast<std::int64_t>(step.plan->serial()));
      std::for_each(step.operands.begin(), step.operands.end(), add);
    }
    if (dB_ != nullptr) {
      add(dY_->data);
      add(dB_->data);
      key.Add(static_cast<std::int64_t>(dY_->type) + (dB_->accumulate ? 256 : 0));
      key.Add(dY_->dims);
      key.Add(dY_->strides);
      key.Add(dB_->strides);
    }
    return key;
  }

  Status Enqueue(cuda::Branches& branches, std::byte* workspace) const {
    // dY is still in the cache for those who read it next.
    if (dB_ != nullptr) {
      const Result<CUstream> stream = StreamOf(branches, count_ > 0);
      const Status status =
          stream.ok() ? cuda::SumChannels(*stream, sums_, *dY_, *dB_, workspace) : stream.status();
      if (!status.ok()) {
        return status;
      }
    }
    const bool shares = SharesCopy();
    for (int i = 0; i < count_; ++i) {
      // The last one is on the call's stream, which has been given nothing before it.
      const Result<CUstream> stream = StreamOf(branches, i + 1 < count_ && !shares);
      const Status status = stream.ok() ? Enqueue(steps_.at(i), *stream, workspace, shares && i > 0)
                                        : stream.status();
      if (!status.ok()) {
        return status;
      }
    }
    return {};
  }

  Status Enqueue(const Step& step, CUstream stream, std::byte* workspace, bool is_copied) const {
    return step.plan->Run(
        {.stream = stream,
         .operands = step.operands,
         .workspace = workspace + step.offset,
         .first_copied = step.plan->CopyOf(shared_) == nullptr ? -1 : shared_,
         .is_copied = is_copied});
  }

  /// Whether the second step finds the copy of a shared operand that the first one leaves.
  [[nodiscard]] bool SharesCopy() const {
    if (count_ < 2) {
      return false;
    }
    const internal::OperandCopy* first = steps_[0].plan->CopyOf(shared_);
    const internal::OperandCopy* second = steps_[1].plan->CopyOf(shared_);
    return first != nullptr && second != nullptr && *first == *second;
  }

  /// The call's stream, or another for work that others need not wait for.
  Result<CUstream> StreamOf(cuda::Branches& branches, bool may_fork) const {
    return may_fork && side_by_side_ ? branches.Fork() : branches.stream();
  }

  static TensorRef Writable(const ConstTensorRef& result) {
    TensorRef writable(
        result.type, const_cast<void*>(result.data), result.dims, result.strides, result.device);
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
  std::array<Step, 2> steps_;
  int count_ = 0;
  cuda::SumPlan sums_;
  const ConstTensorRef* dY_ = nullptr;
  const TensorRef* dB_ = nullptr;
  bool side_by_side_ = false;
};

/// Runs a primitive alone.
Status RunPrimitive(const Call& call, const PrimitiveCall& primitive) {
  Steps steps(call, ResultOf(primitive.primitive));
  const Status status = steps.Add(primitive);
  return status.ok() ? steps.Run() : status;
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

/// The outputs of one of the gradients.
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
    const Gradients& outputs,
    const Data& data,
    const Filter& filter) {
  Steps steps(call, shared);
  Status status;
  if (IsPresent(outputs.dX)) {
    status = steps.Add(data(*outputs.dX));
  }
  if (status.ok() && IsPresent(outputs.dW)) {
    status = steps.Add(filter(*outputs.dW));
  }
  if (status.ok() && IsPresent(outputs.dB)) {
    steps.AddBias(dY, *outputs.dB);
  }
  return status.ok() ? steps.Run() : status;
}

}  // namespace

Status Conv::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Open(context, ConvolutionProblem(attributes, *inputs.X, *inputs.W), [&](const Call& call) {
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
  return Open(context, ConvolutionProblem(attributes, *inputs.X, *inputs.W), [&](const Call& call) {
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
  return Open(context, TransposedProblem(attributes, *inputs.X, *inputs.W), [&](const Call& call) {
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
  return Open(context, TransposedProblem(attributes, *inputs.X, *inputs.W), [&](const Call& call) {
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
