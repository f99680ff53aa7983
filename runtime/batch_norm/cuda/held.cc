#include "batch_norm/cuda/held.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <string_view>

#include "batch_norm/activation.h"
#include "batch_norm/cuda/finish.h"
#include "batch_norm/cuda/own_plan.h"
#include "core/tiles.h"
#include "cuda/kernel_images.h"
#include "cuda/kernel_table.h"

namespace gradsmith::batch_norm {

namespace {

using internal::CeilDivide;

/// What keeps a GPU busy, whichever it is: the order of sums must not depend on it.
constexpr std::int64_t kManyBlocks = 128;
/// From here on memory is the limit, which whole vectors use better.
constexpr std::int64_t kMostElements = std::int64_t{1} << 24U;

constexpr std::int64_t ElementsOfThread(DataType type) {
  return type == DataType::kDouble ? own::kHeldElements<8> : own::kHeldElements<2>;
}
static_assert(own::kHeldElements<4> == own::kHeldElements<2>);

std::int64_t MostElementsOfBlock(DataType type) {
  return own::kHeldThreads * ElementsOfThread(type);
}

/// Channels of a block: one where those of a sample lie apart. Where they lie side by side, as many
/// as a sector of memory has, or more where that leaves blocks enough, or fewer where samples are
/// many.
std::int64_t ChannelsOfBlock(const ConstTensorRef& dY, const ConstTensorRef& X) {
  constexpr std::int64_t kSectorBytes = 32;
  constexpr std::int64_t kFewestSideBySide = 4;
  const std::int64_t channels = X.dims[1];
  if (channels == 1 || X.strides[1] != 1 || dY.strides[1] != 1) {
    return 1;
  }
  const std::int64_t samples = own::SamplesPerChannel(X.dims);
  const std::int64_t most = MostElementsOfBlock(X.type);
  std::int64_t together = kSectorBytes / static_cast<std::int64_t>(SizeOf(X.type));
  while (together < own::kMostHeldChannels && channels >= 2 * together * kManyBlocks &&
         2 * together * samples <= most) {
    together *= 2;
  }
  while (together > kFewestSideBySide && together * samples > most) {
    together /= 2;
  }
  const auto all = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(channels)));
  return std::min(together, all);
}

/// Threads have few elements where blocks are few.
int ThreadsOfBlock(std::int64_t elements, std::int64_t blocks) {
  constexpr std::uint64_t kFewestThreads = 32;
  const std::int64_t of_thread = blocks >= kManyBlocks ? 4 : 2;
  const auto wanted = static_cast<std::uint64_t>(CeilDivide(elements, of_thread));
  return static_cast<int>(std::clamp<std::uint64_t>(
      std::bit_ceil(wanted), kFewestThreads, std::uint64_t{own::kHeldThreads}));
}

Result<CUkernel> FindHeld(Activation activation, DataType type) {
  using Table = cuda::KernelTable<1>;
  static auto& plain = *new Table(cuda::kImage_batch_norm);
  static auto& relu = *new Table(cuda::kImage_batch_norm_relu);
  return activation == Activation::kNone
             ? plain.Find(0, "gradsmith_bn_held_backward", type)
             : relu.Find(0, "gradsmith_bn_relu_held_backward", type);
}

}  // namespace

std::optional<HeldShape> HeldShapeOf(const ConstTensorRef& dY, const ConstTensorRef& X) {
  const std::int64_t channels = X.dims[1];
  const std::int64_t samples = own::SamplesPerChannel(X.dims);
  if (samples < 2 || samples > MostElementsOfBlock(X.type) || channels < 1 ||
      channels > kMostElements / samples) {
    return std::nullopt;
  }
  const std::int64_t together = ChannelsOfBlock(dY, X);
  if (together * samples > MostElementsOfBlock(X.type)) {
    return std::nullopt;
  }
  HeldShape shape;
  shape.blocks = CeilDivide(channels, together);
  shape.threads = ThreadsOfBlock(together * samples, shape.blocks);
  shape.walk.channels = static_cast<int>(together);
  shape.walk.lanes = shape.threads / shape.walk.channels;
  return shape;
}

Status HeldBackward(
    CUstream stream,
    const BatchNormalizationReluGrad::Inputs& inputs,
    const BatchNormalizationGrad::Outputs& outputs) {
  std::optional<HeldShape> shape = HeldShapeOf(*inputs.dY, *inputs.X);
  if (!shape) {
    return {StatusCode::kUnsupported, "a channel's samples are not held by a block's threads"};
  }
  const Activation activation = ActivationOf(inputs);
  const bool products =
      activation != Activation::kNone || IsPresent(outputs.dX) || IsPresent(outputs.dScale);
  if (!products && !IsPresent(outputs.dBias)) {
    return {};
  }
  const ConstTensorRef dX = IsPresent(outputs.dX) ? ConstTensorRef(*outputs.dX) : ConstTensorRef();
  own::Plan plan = own::DimsPlan({inputs.dY, inputs.X, dX.present ? &dX : nullptr});
  plan.operands.accumulate = dX.accumulate;
  for (int k = own::kInner; k >= 0; --k) {
    shape->walk.counts[k] = cuda::DivisorOf(plan.walk.counts[k]);
    shape->walk.first_dim = plan.walk.counts[k] > 1 ? k : shape->walk.first_dim;
  }
  const Result<CUkernel> kernel = FindHeld(activation, inputs.dY->type);
  if (!kernel.ok()) {
    return kernel.status();
  }
  const cuda::LaunchShape launch = {
      .blocks_x = static_cast<unsigned>(shape->blocks),
      .threads = static_cast<unsigned>(shape->threads)};
  return cuda::Launch(
      *kernel, launch, stream, MakeBackwardFinish(inputs, outputs, plan, products), plan.operands,
      shape->walk);
}

}  // namespace gradsmith::batch_norm
