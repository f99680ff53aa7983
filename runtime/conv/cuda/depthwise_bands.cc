#include "conv/cuda/depthwise_bands.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>

#include "conv/cuda/channels_last.h"
#include "conv/cuda/correlate_plan.h"
#include "conv/cuda/depthwise_bands_works.h"
#include "conv/cuda/depthwise_configs.h"
#include "conv/cuda/filter_slices.h"
#include "conv/cuda/math_name.h"
#include "core/tiles.h"
#include "cuda/kernel_images.h"
#include "cuda/module.h"

namespace gradsmith::conv {

namespace {

using depthwise_bands::Arguments;
using depthwise_bands::Channel;
using depthwise_bands::kWindow;
using depthwise_bands::Planes;
using internal::CeilDivide;

constexpr std::int64_t kMostInt = std::numeric_limits<int>::max();
constexpr int kWarp = 32;
constexpr int kLongRow = 512;

/// The axes down and across an image. A 1-D tensor is an image of one row.
std::array<Axis, 2> AxesOf(const Problem& problem) {
  std::array<Axis, 2> axes = problem.spatial_rank == 1
                                 ? std::array<Axis, 2>{Axis{}, problem.axes[0]}
                                 : std::array{problem.axes[0], problem.axes[1]};
  for (Axis& axis : axes) {
    axis.dilation = axis.w == 1 ? 1 : axis.dilation;
    axis.stride = axis.y == 1 ? 1 : axis.stride;
  }
  return axes;
}

/// Positions are counted in 32 bits, wherever taps and windows reach.
bool IsShort(const Axis& axis) {
  constexpr std::int64_t kMost = kMostInt / 16;
  return axis.x <= kMost && axis.y <= kMost / axis.stride && axis.w <= kMost / axis.dilation &&
         std::abs(axis.pad_begin) <= kMost;
}

/// The strides of images, channels and rows: 0 of dims of size 1, whose own may be anything.
std::array<std::int64_t, 3> StridesOfPlanes(const Problem& problem, Operand operand) {
  const Dims dims = DimsOf(problem, operand);
  const Strides& strides = StridesOf(problem, operand);
  std::array<std::int64_t, 3> counted = {};
  for (int i = 0; i < problem.spatial_rank + 1; ++i) {
    counted.at(i) = dims[i] > 1 ? strides[i] : 0;
  }
  return counted;
}

bool TakesRows(const Problem& problem, Operand operand) {
  return depthwise::HasDenseRows(problem, operand) &&
         std::abs(StridesOfPlanes(problem, operand)[2]) <= kMostInt;
}

/// How far from a plane's first element what threads count with reaches, rows that are not there
/// included.
std::int64_t ReachOf(const Task& task, Operand operand) {
  const Axis axis = AxesOf(task.problem)[0];
  constexpr std::int64_t kRows = 64;
  const std::int64_t rows = axis.x + (axis.y * axis.stride) + (axis.w * axis.dilation) +
                            std::abs(axis.pad_begin) + (kRows * axis.dilation);
  const std::int64_t stride = std::abs(StridesOfPlanes(task.problem, operand)[2]);
  return rows > kMostInt / std::max<std::int64_t>(stride, 1) ? kMostInt : rows * stride;
}

/// Images that a block may take at a time: offsets from the first one are counted in 32 bits.
std::int64_t MostPlanes(const Task& task) {
  constexpr std::int64_t kMost = 64;
  std::int64_t most = kMost;
  for (const Operand operand : {kX, kY}) {
    const std::int64_t stride = std::abs(StridesOfPlanes(task.problem, operand)[0]);
    most = std::min(most, 1 + (kMostInt / 4 / std::max<std::int64_t>(stride, 1)));
  }
  return most;
}

bool TakesTask(int compute_capability, const Task& task) {
  const Problem& problem = task.problem;
  if (compute_capability < kFirstWithTensorCores || problem.type == DataType::kDouble ||
      problem.spatial_rank > 2 || problem.group != problem.x_channels ||
      problem.group != problem.y_channels || IsEmpty(problem) || !IsContiguous(problem, kW) ||
      problem.x_channels > kMostInt || problem.batch > kMostInt / 2 || !TakesRows(problem, kX) ||
      !TakesRows(problem, kY)) {
    return false;
  }
  const auto [down, across] = AxesOf(problem);
  const bool is_data = task.primitive == Primitive::kBackwardData;
  const bool takes_steps =
      is_data ? down.stride == 1 && across.stride == 1 && problem.axes[0].stride == 1 &&
                    (problem.spatial_rank == 1 || problem.axes[1].stride == 1)
              : (down.stride == 1 || down.stride == 2 || down.stride == 4) && across.stride <= 4;
  return takes_steps && (down.dilation == 1 || down.stride == 1) && IsShort(down) &&
         IsShort(across) && std::max(ReachOf(task, kX), ReachOf(task, kY)) <= kMostInt / 4;
}

std::int64_t LowestBit(std::int64_t number) {
  return number & -number;
}

/// How a tensor's rows are read or written.
struct Tensor {
  Planes planes;
  /// What all addresses of rows are multiples of, in elements.
  int grain;

  /// How far rows begin after a multiple of the unit, at most.
  [[nodiscard]] int MostOffset() const { return planes.unit - std::min(grain, planes.unit); }
};

/// `most` is that of the unit. `has_images`: a block has several images that begin alike.
Tensor TensorOf(const Task& task, Operand operand, std::int64_t most, bool has_images) {
  const auto [image, channel, row] = StridesOfPlanes(task.problem, operand);
  const auto axes = AxesOf(task.problem);
  const auto size = static_cast<std::int64_t>(SizeOf(task.problem.type));
  const std::int64_t alike = (has_images ? image : 0) | row | most;
  const std::int64_t all = alike | image | channel | (task.alignment.at(operand) / size);
  const bool is_x = operand == kX;
  return {
      .planes =
          {.image_stride = image,
           .channel_stride = channel,
           .row_stride = static_cast<int>(row),
           .height = static_cast<int>(is_x ? axes[0].x : axes[0].y),
           .width = static_cast<int>(is_x ? axes[1].x : axes[1].y),
           .unit = static_cast<int>(LowestBit(alike))},
      .grain = static_cast<int>(LowestBit(all))};
}

/// The tensors of a task, whose units are vectors, and of long rows of results 32 bytes, a sector
/// of memory.
struct Tensors {
  Tensors(const Task& task, bool has_images) {
    const bool is_data = task.primitive == Primitive::kBackwardData;
    const auto vector = static_cast<std::int64_t>(16 / SizeOf(task.problem.type));
    from = TensorOf(task, is_data ? kY : kX, vector, has_images);
    const Operand result = is_data ? kX : kY;
    const bool is_long = TensorOf(task, result, vector, has_images).planes.width >= kLongRow;
    to = TensorOf(task, result, !IsFilter(task) && is_long ? 2 * vector : vector, has_images);
  }

  Tensor from{};
  Tensor to{};
};

/// The most that windows of the source begin before the first tap of their first result.
int MostShift(const Arguments& p, const Tensors& tensors) {
  int most = 0;
  for (int to = 0; to <= tensors.to.MostOffset(); to += tensors.to.grain) {
    for (int from = 0; from <= tensors.from.MostOffset(); from += tensors.from.grain) {
      most = std::max(most, (p.first_column - (p.step_across * to) + from) & (kWindow - 1));
    }
  }
  return most;
}

/// What the filter's gradient sums in a warp: rows of taps by blocks of windows. Those of a row of
/// taps are in the same block.
void SetItems(const Arguments& p, int rows, int* of_set, int* sets) {
  const int blocks = rows == 1 ? depthwise_bands::kBlocksOfRow : 1;
  const int of_group = p.blocks / blocks;
  int groups = 0;
  for (int phase = 0; phase < p.step_down; ++phase) {
    const int taps = (p.taps_down - phase + p.step_down - 1) / p.step_down;
    groups += (taps + rows - 1) / rows;
  }
  constexpr int kMostWarps = depthwise_bands::kMostFilterThreads / kWarp;
  const int most = std::max(1, kMostWarps / of_group);
  *sets = static_cast<int>(CeilDivide(groups, most));
  *of_set = static_cast<int>(CeilDivide(groups, *sets)) * of_group;
}

/// Sets what does not depend on works; false where a row of the filter is too long.
bool SetTaps(const Task& task, const Tensors& tensors, int rows, Arguments* p) {
  const auto [down, across] = AxesOf(task.problem);
  const bool is_data = task.primitive == Primitive::kBackwardData;
  const int size = static_cast<int>(SizeOf(task.problem.type));
  const std::int64_t reach = (across.w - 1) * across.dilation;
  constexpr std::int64_t kMostReach = 4096;
  if (reach > kMostReach || down.w > kMostReach) {
    return false;
  }
  p->from = tensors.from.planes;
  p->to = tensors.to.planes;
  p->from_room.unit = std::min(p->from.unit, 16 / size);
  p->to_room.unit = std::min(p->to.unit, 16 / size);
  p->channels = static_cast<int>(task.problem.x_channels);
  p->images = static_cast<int>(task.problem.batch);
  p->taps_down = static_cast<int>(down.w);
  p->taps_across = static_cast<int>(across.w);
  p->step_down = static_cast<int>(down.stride);
  p->step_across = static_cast<int>(across.stride);
  p->dilation_down = static_cast<int>(down.dilation);
  p->dilation_across = static_cast<int>(across.dilation);
  p->classes = cuda::DivisorOf(std::min<std::int64_t>(down.dilation, p->to.height));
  p->reversed = is_data;
  p->first_row =
      static_cast<int>(is_data ? down.pad_begin - ((down.w - 1) * down.dilation) : -down.pad_begin);
  p->first_column = static_cast<int>(is_data ? across.pad_begin - reach : -across.pad_begin);
  const std::int64_t met = reach + 1 + ((kWindow - 1) * across.stride) + MostShift(*p, tensors);
  const int of_block =
      IsFilter(task) ? depthwise_bands::kWindows : depthwise_bands::kBlockBytes / size;
  const int together = IsFilter(task) && rows == 1 ? depthwise_bands::kBlocksOfRow : 1;
  const std::int64_t of_blocks = std::int64_t{of_block} * together;
  p->blocks = static_cast<int>(CeilDivide(met, of_blocks)) * together;
  p->zeros = (kWindow - 1) * (p->step_across + 1);
  // The second copy of a row of a band is in other banks than the first one.
  constexpr int kVector = 8;
  const int banks = 32 * 4 / size;
  int pitch =
      static_cast<int>(CeilDivide((p->blocks * of_block) + p->zeros + 1, kVector)) * kVector;
  while (pitch % banks < banks / 4 || pitch % banks > banks * 3 / 4) {
    pitch += kVector;
  }
  p->band_pitch = pitch;
  return true;
}

/// The blocks that run at once, on as many multiprocessors as slices are for.
std::int64_t BlocksAtOnce(const DepthwiseBands& plan, bool is_filter) {
  constexpr int kSharedBytes = 228 * 1024;
  constexpr int kReserved = 1024;
  constexpr int kRegisters = 65536;
  constexpr int kMost = 32;
  const int of_images = is_filter ? 128 : 104;
  const int registers = plan.rows == 1 ? 64 : of_images;
  const int at_once = std::min(
      {kSharedBytes / (plan.shared_bytes + kReserved), kRegisters / (registers * plan.threads),
       kMost});
  return std::int64_t{kMultiprocessorsOfSlices} * std::max(at_once, 1);
}

/// Works of a block: several where there are more than run at once, so that copies go on while it
/// computes, but for its first one.
std::int64_t WorksOfResults(const DepthwiseBands& plan) {
  constexpr std::int64_t kMost = 16;
  constexpr double kForFirst = 0.7;
  const std::int64_t works = plan.arguments.works;
  const std::int64_t at_once = BlocksAtOnce(plan, /*is_filter=*/false);
  std::int64_t best = 1;
  double least = 0;
  for (std::int64_t count = 1; count <= std::min(works, kMost); ++count) {
    const std::int64_t blocks = CeilDivide(works, count) * plan.arguments.channels;
    const double time =
        static_cast<double>(CeilDivide(blocks, at_once)) * (static_cast<double>(count) + kForFirst);
    if (count == 1 || time < least) {
      best = count;
      least = time;
    }
  }
  return best;
}

/// There are as many slices of the works as the device runs at once.
std::int64_t WorksOfFilter(const DepthwiseBands& plan) {
  const std::int64_t blocks = std::int64_t{plan.arguments.channels} * plan.sets;
  const std::int64_t slices =
      std::max<std::int64_t>(BlocksAtOnce(plan, /*is_filter=*/true) / blocks, 1);
  return CeilDivide(plan.arguments.works, slices);
}

void SetSlices(const Task& task, const Channel& channel, int stage_bytes, DepthwiseBands* plan) {
  constexpr int kZeros = 32;
  const Arguments& p = plan->arguments;
  const std::int64_t works = p.works;
  const int left = LeftBytes(channel, p, plan->threads);
  plan->shared_bytes = IsFilter(task) ? kZeros + std::max(2 * stage_bytes, left)
                                      : channel.band_bytes + (2 * stage_bytes);
  const std::int64_t of_slice = std::max<std::int64_t>(
      IsFilter(task) ? WorksOfFilter(*plan) : WorksOfResults(*plan),
      CeilDivide(works, cuda::kMostBlocksYz));
  plan->slices = static_cast<int>(CeilDivide(works, of_slice));
  if (of_slice == 1 && !IsFilter(task)) {
    plan->shared_bytes -= stage_bytes;
  }
  if (IsFilter(task)) {
    plan->workspace = static_cast<std::size_t>(plan->slices) *
                      static_cast<std::size_t>(NumElements(DimsOf(task.problem, kW))) *
                      sizeof(float);
  }
}

}  // namespace

std::optional<DepthwiseBands> PlanDepthwiseBands(int compute_capability, const Task& task) {
  if (!TakesTask(compute_capability, task)) {
    return std::nullopt;
  }
  DepthwiseBands plan;
  Arguments& p = plan.arguments;
  const Axis down = AxesOf(task.problem)[0];
  plan.rows = down.w == 1 ? 1 : depthwise_bands::kStripRows;
  // Rows of images that do not begin alike are copied in large units by an image at a time.
  const Tensors together(task, /*has_images=*/true);
  const Tensors alone(task, /*has_images=*/false);
  const bool begin_alike = IsFilter(task) || (alone.from.planes.unit == together.from.planes.unit &&
                                              alone.to.planes.unit == together.to.planes.unit);
  const bool is_alone = !begin_alike && together.to.planes.width >= kLongRow;
  const Tensors& tensors = is_alone ? alone : together;
  if (!SetTaps(task, tensors, plan.rows, &p)) {
    return std::nullopt;
  }
  p.items = 1;
  if (IsFilter(task)) {
    SetItems(p, plan.rows, &p.items, &plan.sets);
  }
  const int size = static_cast<int>(SizeOf(task.problem.type));
  const int copies = size == 2 ? 2 : 1;
  constexpr int kMostWarps = depthwise_bands::kMostFilterThreads / kWarp;
  const std::int64_t band_bytes =
      IsFilter(task) ? 0 : std::int64_t{p.taps_down} * copies * p.band_pitch * size;
  if (band_bytes > depthwise_bands::kMostSharedBytes || p.items > kMostWarps) {
    return std::nullopt;
  }
  const Channel channel = {
      .images = task.problem.batch,
      .most_planes = is_alone ? 1 : MostPlanes(task),
      .strips = CeilDivide(CeilDivide(p.to.height, p.classes.divisor), plan.rows),
      .windows = CeilDivide(p.to.width + tensors.to.MostOffset(), kWindow),
      .channels = p.channels,
      .rows = plan.rows,
      .element_bytes = size,
      .is_filter = IsFilter(task),
      .items = p.items,
      .band_bytes = static_cast<int>(band_bytes)};
  depthwise_bands::Launch launch{};
  if (!SetWorks(channel, &p, &launch)) {
    return std::nullopt;
  }
  plan.threads = launch.threads;
  SetSlices(task, channel, launch.stage_bytes, &plan);
  return plan;
}

bool MayFitDepthwiseBands(const Task& task) {
  return PlanDepthwiseBands(kFirstWithHopperMemory, task).has_value();
}

Result<std::unique_ptr<internal::Plan>>
MakeDepthwiseBandsPlan(int device, const Task& task, const DepthwiseBands& bands) {
  const std::string name = std::string("gradsmith_depthwise_bands_") +
                           (IsFilter(task) ? "filter_" : "") + MathNameOf(task.problem.type) + "_" +
                           std::to_string(bands.rows);
  const Result<CUkernel> kernel = cuda::FindKernelOf(
      depthwise_bands::kMostSharedBytes + depthwise_bands::kBlockBytes, device,
      {IsFilter(task) ? &cuda::kImage_conv_depthwise_bands_filter
                      : &cuda::kImage_conv_depthwise_bands},
      name.c_str());
  if (!kernel.ok()) {
    return kernel.status();
  }
  const cuda::LaunchShape shape = {
      .blocks_x = static_cast<unsigned>(bands.arguments.channels),
      .blocks_y = static_cast<unsigned>(bands.slices),
      .blocks_z = static_cast<unsigned>(bands.sets),
      .threads = static_cast<unsigned>(bands.threads),
      .shared_bytes = static_cast<unsigned>(bands.shared_bytes)};
  if (!IsFilter(task)) {
    return std::unique_ptr<internal::Plan>(
        std::make_unique<CorrelatePlan<Arguments>>(task, bands.arguments, shape, *kernel));
  }
  const FilterSlices<Arguments> slices = {
      .kernel = *kernel, .shape = shape, .arguments = bands.arguments, .count = bands.slices};
  return std::unique_ptr<internal::Plan>(
      std::make_unique<FilterAndSumsPlan<Arguments>>(task, slices, bands.workspace));
}

}  // namespace gradsmith::conv
