#include "batch_norm/cuda/check.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "batch_norm/cuda/check_arguments.h"
#include "batch_norm/cuda/task.h"
#include "cuda/driver.h"
#include "cuda/exactness.h"
#include "cuda/kernel_images.h"
#include "cuda/module.h"

namespace gradsmith::batch_norm {

namespace {

using check::Samples;
using check::Tensor;
using cuda::OpTask;

/// A tensor's batch and spatial axes.
template <typename Visitor>
void ForEachSampleDim(const Dims& dims, const Visitor& visit) {
  visit(0, 0);
  for (int i = 2; i < dims.size(); ++i) {
    visit(i, i - 1);
  }
}

Samples SamplesOf(const OpTask& task) {
  const Dims& dims = XOf(task).dims;
  Samples samples{};
  samples.channels = dims[1];
  samples.checked = std::min(dims[1], check::kMaxChannels);
  samples.count = SamplesPerChannel(task);
  std::ranges::fill(samples.dims, 1);
  ForEachSampleDim(dims, [&](int from, int to) { samples.dims[to] = dims[from]; });
  return samples;
}

/// `before` is what an output that is added to was before, laid out alike.
Tensor ToTensor(const OpTask& task, int operand, const void* before = nullptr) {
  const TensorRef& ref = task.tensors[operand];
  Tensor tensor{};
  if (!ref.present) {
    return tensor;
  }
  tensor.data = ref.data;
  tensor.before = before;
  tensor.type = static_cast<int>(ref.type);
  tensor.channel_stride = ref.strides[IsPerElement(ref) ? 1 : 0];
  if (IsPerElement(ref)) {
    ForEachSampleDim(ref.dims, [&](int from, int to) { tensor.strides[to] = ref.strides[from]; });
  }
  return tensor;
}

template <typename Arguments>
Status LaunchCheck(
    const char* name,
    CUstream stream,
    const Arguments& arguments,
    cuda::Difference* differences) {
  const Result<CUkernel> kernel = cuda::FindKernel({&cuda::kImage_batch_norm_check}, name);
  if (!kernel.ok()) {
    return kernel.status();
  }
  const cuda::LaunchShape shape = {
      .blocks_x = static_cast<unsigned>(arguments.samples.checked), .threads = check::kThreads};
  return cuda::Launch(*kernel, shape, stream, arguments, differences);
}

/// How often inputs are filled so that all kinds of data that hurts are among the channels that are
/// checked.
int HurtfulFills(const OpTask& task) {
  const std::int64_t checked = SamplesOf(task).checked;
  return static_cast<int>((check::kHurtfulKinds + checked - 1) / checked);
}

Status FillHurtful(CUstream stream, const OpTask& task, int number) {
  const auto tensor = [&](int operand) { return ToTensor(task, operand); };
  check::Hurt arguments{};
  arguments.samples = SamplesOf(task);
  arguments.first = number * arguments.samples.checked;
  if (DirectionOf(task) == Direction::kForward) {
    arguments.X = tensor(forward::kX);
  } else {
    arguments.X = tensor(backward::kX);
    arguments.dY = tensor(backward::kDY);
    arguments.saved_mean = tensor(backward::kSavedMean);
    arguments.saved_inv_std = tensor(backward::kSavedInvStd);
    arguments.bias = tensor(backward::kB);
  }
  const Result<CUkernel> kernel =
      cuda::FindKernel({&cuda::kImage_batch_norm_check}, "gradsmith_bn_hurt");
  if (!kernel.ok()) {
    return kernel.status();
  }
  const cuda::LaunchShape shape = {
      .blocks_x =
          static_cast<unsigned>(std::min(arguments.samples.channels, check::kMostHurtBlocks)),
      .threads = check::kThreads};
  return cuda::Launch(*kernel, shape, stream, arguments);
}

/// Writes how far the outputs that the trial's last run left are from what is expected to device
/// memory: one difference for each output, zero for absent ones. `not_finite` counts elements that
/// are not finite and should be, or the other way round.
Status CheckChannels(cuda::Trial& trial, const OpTask& task) {
  cuda::Difference* differences = trial.difference();
  if (Status status = cuda::ToStatus(
          cuda::Driver().cuMemsetD8Async(
              reinterpret_cast<CUdeviceptr>(differences), 0,
              static_cast<std::size_t>(task.operands() - task.inputs()) * sizeof(*differences),
              trial.stream()),
          "clearing differences");
      !status.ok()) {
    return status;
  }
  const auto tensor = [&](int operand) {
    return ToTensor(task, operand, trial.Before(static_cast<std::size_t>(operand)));
  };
  if (DirectionOf(task) == Direction::kForward) {
    const check::Forward arguments = {
        .samples = SamplesOf(task),
        .epsilon = task.scalars[forward::kEpsilon],
        .momentum = task.scalars[forward::kMomentum],
        .relu = ActivationOf(task) == Activation::kRelu,
        .X = tensor(forward::kX),
        .scale = tensor(forward::kScale),
        .bias = tensor(forward::kB),
        .running_mean = tensor(forward::kRunningMean),
        .running_var = tensor(forward::kRunningVar),
        .Y = tensor(forward::kY),
        .new_mean = tensor(forward::kNewRunningMean),
        .new_var = tensor(forward::kNewRunningVar),
        .saved_mean = tensor(forward::kSavedMean),
        .saved_inv_std = tensor(forward::kSavedInvStd)};
    return LaunchCheck("gradsmith_bn_check_forward", trial.stream(), arguments, differences);
  }
  const check::Backward arguments = {
      .samples = SamplesOf(task),
      .dY = tensor(backward::kDY),
      .X = tensor(backward::kX),
      .scale = tensor(backward::kScale),
      .bias = tensor(backward::kB),
      .saved_mean = tensor(backward::kSavedMean),
      .saved_inv_std = tensor(backward::kSavedInvStd),
      .dX = tensor(backward::kDX),
      .dScale = tensor(backward::kDScale),
      .dBias = tensor(backward::kDBias)};
  return LaunchCheck("gradsmith_bn_check_backward", trial.stream(), arguments, differences);
}

/// Sums of what is not double are not as exact as a double that they are stored in.
DataType ComparedAs(const OpTask& task, const TensorRef& output) {
  return output.type == DataType::kDouble ? XOf(task).type : output.type;
}

/// Whatever is summed, an element of a large output has few roundings; sums of floats have more.
cuda::Exactness ExactnessOf(const TensorRef& output, bool usual) {
  if (usual) {
    return cuda::Exactness::kUsual;
  }
  return IsPerElement(output) ? cuda::Exactness::kPromised : cuda::Exactness::kStrict;
}

Result<double> Compare(cuda::Trial& trial, const OpTask& task, bool usual) {
  if (Status status = CheckChannels(trial, task); !status.ok()) {
    return status;
  }
  const auto differences = trial.ReadAll();
  if (!differences.ok()) {
    return differences.status();
  }
  const auto terms = static_cast<double>(SamplesPerChannel(task));
  double largest = 0;
  for (int i = task.inputs(); i < task.operands(); ++i) {
    const TensorRef& output = task.tensors[i];
    if (!output.present) {
      continue;
    }
    cuda::Difference difference = differences->at(i - task.inputs());
    const double error = difference.largest_error;
    difference.squared_error = error * error;
    difference.squared_expected = 1;
    if (Status status = cuda::CheckDifference(
            difference, ComparedAs(task, output), terms, ExactnessOf(output, usual));
        !status.ok()) {
      return status.WithPrefix(std::string(task.op->operands[i]) + " ");
    }
    largest = std::max(largest, error);
  }
  return largest;
}

}  // namespace

constinit const cuda::Comparison kChannelsComparison = {
    .compare = &Compare,
    .hurtful_fills = &HurtfulFills,
    .fill_hurtful = &FillHurtful,
    .what_hurts = "constants, large means or numbers near the type's limits"};

}  // namespace gradsmith::batch_norm
