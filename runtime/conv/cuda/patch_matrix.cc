#include "conv/cuda/patch_matrix.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>

#include "conv/cuda/channels_last.h"
#include "conv/cuda/depthwise.h"
#include "core/tiles.h"
#include "cuda/kernel_images.h"
#include "cuda/tensor_kernels.h"
#include "cuda/tensor_ops.h"

namespace gradsmith::conv {

namespace {

using internal::CeilDivide;
using patch_matrix::Arguments;

constexpr std::int64_t kMostBytes = 16;

/// Whether every position of x is read by one tap of one patch at most, and no padding is.
bool AreApart(const Axis& axis) {
  const bool is_dense = axis.dilation == 1 || axis.w == 1;
  return axis.pad_begin == 0 && is_dense && axis.w <= axis.stride &&
         (axis.y - 1) * axis.stride + axis.w <= axis.x;
}

bool IsLast(const Problem& problem, Operand operand) {
  return StridesOf(problem, operand) == ChannelsLastStrides(DimsOf(problem, operand));
}

/// y's spatial axes as one or two.
std::array<std::int64_t, 2> PatchesOf(const Problem& problem) {
  std::array<std::int64_t, 2> patches = {1, 1};
  for (int i = 0; i < problem.spatial_rank; ++i) {
    const bool is_last = i + 1 == problem.spatial_rank && i > 0;
    patches.at(is_last ? 1 : 0) *= problem.axes.at(i).y;
  }
  return patches;
}

/// How many positions an image of a product's y has.
std::int64_t PatchesOfImage(const Problem& product) {
  return product.axes[0].y * product.axes[1].y;
}

/// Steps is how far apart neighbours of x and of taps are, in elements of the matrix, and along an
/// axis of patches.
struct Steps {
  std::array<std::int64_t, kMaxSpatialRank> patch{};
  std::array<std::int64_t, kMaxSpatialRank> tap{};
  std::int64_t channel = 0;
};

Steps StepsOf(const Problem& problem, std::int64_t pitch) {
  const bool is_last = IsLast(problem, kW);
  Steps steps;
  std::int64_t tap = is_last ? problem.x_channels : 1;
  std::int64_t patch = pitch;
  for (int i = problem.spatial_rank - 1; i >= 0; --i) {
    steps.tap.at(i) = tap;
    steps.patch.at(i) = patch;
    tap *= problem.axes.at(i).w;
    patch *= problem.axes.at(i).y;
  }
  steps.channel = is_last ? 1 : tap;
  return steps;
}

/// Elements of a row of x, between its patches, and of a patch, of which `inner` lie next to each
/// other in x and go by one step in the matrix.
struct RowShape {
  std::int64_t row = 0;
  std::int64_t stride = 0;
  std::int64_t run = 0;
  std::int64_t inner = 0;
  std::int64_t inner_step = 0;
  std::int64_t outer_step = 0;
};

RowShape RowShapeOf(const Problem& problem, const Steps& steps) {
  const int last = problem.spatial_rank - 1;
  const Axis& axis = problem.axes.at(last);
  const std::int64_t channels = IsLast(problem, kX) ? problem.x_channels : 1;
  RowShape shape{
      .row = axis.x * channels,
      .stride = axis.stride * channels,
      .run = axis.w * channels,
      .inner = axis.w * channels,
      .inner_step = steps.tap.at(last),
      .outer_step = 0};
  if (channels > 1) {
    const bool is_dense = steps.channel == 1;
    shape.inner = is_dense ? shape.run : channels;
    shape.inner_step = steps.channel;
    shape.outer_step = is_dense ? 0 : steps.tap.at(last);
  }
  return shape;
}

/// How many elements can be moved at once.
std::int64_t UnitOf(const Task& task, const RowShape& shape, std::int64_t pitch) {
  const auto size = static_cast<std::int64_t>(SizeOf(task.problem.type));
  if (shape.inner_step != 1 || shape.inner != shape.run) {
    return 1;
  }
  const std::int64_t common =
      std::gcd(std::gcd(shape.row, shape.stride), std::gcd(shape.run, pitch));
  const std::int64_t bytes = std::min<std::int64_t>(kMostBytes, task.alignment.at(kX));
  return std::gcd(common, std::max<std::int64_t>(1, bytes / size));
}

/// The spatial axes but the last, the others as of one position.
void SetAxes(const Problem& problem, const Steps& steps, std::int64_t unit, Arguments* arguments) {
  constexpr int kCount = 2;
  const int used = problem.spatial_rank - 1;
  for (int i = 0; i < kCount; ++i) {
    const int from = i - (kCount - used);
    const Axis axis = from < 0 ? Axis{} : problem.axes.at(from);
    arguments->axes[i] = {
        .x = cuda::DivisorOf(axis.x),
        .stride = cuda::DivisorOf(std::min(axis.stride, axis.x)),
        .taps = static_cast<std::int32_t>(axis.w),
        .patches = static_cast<std::int32_t>(axis.y),
        .patch_step = from < 0 ? 0 : steps.patch.at(from) / unit,
        .tap_step = from < 0 ? 0 : steps.tap.at(from) / unit};
  }
}

cuda::LaunchShape ShapeOf(const cuda::DeviceInfo& device, const PatchMatrix& plan) {
  constexpr std::int64_t kBlocksOfMultiprocessor = 32;
  const std::int64_t blocks = CeilDivide(plan.arguments.items, std::int64_t{patch_matrix::kWarps});
  const std::int64_t most = kBlocksOfMultiprocessor * device.multiprocessors();
  return {
      .blocks_x = static_cast<unsigned>(std::min(blocks, most)), .threads = patch_matrix::kThreads};
}

}  // namespace

std::optional<Problem> PatchProduct(const Problem& problem) {
  bool are_dense = true;
  for (const Operand operand : {kX, kW, kY}) {
    are_dense = are_dense && IsDense(DimsOf(problem, operand), StridesOf(problem, operand));
  }
  if (problem.group != 1 || IsEmpty(problem) || !are_dense ||
      !std::all_of(problem.axes.begin(), problem.axes.begin() + problem.spatial_rank, AreApart)) {
    return std::nullopt;
  }
  Problem product = problem;
  product.x_channels = problem.x_channels * TapsOf(problem);
  product.spatial_rank = std::min(problem.spatial_rank, 2);
  const std::array<std::int64_t, 2> patches = PatchesOf(problem);
  for (int i = 0; i < kMaxSpatialRank; ++i) {
    const std::int64_t size = i < product.spatial_rank ? patches.at(i) : 1;
    product.axes.at(i) = {.x = size, .y = size};
  }
  const Dims y = DimsOf(product, kY);
  product.x_strides = ChannelsLastStrides(DimsOf(product, kX));
  product.w_strides = ContiguousStrides(DimsOf(product, kW));
  product.y_strides = IsLast(problem, kY) ? ChannelsLastStrides(y) : ContiguousStrides(y);
  return product;
}

std::optional<PatchMatrix>
PlanPatchMatrix(const Task& task, const Problem& product, std::int64_t pitch) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const Problem& problem = task.problem;
  const Steps steps = StepsOf(problem, pitch);
  const RowShape shape = RowShapeOf(problem, steps);
  const std::int64_t unit = UnitOf(task, shape, pitch);
  const std::int64_t row = shape.row / unit;
  const std::int64_t elements = NumElements(DimsOf(problem, kX));
  const std::int64_t segments = CeilDivide(row, std::int64_t{patch_matrix::kSegment});
  const std::int64_t items = elements / shape.row * segments;
  if (row > kMost - patch_matrix::kSegment || items > kMost) {
    return std::nullopt;
  }
  const Axis& last = problem.axes.at(problem.spatial_rank - 1);
  PatchMatrix plan{
      .unit = static_cast<int>(unit) * static_cast<int>(SizeOf(problem.type)),
      .product = product,
      .pitch = pitch};
  Arguments& arguments = plan.arguments;
  SetAxes(problem, steps, unit, &arguments);
  arguments.segments = cuda::DivisorOf(segments);
  arguments.items = items;
  arguments.channels = cuda::DivisorOf(IsLast(problem, kX) ? 1 : problem.x_channels);
  arguments.image_step = PatchesOfImage(product) * (pitch / unit);
  arguments.channel_step = steps.channel / unit;
  arguments.row = static_cast<std::int32_t>(row);
  arguments.stride = cuda::DivisorOf(std::min(shape.stride, shape.row) / unit);
  arguments.run = static_cast<std::int32_t>(shape.run / unit);
  arguments.patches = static_cast<std::int32_t>(last.y);
  arguments.patch_step = pitch / unit;
  arguments.inner = cuda::DivisorOf(shape.inner / unit);
  arguments.inner_step = shape.inner_step;
  arguments.outer_step = shape.outer_step;
  return plan;
}

Status GatherPatches(
    const cuda::DeviceInfo& device,
    CUstream stream,
    const PatchMatrix& plan,
    const void* x,
    void* matrix) {
  static cuda::KernelsOfSizes kernels;
  const Problem& product = plan.product;
  if (plan.pitch > product.x_channels) {
    const std::int64_t end = product.x_channels * static_cast<std::int64_t>(SizeOf(product.type));
    const TensorRef rest(
        product.type, static_cast<std::byte*>(matrix) + end,
        Dims{product.batch * PatchesOfImage(product), plan.pitch - product.x_channels},
        Strides{plan.pitch, 1});
    if (Status status = cuda::FillTensor(device, stream, 0, rest); !status.ok()) {
      return status;
    }
  }
  return cuda::LaunchFound(
      FindOfSize(cuda::kImage_conv_patch_matrix, &kernels, "gather_patches_", plan.unit),
      ShapeOf(device, plan), stream, plan.arguments, x, matrix);
}

Status ScatterPatches(
    const cuda::DeviceInfo& device,
    CUstream stream,
    const PatchMatrix& plan,
    const void* matrix,
    void* x,
    bool keeps_rest) {
  static cuda::KernelsOfSizes kernels;
  return cuda::LaunchFound(
      FindOfSize(cuda::kImage_conv_patch_matrix, &kernels, "scatter_patches_", plan.unit),
      ShapeOf(device, plan), stream, plan.arguments, matrix, x, keeps_rest);
}

}  // namespace gradsmith::conv
