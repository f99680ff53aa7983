#include "batch_norm/cuda/held.h"

#include <algorithm>
#include <bit>
#include <string_view>

#include "batch_norm/activation.h"
#include "batch_norm/cuda/finish.h"
#include "core/tiles.h"
#include "cuda/kernel_images.h"
#include "cuda/kernel_table.h"
#include "cuda/module.h"

namespace gradsmith::batch_norm {

namespace {

using internal::CeilDivide;

/// What memory moves at once.
constexpr std::int64_t kSectorBytes = 32;

/// MostElementsOfBlock counts the elements of dY alone: a block holds as many of X.
std::int64_t MostElementsOfBlock(DataType type) {
  return own::kMostHeldBytes / 2 / static_cast<std::int64_t>(SizeOf(type));
}

/// Channels of a block: one where those of a sample lie apart. Where they lie side by side, as many
/// as a sector of memory has, or more where that leaves blocks enough, or fewer where samples are
/// many or blocks few.
std::int64_t
ChannelsOfBlock(const own::HeldOrder& order, const ConstTensorRef& dY, const ConstTensorRef& X) {
  const std::int64_t channels = X.dims[1];
  if (channels == 1 || X.strides[1] != 1 || dY.strides[1] != 1) {
    return 1;
  }
  const std::int64_t samples = own::SamplesPerChannel(X.dims);
  const std::int64_t most = MostElementsOfBlock(X.type);
  std::int64_t together = kSectorBytes / static_cast<std::int64_t>(SizeOf(X.type));
  while (together < own::kMostHeldChannels && channels >= 2 * together * order.many_blocks &&
         2 * together * samples <= most) {
    together *= 2;
  }
  while (together > order.least_channels &&
         (together * samples > most || channels < together * order.few_blocks)) {
    together /= 2;
  }
  const auto all = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(channels)));
  return std::min(together, all);
}

/// Threads have few elements where blocks are few.
int ThreadsOfBlock(const own::HeldOrder& order, std::int64_t elements, std::int64_t blocks) {
  const std::int64_t of_thread =
      blocks >= order.many_blocks ? order.elements_of_thread : order.elements_of_thread_of_few;
  const auto wanted = static_cast<std::uint64_t>(CeilDivide(elements, of_thread));
  return static_cast<int>(std::clamp<std::uint64_t>(
      std::bit_ceil(wanted), static_cast<std::uint64_t>(order.least_threads),
      std::uint64_t{own::kHeldThreads}));
}

Result<CUkernel> FindHeld(const cuda::DeviceInfo& device, Activation activation, DataType type) {
  static auto& plain = *new cuda::DeviceKernelTable(cuda::kImage_batch_norm);
  static auto& relu = *new cuda::DeviceKernelTable(cuda::kImage_batch_norm_relu);
  const auto find = [&](cuda::DeviceKernelTable& table, std::string_view name) {
    return table.Find(device.ordinal(), 0, name, type, own::kMostHeldBytes);
  };
  return activation == Activation::kNone ? find(plain, "gradsmith_bn_held_backward")
                                         : find(relu, "gradsmith_bn_relu_held_backward");
}

}  // namespace

std::optional<HeldShape> HeldShapeOf(
    const own::Policy& policy,
    const ConstTensorRef& dY,
    const ConstTensorRef& X,
    const ConstTensorRef* dX) {
  const own::HeldOrder& order = policy.order.held;
  const std::int64_t channels = X.dims[1];
  const std::int64_t samples = own::SamplesPerChannel(X.dims);
  if (samples < 2 || samples > MostElementsOfBlock(X.type) || channels < 1 ||
      channels > order.most_elements / samples) {
    return std::nullopt;
  }
  const std::int64_t together = ChannelsOfBlock(order, dY, X);
  HeldShape shape;
  shape.plan = own::DimsPlan({&dY, &X, dX});
  const auto& counts = shape.plan.walk.counts;
  if (together * samples > MostElementsOfBlock(X.type) ||
      counts[own::kInner] * counts[own::kInner - 1] != samples) {
    return std::nullopt;
  }
  shape.plan.operands.accumulate = dX != nullptr && dX->accumulate;
  shape.plan.blocks_x = CeilDivide(channels, together);
  shape.threads = ThreadsOfBlock(order, together * samples, shape.plan.blocks_x);
  shape.walk.channels = static_cast<int>(together);
  shape.walk.lanes = shape.threads / shape.walk.channels;
  shape.walk.inner = cuda::DivisorOf(counts[own::kInner]);
  // A thread's elements lie a block's threads apart.
  shape.shared_bytes = static_cast<int>(
      2 * CeilDivide(samples, shape.walk.lanes) * shape.threads *
      static_cast<std::int64_t>(SizeOf(X.type)));
  return shape;
}

Status HeldBackward(
    const cuda::DeviceInfo& device,
    CUstream stream,
    const BatchNormalizationReluGrad::Inputs& inputs,
    const BatchNormalizationGrad::Outputs& outputs) {
  const ConstTensorRef dX = IsPresent(outputs.dX) ? ConstTensorRef(*outputs.dX) : ConstTensorRef();
  const std::optional<HeldShape> shape =
      HeldShapeOf(own::PolicyOf(device), *inputs.dY, *inputs.X, dX.present ? &dX : nullptr);
  if (!shape) {
    return {StatusCode::kUnsupported, "a block does not hold the samples of a channel"};
  }
  const Activation activation = ActivationOf(inputs);
  const bool products = activation != Activation::kNone || dX.present || IsPresent(outputs.dScale);
  if (!products && !IsPresent(outputs.dBias)) {
    return {};
  }
  const Result<CUkernel> kernel = FindHeld(device, activation, inputs.dY->type);
  if (!kernel.ok()) {
    return kernel.status();
  }
  const cuda::LaunchShape launch = {
      .blocks_x = static_cast<unsigned>(shape->plan.blocks_x),
      .threads = static_cast<unsigned>(shape->threads),
      .shared_bytes = static_cast<unsigned>(shape->shared_bytes)};
  return cuda::Launch(
      *kernel, launch, stream, MakeBackwardFinish(inputs, outputs, shape->plan, products),
      shape->plan.operands, shape->walk);
}

}  // namespace gradsmith::batch_norm
