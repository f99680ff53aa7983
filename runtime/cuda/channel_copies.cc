#include "cuda/channel_copies.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "cuda/kernel_images.h"
#include "cuda/kernels/channel_copies.h"
#include "cuda/pair_dims.h"
#include "cuda/tensor_kernels.h"
#include "cuda/tensor_ops.h"

namespace gradsmith::cuda {

namespace {

/// How the threads lie. The numbers are places in the table of kernels.
enum class Way : unsigned char {
  kRows,
  kGather,
  kGatherVectors,
  kScatter,
  kScatterVectors,
  kNone,
};
constexpr int kWays = 5;

/// More channels, and a position is better moved by several threads.
constexpr std::int64_t kMostOfThread = 16;

bool IsVectorAligned(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % 16 == 0;
}

bool SuitsThread(std::int64_t channels) {
  return channels % kChannelsAtOnce == 0 && channels <= kMostOfThread;
}

/// How many positions an image has.
std::int64_t PositionsOf(const TensorRef& tensor) {
  return NumElements(tensor.dims) / (tensor.dims[0] * tensor.dims[1]);
}

Way WayOf(const ConstTensorRef& from, const TensorRef& to) {
  const bool fits = SizeOf(to.type) <= 4 &&
                    std::max(from.dims[1], to.dims[1]) <= std::numeric_limits<int>::max() / 2;
  const bool from_last = from.strides == ChannelsLastStrides(from.dims);
  const bool to_last = to.strides == ChannelsLastStrides(to.dims);
  const bool from_first = from.strides == ContiguousStrides(from.dims);
  const bool to_first = to.strides == ContiguousStrides(to.dims);
  if (!fits) {
    return Way::kNone;
  }
  if (from_last && to_last && IsVectorAligned(to.data)) {
    return Way::kRows;
  }
  const bool aligned = IsVectorAligned(from.data) && IsVectorAligned(to.data);
  const bool in_vectors = aligned && PositionsOf(to) % kPositionsAtOnce == 0;
  if (from_first && to_last && SuitsThread(to.dims[1]) && IsVectorAligned(to.data)) {
    return in_vectors ? Way::kGatherVectors : Way::kGather;
  }
  if (from_last && to_first && SuitsThread(from.dims[1]) && to.dims[1] <= from.dims[1] &&
      IsVectorAligned(from.data)) {
    return in_vectors ? Way::kScatterVectors : Way::kScatter;
  }
  return Way::kNone;
}

Result<CUkernel> FindKernel(Way way, std::size_t size) {
  static std::array<KernelsOfSizes, kWays> kernels;
  constexpr std::array<const char*, kWays> kFamilies = {
      "copy_rows_", "gather_channels_", "gather_vectors_", "scatter_channels_", "scatter_vectors_"};
  const auto i = static_cast<std::size_t>(way);
  return FindOfSize(kImage_channel_copies, &kernels.at(i), kFamilies.at(i), size);
}

Status Launch(CUstream stream, Way way, const ConstTensorRef& from, const TensorRef& to) {
  const Result<CUkernel> kernel = FindKernel(way, SizeOf(to.type));
  if (!kernel.ok()) {
    return kernel.status();
  }
  ChannelCopy copy;
  copy.images = to.dims[0];
  copy.positions = PositionsOf(to);
  copy.from_channels = static_cast<int>(from.dims[1]);
  copy.to_channels = static_cast<int>(to.dims[1]);
  const bool in_vectors = way == Way::kGatherVectors || way == Way::kScatterVectors;
  const std::int64_t per_thread = way == Way::kRows
                                      ? 16 / static_cast<std::int64_t>(SizeOf(to.type))
                                      : to.dims[1] * (in_vectors ? kPositionsAtOnce : 1);
  const std::int64_t of_block = per_thread * kChannelThreads;
  const std::int64_t blocks = (NumElements(to.dims) + of_block - 1) / of_block;
  const LaunchShape shape = {
      .blocks_x =
          static_cast<unsigned>(std::min<std::int64_t>(blocks, std::numeric_limits<int>::max())),
      .threads = kChannelThreads};
  const void* source = from.data;
  return cuda::Launch(*kernel, shape, stream, source, to.data, copy);
}

/// `to` and `from` are strides of the tensor of fewer channels, whose dims these are; the channels
/// of the other are `step` elements apart.
ChannelRepeats RepeatsOf(
    const Dims& dims,
    const Strides& to,
    const Strides& from,
    std::int64_t times,
    std::int64_t step) {
  return {.grid = PairUp(dims, to, from).Grid(), .times = times, .step = step};
}

/// The strides of every channel that begins a run of `times`.
Strides OfFirstRepeats(const Strides& strides, std::int64_t times) {
  Strides first = strides;
  first[1] *= times;
  return first;
}

}  // namespace

Status CopyChannels(
    const DeviceInfo& device,
    CUstream stream,
    const ConstTensorRef& from,
    const TensorRef& to) {
  if (from.dims[1] == to.dims[1]) {
    return CopyTensor(device, stream, from, to);
  }
  if (NumElements(to.dims) == 0) {
    return {};
  }
  if (const Way way = WayOf(from, to); way != Way::kNone) {
    return Launch(stream, way, from, to);
  }
  const std::int64_t common = std::min(from.dims[1], to.dims[1]);
  if (common < to.dims[1]) {
    if (Status status = FillTensor(device, stream, 0, PartOfDim(to, 1, common, to.dims[1]));
        !status.ok()) {
      return status;
    }
  }
  ConstTensorRef source = from;
  source.dims[1] = common;
  return CopyTensor(device, stream, source, PartOfDim(to, 1, 0, common));
}

Status RepeatChannels(
    const DeviceInfo& device,
    CUstream stream,
    const ConstTensorRef& from,
    const TensorRef& to) {
  static KernelsOfSizes kernels;
  if (Status status = CheckRank(to.rank()); !status.ok() || IsEmpty(to.dims)) {
    return status;
  }
  const std::int64_t times = to.dims[1] / from.dims[1];
  const ChannelRepeats repeats =
      RepeatsOf(from.dims, OfFirstRepeats(to.strides, times), from.strides, times, to.strides[1]);
  return LaunchFound(
      FindOfSize(kImage_channel_copies, &kernels, "repeat_channels_", SizeOf(to.type)),
      ElementShape(device, repeats.grid.count), stream, from.data, to.data, repeats);
}

Status SumRepeatedChannels(
    const DeviceInfo& device,
    CUstream stream,
    const ConstTensorRef& from,
    const TensorRef& to) {
  static KernelsOfTypes kernels;
  if (Status status = CheckRank(to.rank()); !status.ok() || IsEmpty(to.dims)) {
    return status;
  }
  const std::int64_t times = from.dims[1] / to.dims[1];
  const ChannelRepeats repeats =
      RepeatsOf(to.dims, to.strides, OfFirstRepeats(from.strides, times), times, from.strides[1]);
  return LaunchFound(
      FindOfType(kImage_channel_copies, &kernels, "sum_repeats_", to.type),
      ElementShape(device, repeats.grid.count), stream, from.data, to.data, repeats, to.accumulate);
}

}  // namespace gradsmith::cuda
