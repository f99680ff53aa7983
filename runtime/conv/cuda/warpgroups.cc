#include "conv/cuda/warpgroups.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "conv/cuda/channels_last.h"
#include "conv/cuda/filter_slices.h"
#include "core/tiles.h"
#include "cuda/kernel_images.h"
#include "cuda/module.h"

namespace gradsmith::conv {

namespace {

using internal::CeilDivide;
using warpgroups::Arguments;
using warpgroups::kConfigAt;
using warpgroups::KernelConfig;
using warpgroups::Pitches;
using warpgroups::Taps;

constexpr int kOnly = 90;

/// The axis down comes first, and then that to the right.
using Axes = std::array<Axis, 2>;

Axes AxesOf(const Problem& problem) {
  return {problem.axes[0], problem.axes[1]};
}

/// How many apart the taps are that meet the same positions.
std::int64_t NextTap(const Axis& axis) {
  return axis.stride / std::gcd(axis.stride, axis.dilation);
}

/// How many apart the positions are that such taps meet.
std::int64_t SpacingOf(const Axis& axis) {
  return axis.dilation / std::gcd(axis.stride, axis.dilation);
}

/// The taps of an axis by the positions that they meet, `most` of them together.
std::vector<Taps> GroupsOf(const Axis& axis, int most) {
  std::vector<Taps> groups;
  const std::int64_t next = NextTap(axis);
  for (std::int64_t first = 0; first < std::min(next, axis.w); ++first) {
    const std::int64_t count = CeilDivide(axis.w - first, next);
    for (std::int64_t done = 0; done < count; done += most) {
      const std::int64_t tap = first + (done * next);
      const std::int64_t offset = (tap * axis.dilation) - axis.pad_begin;
      const std::int64_t phase = ((offset % axis.stride) + axis.stride) % axis.stride;
      groups.push_back(
          {.first = static_cast<int>(tap),
           .next = static_cast<int>(next),
           .count = static_cast<int>(std::min<std::int64_t>(most, count - done)),
           .phase = static_cast<int>(phase),
           .q = static_cast<int>((offset - phase) / axis.stride)});
    }
  }
  return groups;
}

/// Positions of x that are counted along an axis, real or not: up to where a tile ends that begins
/// with the last position of y, or begins before the first.
std::int64_t ReachOf(const Axis& axis) {
  return ((axis.y + warpgroups::kPixels) * axis.stride) + (axis.w * axis.dilation) +
         std::abs(axis.pad_begin);
}

/// Whether offsets from an image's begin, of two images and of pixels that are not there, are
/// counted in 32 bits.
bool HasSmallOffsets(const Problem& problem) {
  const auto [down, right] = AxesOf(problem);
  const auto fits = [](const Strides& strides, std::int64_t rows, std::int64_t columns) {
    return (2 * strides[0]) + (rows * strides[2]) + (columns * strides[3]) <=
           std::numeric_limits<std::int32_t>::max();
  };
  return fits(problem.x_strides, ReachOf(down), ReachOf(right)) &&
         fits(problem.y_strides, down.y + warpgroups::kPixels, right.y + warpgroups::kPixels);
}

Pitches PitchesOf(const Strides& strides) {
  return {
      .image = strides[0],
      .row = static_cast<int>(strides[2]),
      .column = static_cast<int>(strides[3])};
}

bool TakesAxis(const Axis& axis) {
  constexpr std::int64_t kMost = 1 << 14;
  return axis.w * axis.dilation <= kMost && std::abs(axis.pad_begin) <= kMost &&
         axis.stride <= kMost && axis.x <= kMost && axis.y <= kMost;
}

bool TakesProblem(const Problem& problem) {
  constexpr std::int64_t kFewestTaps = 4;
  constexpr std::int64_t kMost = 1 << 24;
  if (problem.type != DataType::kFloat || problem.group != 1 || problem.spatial_rank != 2 ||
      IsEmpty(problem) || problem.batch > kMost) {
    return false;
  }
  const Axes axes = AxesOf(problem);
  return std::ranges::all_of(axes, TakesAxis) && axes[0].w * axes[1].w >= kFewestTaps &&
         problem.x_channels % warpgroups::kVector == 0 &&
         problem.y_channels % warpgroups::kVector == 0 && HasSmallOffsets(problem);
}

/// Rows of a tile are as long as they need be, up to all of it.
void SetTile(const Axis& right, int columns, Arguments* arguments) {
  constexpr std::int64_t kShortest = 4;
  std::int64_t width = kShortest;
  while (width < std::min<std::int64_t>(right.y, warpgroups::kPixels)) {
    width *= 2;
  }
  arguments->image_width = static_cast<int>(width);
  arguments->tile_width = std::max(static_cast<int>(width), warpgroups::kDepth);
  arguments->tile_rows = warpgroups::kPixels / arguments->tile_width;
  arguments->images = arguments->tile_width / arguments->image_width;
  arguments->slabs_of_spacing =
      arguments->spacing_down * (arguments->tile_width / warpgroups::kDepth);
  arguments->margin = (columns - 1) * arguments->spacing_right;
  const int image_row = arguments->image_width + arguments->margin;
  arguments->x_pixels = arguments->tile_rows * arguments->images * image_row;
  for (int i = 0; i < warpgroups::kQuads; ++i) {
    const int image_of_tile = 4 * i / arguments->image_width;
    arguments->quad_of_x[i] =
        (4 * i + image_of_tile * arguments->margin) * warpgroups::kXPixelBytes;
  }
  for (int i = 0; i < warpgroups::kProducts; ++i) {
    arguments->row_of_product[i] = i * warpgroups::kDepth / arguments->tile_width;
    arguments->column_of_product[i] = i * warpgroups::kDepth % arguments->tile_width;
  }
}

bool HasRoom(const KernelConfig& config, const Arguments& arguments) {
  const std::int64_t earlier =
      std::int64_t{config.rows - 1} * arguments.spacing_down * arguments.tile_width;
  return arguments.x_pixels <= warpgroups::kMostXPixels &&
         CeilDivide(earlier, warpgroups::kPixels) <= warpgroups::kMostEarlier;
}

/// How many slices are quickest, in clocks of a multiprocessor: blocks are computed in waves, and
/// what slices leave is written and read.
int SlicesOf(const Warpgroups& plan, std::int64_t steps_of_work) {
  constexpr double kClocksOfTap = 128;  // of 64 by 64 channels of a tile
  constexpr double kClocksOfBlock = 6000;
  constexpr double kElementsOfClock = 260;
  const KernelConfig config = kConfigAt[plan.config];
  const Arguments& arguments = plan.arguments;
  const double of_step = kClocksOfTap * warpgroups::TapsOf(config) * config.y_channels / 64;
  const std::int64_t most = std::min<std::int64_t>(arguments.works, kMultiprocessorsOfSlices);
  int best = 1;
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t slices = 1; slices <= most; ++slices) {
    const auto waves = static_cast<double>(
        CeilDivide(slices * plan.tiles * plan.groups, kMultiprocessorsOfSlices));
    const auto works = static_cast<double>(CeilDivide(arguments.works, slices));
    const double clocks =
        (waves * (kClocksOfBlock + (works * static_cast<double>(steps_of_work) * of_step))) +
        (static_cast<double>(slices * plan.filter_elements) / kElementsOfClock);
    if (clocks < least) {
      least = clocks;
      best = static_cast<int>(slices);
    }
  }
  return best;
}

/// Sums of all tiles and groups for a channel of x, of empty places as well.
std::int64_t CostOf(const Warpgroups& plan) {
  const KernelConfig config = kConfigAt[plan.config];
  return plan.tiles * plan.groups * warpgroups::TapsOf(config) * config.y_channels;
}

/// The share of products that are not of empty places, of so many tiles of pixels.
double ShareOf(const Problem& problem, const Warpgroups& plan, std::int64_t tiles_of_pixels) {
  const auto [down, right] = AxesOf(problem);
  const auto pixels = static_cast<double>(problem.batch * down.y * right.y);
  const auto places = static_cast<double>(CostOf(plan) * warpgroups::kXChannels) *
                      static_cast<double>(tiles_of_pixels * warpgroups::kPixels);
  return static_cast<double>(plan.filter_elements) * pixels / places;
}

std::optional<Warpgroups> PlanOf(const Problem& problem, int place) {
  const KernelConfig config = kConfigAt[place];
  const auto [down, right] = AxesOf(problem);
  const std::vector<Taps> row_groups = GroupsOf(down, config.rows);
  const std::vector<Taps> column_groups = GroupsOf(right, config.columns);
  if (std::max(row_groups.size(), column_groups.size()) > warpgroups::kMostGroups) {
    return std::nullopt;
  }
  Warpgroups plan;
  plan.config = place;
  plan.filter_elements = NumElements(DimsOf(problem, kW));
  Arguments& arguments = plan.arguments;
  arguments.x_channels = static_cast<int>(problem.x_channels);
  arguments.y_channels = static_cast<int>(problem.y_channels);
  arguments.x_tiles = static_cast<int>(CeilDivide(problem.x_channels, warpgroups::kXChannels));
  arguments.batch = static_cast<int>(problem.batch);
  arguments.x_height = static_cast<int>(down.x);
  arguments.x_width = static_cast<int>(right.x);
  arguments.y_height = static_cast<int>(down.y);
  arguments.y_width = static_cast<int>(right.y);
  arguments.x = PitchesOf(problem.x_strides);
  arguments.y = PitchesOf(problem.y_strides);
  arguments.filter_height = static_cast<int>(down.w);
  arguments.filter_width = static_cast<int>(right.w);
  arguments.step_down = static_cast<int>(down.stride);
  arguments.step_right = static_cast<int>(right.stride);
  arguments.spacing_down = static_cast<int>(SpacingOf(down));
  arguments.spacing_right = static_cast<int>(SpacingOf(right));
  arguments.row_groups = static_cast<int>(row_groups.size());
  arguments.column_groups = static_cast<int>(column_groups.size());
  std::ranges::copy(row_groups, std::begin(arguments.rows));
  std::ranges::copy(column_groups, std::begin(arguments.columns));
  SetTile(right, config.columns, &arguments);
  if (!HasRoom(config, arguments)) {
    return std::nullopt;
  }
  const std::int64_t strips = CeilDivide(right.y, arguments.tile_width);
  arguments.strips = cuda::DivisorOf(strips);
  const std::int64_t works = CeilDivide(problem.batch, arguments.images) * strips;
  plan.tiles = arguments.x_tiles * CeilDivide(problem.y_channels, config.y_channels);
  plan.groups = std::int64_t{arguments.row_groups} * arguments.column_groups;
  const std::int64_t rows = down.y + (std::int64_t{config.rows - 1} * arguments.spacing_down);
  const std::int64_t steps = CeilDivide(rows, arguments.tile_rows);
  if (constexpr std::int64_t kMostSteps = 1 << 30;
      plan.tiles > cuda::kMostBlocksYz || works > kMostSteps / steps) {
    return std::nullopt;
  }
  arguments.works = static_cast<int>(works);
  arguments.slices = SlicesOf(plan, steps);
  plan.share = ShareOf(problem, plan, works * steps);
  return plan;
}

}  // namespace

std::size_t Warpgroups::workspace() const {
  return static_cast<std::size_t>(arguments.slices) * sizeof(float) *
         static_cast<std::size_t>(filter_elements);
}

std::optional<Warpgroups> PlanWarpgroups(int compute_capability, const Task& task) {
  if (compute_capability != kOnly || !IsFilter(task) || !TakesProblem(task.problem) ||
      !IsChannelsLast(task)) {
    return std::nullopt;
  }
  std::optional<Warpgroups> best;
  for (int place = 0; place < warpgroups::kConfigs; ++place) {
    const std::optional<Warpgroups> plan = PlanOf(task.problem, place);
    if (plan && (!best || CostOf(*plan) < CostOf(*best))) {
      best = plan;
    }
  }
  return best;
}

Result<std::unique_ptr<internal::Plan>>
MakeWarpgroupsPlan(int device, const Task& task, const Warpgroups& plan) {
  const KernelConfig config = kConfigAt[plan.config];
  const cuda::LaunchShape shape = {
      .blocks_x = static_cast<unsigned>(plan.arguments.slices),
      .blocks_y = static_cast<unsigned>(plan.tiles),
      .blocks_z = static_cast<unsigned>(plan.groups),
      .threads = static_cast<unsigned>(warpgroups::ThreadsOf(config)),
      .shared_bytes = static_cast<unsigned>(warpgroups::SharedBytes(config))};
  const std::string name = "gradsmith_warpgroups_filter_" + std::to_string(plan.config);
  const Result<CUkernel> kernel = cuda::FindKernelOf(
      static_cast<int>(shape.shared_bytes), device, {&cuda::kImage_conv_warpgroups_filter},
      name.c_str());
  if (!kernel.ok()) {
    return kernel.status();
  }
  const FilterSlices<Arguments> slices = {
      .kernel = *kernel,
      .shape = shape,
      .arguments = plan.arguments,
      .count = plan.arguments.slices};
  return std::unique_ptr<internal::Plan>(
      std::make_unique<FilterAndSumsPlan<Arguments>>(task, slices, plan.workspace()));
}

}  // namespace gradsmith::conv
