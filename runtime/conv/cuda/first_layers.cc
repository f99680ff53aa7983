#include "conv/cuda/first_layers.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <string>

#include "conv/cuda/channels_last.h"
#include "conv/cuda/filter_slices.h"
#include "conv/cuda/one_pass_plan.h"
#include "conv/cuda/parts.h"
#include "core/tiles.h"
#include "cuda/kernel_images.h"
#include "cuda/module.h"

namespace gradsmith::conv {

namespace {

using first_layers::Arguments;
using first_layers::kConfigAt;
using first_layers::kConfigs;
using internal::CeilDivide;

/// Along an axis: the positions of y that a pair of pixels at twice a position meets are that one
/// plus begin, and the next ones.
struct Window {
  std::int64_t begin = 0;
  std::int64_t size = 0;
};

Window WindowOf(const Axis& axis) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  for (std::int64_t pixel = 0; pixel < first_layers::kStep; ++pixel) {
    for (std::int64_t tap = 0; tap < axis.w; ++tap) {
      const std::int64_t twice = pixel + axis.pad_begin - tap;
      if (twice % first_layers::kStep == 0) {
        first = std::min(first, twice / first_layers::kStep);
        last = std::max(last, twice / first_layers::kStep);
      }
    }
  }
  return {first, last - first + 1};
}

bool TakesAxis(const Axis& axis, std::int64_t step) {
  return axis.stride == step && axis.dilation == 1 && axis.w >= first_layers::kLeastTaps &&
         axis.w <= first_layers::kMostTaps;
}

/// A position's own row and column of y have to be among those of the window.
bool IsAround(const Window& window) {
  return window.begin <= 0 && window.begin + window.size > 0;
}

/// The configuration with least room that is enough; -1 for none.
int ConfigOf(std::int64_t channels, std::int64_t window) {
  for (int i = 0; i < kConfigs; ++i) {
    if (channels <= kConfigAt[i].channels && window <= kConfigAt[i].window) {
      return i;
    }
  }
  return -1;
}

/// Rows of a segment: as many as let so many blocks, with rows by the step, end soonest. A segment
/// begins with rows that another one has too: as if it had a step more.
std::int64_t
SegmentOf(std::int64_t rows, std::int64_t of_step, std::int64_t strips, std::int64_t blocks) {
  const std::int64_t steps = CeilDivide(rows, of_step);
  std::int64_t best = steps;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t segments = 1; segments <= steps; ++segments) {
    const std::int64_t of_segment = CeilDivide(steps, segments);
    const std::int64_t works = strips * CeilDivide(steps, of_segment);
    const std::int64_t time = CeilDivide(works, blocks) * (of_segment + 1);
    if (time < least) {
      least = time;
      best = of_segment;
    }
  }
  return best * of_step;
}

/// What any of the kernels takes, by such steps.
bool TakesProblem(const Problem& problem, std::int64_t step) {
  return CanBeCounted(problem) && problem.group == 1 &&
         problem.spatial_rank == first_layers::kRank &&
         problem.x_channels <= first_layers::kMostChannels &&
         problem.y_channels % first_layers::kVector == 0 && TakesAxis(problem.axes[0], step) &&
         TakesAxis(problem.axes[1], step);
}

/// The kernels' arguments, but for where positions begin and how works share them.
Arguments ArgumentsOf(const Problem& problem) {
  Arguments arguments{};
  arguments.y_channels = static_cast<int>(problem.y_channels);
  arguments.x_channels = static_cast<int>(problem.x_channels);
  for (int i = 0; i < first_layers::kRank; ++i) {
    const Axis& axis = problem.axes.at(i);
    arguments.x[i] = static_cast<int>(axis.x);
    arguments.y[i] = static_cast<int>(axis.y);
    arguments.w[i] = static_cast<int>(axis.w);
    arguments.pad[i] = static_cast<int>(axis.pad_begin);
    arguments.positions[i] = static_cast<int>(axis.y);
  }
  arguments.turns = first_layers::kWarps / arguments.w[0];
  return arguments;
}

/// Cuts the positions into works for so many blocks of a multiprocessor, which share the tiles,
/// with rows by the step; false where there are too many.
bool ShareOut(
    std::int64_t batch,
    std::int64_t of_multiprocessor,
    int rows,
    FirstLayers* first_layers) {
  const std::int64_t blocks =
      std::max<std::int64_t>(kMultiprocessorsOfSlices * of_multiprocessor / first_layers->tiles, 1);
  Arguments& arguments = first_layers->arguments;
  constexpr std::int64_t kMostColumns =
      std::int64_t{first_layers::kMostTiles} * first_layers::kTile;
  const std::int64_t tiles = CeilDivide(arguments.positions[1], first_layers::kTile);
  const std::int64_t of_strip = CeilDivide(tiles, CeilDivide(arguments.positions[1], kMostColumns));
  const std::int64_t strips = CeilDivide(tiles, of_strip);
  arguments.strip = static_cast<int>(of_strip * first_layers::kTile);
  arguments.segment =
      static_cast<int>(SegmentOf(arguments.positions[0], rows, batch * strips, blocks));
  const std::int64_t segments = CeilDivide(arguments.positions[0], arguments.segment);
  arguments.strips = cuda::DivisorOf(strips);
  arguments.segments = cuda::DivisorOf(segments);
  // Blocks count beyond the last one.
  constexpr std::int64_t kMostWorks = 1 << 30;
  const std::int64_t works = batch * strips * segments;
  if (works > kMostWorks || first_layers->tiles > cuda::kMostBlocksYz) {
    return false;
  }
  arguments.works = static_cast<int>(works);
  first_layers->blocks = std::min(works, blocks);
  return true;
}

/// The configuration with least room that is enough for channels and for taps in a row.
int FilterConfigOf(std::int64_t step, std::int64_t channels, std::int64_t taps) {
  const auto* const found = std::ranges::find_if(
      first_layers::kFilterConfigAt, [&](const first_layers::FilterKernelConfig& config) {
        return step == config.step && channels <= config.channels &&
               taps <= std::int64_t{2} * config.pairs;
      });
  return static_cast<int>(found - std::begin(first_layers::kFilterConfigAt));
}

/// The slices that a kernel leaves with so many threads and so much shared memory.
FilterSlices<Arguments>
SlicesOf(const FirstLayers& first_layers, CUkernel kernel, int threads, int shared_bytes) {
  return {
      .kernel = kernel,
      .shape =
          {.blocks_x = static_cast<unsigned>(first_layers.blocks),
           .blocks_y = static_cast<unsigned>(first_layers.tiles),
           .threads = static_cast<unsigned>(threads),
           .shared_bytes = static_cast<unsigned>(shared_bytes)},
      .arguments = first_layers.arguments,
      .count = first_layers.blocks};
}

}  // namespace

std::size_t FirstLayers::workspace() const {
  const Arguments& p = arguments;
  return static_cast<std::size_t>(blocks) * sizeof(float) *
         static_cast<std::size_t>(p.y_channels * p.w[0] * p.w[1] * p.x_channels);
}

std::optional<FirstLayers>
PlanFirstLayers(int compute_capability, const Task& data, const Task& filter) {
  const Problem& problem = data.problem;
  if (!FitOnePass(compute_capability, data, filter) ||
      !TakesProblem(problem, first_layers::kStep)) {
    return std::nullopt;
  }
  const std::array<Window, first_layers::kRank> windows = {
      WindowOf(problem.axes[0]), WindowOf(problem.axes[1])};
  FirstLayers first_layers;
  first_layers.config = ConfigOf(problem.y_channels, std::max(windows[0].size, windows[1].size));
  if (first_layers.config < 0 || !std::ranges::all_of(windows, IsAround)) {
    return std::nullopt;
  }
  first_layers.arguments = ArgumentsOf(problem);
  for (int i = 0; i < first_layers::kRank; ++i) {
    const std::int64_t pairs = CeilDivide(problem.axes.at(i).x, first_layers::kStep);
    first_layers.arguments.begin[i] = static_cast<int>(windows.at(i).begin);
    first_layers.arguments.positions[i] =
        std::max(first_layers.arguments.positions[i], static_cast<int>(pairs));
  }
  return ShareOut(problem.batch, 1, first_layers::kRows, &first_layers)
             ? std::optional(first_layers)
             : std::nullopt;
}

std::optional<FirstLayers> PlanFirstLayersFilter(int compute_capability, const Task& task) {
  const Problem& problem = task.problem;
  if (task.primitive != Primitive::kBackwardFilter || !FitsNarrow(compute_capability, task)) {
    return std::nullopt;
  }
  const std::int64_t step = problem.axes[0].stride;
  if (step > first_layers::kStep || !TakesProblem(problem, step)) {
    return std::nullopt;
  }
  constexpr std::int64_t kMostChannels =
      first_layers::kFilterConfigAt[first_layers::kFilterConfigs - 1].channels;
  const std::int64_t channels = std::min(problem.y_channels, kMostChannels);
  FirstLayers first_layers;
  first_layers.config = FilterConfigOf(step, channels, problem.axes[1].w);
  first_layers.tiles = CeilDivide(problem.y_channels, kMostChannels);
  first_layers.arguments = ArgumentsOf(problem);
  const int of_multiprocessor = first_layers::kFilterConfigAt[first_layers.config].blocks;
  return ShareOut(problem.batch, of_multiprocessor, first_layers::kFilterRows, &first_layers)
             ? std::optional(first_layers)
             : std::nullopt;
}

Result<std::unique_ptr<internal::Plan>> MakeFirstLayersPlan(
    int device,
    const Task& data,
    const Task& filter,
    const FirstLayers& first_layers) {
  const int shared_bytes = first_layers::SharedBytes(kConfigAt[first_layers.config]);
  const Result<CUkernel> kernel = cuda::FindKernelOf(
      shared_bytes, device, {&cuda::kImage_conv_first_layers},
      NarrowKernel(
          "gradsmith_first_layers_" + std::to_string(first_layers.config), data.problem.type)
          .c_str());
  if (!kernel.ok()) {
    return kernel.status();
  }
  return std::unique_ptr<internal::Plan>(std::make_unique<OnePassPlan<Arguments>>(
      data, filter, SlicesOf(first_layers, *kernel, first_layers::kThreads, shared_bytes),
      first_layers.blocks, first_layers.workspace()));
}

Result<std::unique_ptr<internal::Plan>>
MakeFirstLayersFilterPlan(int device, const Task& task, const FirstLayers& first_layers) {
  const int shared_bytes =
      first_layers::SharedBytes(first_layers::kFilterConfigAt[first_layers.config]);
  const std::string name = "gradsmith_first_layers_filter_" + std::to_string(first_layers.config);
  const Result<CUkernel> kernel = cuda::FindKernelOf(
      shared_bytes, device, {&cuda::kImage_conv_first_layers_filter},
      NarrowKernel(name, task.problem.type).c_str());
  if (!kernel.ok()) {
    return kernel.status();
  }
  return std::unique_ptr<internal::Plan>(std::make_unique<FilterAndSumsPlan<Arguments>>(
      task, SlicesOf(first_layers, *kernel, first_layers::kFilterThreads, shared_bytes),
      first_layers.workspace()));
}

}  // namespace gradsmith::conv
