#include "batch_norm/cuda/check.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "batch_norm/cuda/check_arguments.h"
#include "cuda/driver.h"
#include "cuda/kernel_images.h"
#include "cuda/module.h"

namespace gradsmith::batch_norm {

namespace {

using check::Samples;
using check::Tensor;

/// A tensor's batch and spatial axes.
template <typename Visitor>
void ForEachSampleDim(const Dims& dims, const Visitor& visit) {
  visit(0, 0);
  for (int i = 2; i < dims.size(); ++i) {
    visit(i, i - 1);
  }
}

Samples SamplesOf(const Task& task) {
  const Dims& dims = XOf(task).dims;
  Samples samples{};
  samples.channels = dims[1];
  samples.checked = std::min(dims[1], check::kMaxChannels);
  samples.count = SamplesPerChannel(task);
  std::ranges::fill(samples.dims, 1);
  ForEachSampleDim(dims, [&](int from, int to) { samples.dims[to] = dims[from]; });
  return samples;
}

Tensor
ToTensor(const Task& task, int operand, const std::array<const void*, kMaxOperands>& before) {
  const TensorRef& ref = task.tensors.at(operand);
  Tensor tensor{};
  if (!ref.present) {
    return tensor;
  }
  tensor.data = ref.data;
  tensor.before = before.at(operand);
  tensor.type = static_cast<int>(ref.type);
  tensor.channel_stride = ref.strides[IsLarge(ref) ? 1 : 0];
  if (IsLarge(ref)) {
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

}  // namespace

int HurtfulFills(const Task& task) {
  const std::int64_t checked = SamplesOf(task).checked;
  return static_cast<int>((check::kHurtfulKinds + checked - 1) / checked);
}

Status FillHurtful(CUstream stream, const Task& task, int number) {
  constexpr std::int64_t kMostBlocks = 1 << 16;
  const auto tensor = [&](int operand) { return ToTensor(task, operand, {}); };
  check::Hurt arguments{};
  arguments.samples = SamplesOf(task);
  arguments.first = number * arguments.samples.checked;
  if (task.direction == Direction::kForward) {
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
      .blocks_x = static_cast<unsigned>(std::min(arguments.samples.channels, kMostBlocks)),
      .threads = check::kThreads};
  return cuda::Launch(*kernel, shape, stream, arguments);
}

Status CheckChannels(
    CUstream stream,
    const Task& task,
    const std::array<const void*, kMaxOperands>& before,
    std::span<const double> scalars,
    cuda::Difference* differences) {
  const int operands = OperandsOf(task.direction);
  if (Status status = cuda::ToStatus(
          cuda::Driver().cuMemsetD8Async(
              reinterpret_cast<CUdeviceptr>(differences), 0,
              static_cast<std::size_t>(operands - InputsOf(task.direction)) * sizeof(*differences),
              stream),
          "clearing differences");
      !status.ok()) {
    return status;
  }
  const auto tensor = [&](int operand) { return ToTensor(task, operand, before); };
  if (task.direction == Direction::kForward) {
    const check::Forward arguments = {
        .samples = SamplesOf(task),
        .epsilon = scalars[forward::kEpsilon],
        .momentum = scalars[forward::kMomentum],
        .relu = task.activation == Activation::kRelu,
        .X = tensor(forward::kX),
        .scale = tensor(forward::kScale),
        .bias = tensor(forward::kB),
        .running_mean = tensor(forward::kRunningMean),
        .running_var = tensor(forward::kRunningVar),
        .Y = tensor(forward::kY),
        .new_mean = tensor(forward::kNewMean),
        .new_var = tensor(forward::kNewVar),
        .saved_mean = tensor(forward::kSavedMean),
        .saved_inv_std = tensor(forward::kSavedInvStd)};
    return LaunchCheck("gradsmith_bn_check_forward", stream, arguments, differences);
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
  return LaunchCheck("gradsmith_bn_check_backward", stream, arguments, differences);
}

}  // namespace gradsmith::batch_norm
