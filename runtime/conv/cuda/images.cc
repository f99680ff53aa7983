#include "conv/cuda/images.h"

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

using images::Arguments;
using images::kConfigAt;
using images::kConfigs;
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
  for (std::int64_t pixel = 0; pixel < images::kStep; ++pixel) {
    for (std::int64_t tap = 0; tap < axis.w; ++tap) {
      const std::int64_t twice = pixel + axis.pad_begin - tap;
      if (twice % images::kStep == 0) {
        first = std::min(first, twice / images::kStep);
        last = std::max(last, twice / images::kStep);
      }
    }
  }
  return {first, last - first + 1};
}

bool TakesAxis(const Axis& axis, std::int64_t step) {
  return axis.stride == step && axis.dilation == 1 && axis.w >= images::kLeastTaps &&
         axis.w <= images::kMostTaps;
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
  return CanBeCounted(problem) && problem.group == 1 && problem.spatial_rank == images::kRank &&
         problem.x_channels <= images::kMostChannels && problem.y_channels % images::kVector == 0 &&
         TakesAxis(problem.axes[0], step) && TakesAxis(problem.axes[1], step);
}

/// The kernels' arguments, but for where positions begin and how works share them.
Arguments ArgumentsOf(const Problem& problem) {
  Arguments arguments{};
  arguments.y_channels = static_cast<int>(problem.y_channels);
  arguments.x_channels = static_cast<int>(problem.x_channels);
  for (int i = 0; i < images::kRank; ++i) {
    const Axis& axis = problem.axes.at(i);
    arguments.x[i] = static_cast<int>(axis.x);
    arguments.y[i] = static_cast<int>(axis.y);
    arguments.w[i] = static_cast<int>(axis.w);
    arguments.pad[i] = static_cast<int>(axis.pad_begin);
    arguments.positions[i] = static_cast<int>(axis.y);
  }
  arguments.turns = images::kWarps / arguments.w[0];
  return arguments;
}

/// Cuts the positions into works for so many blocks of a multiprocessor, which share the tiles,
/// with rows by the step; false where there are too many.
bool ShareOut(std::int64_t batch, std::int64_t of_multiprocessor, int rows, Images* images) {
  const std::int64_t blocks =
      std::max<std::int64_t>(kMultiprocessorsOfSlices * of_multiprocessor / images->tiles, 1);
  Arguments& arguments = images->arguments;
  constexpr std::int64_t kMostColumns = std::int64_t{images::kMostTiles} * images::kTile;
  const std::int64_t tiles = CeilDivide(arguments.positions[1], images::kTile);
  const std::int64_t of_strip = CeilDivide(tiles, CeilDivide(arguments.positions[1], kMostColumns));
  const std::int64_t strips = CeilDivide(tiles, of_strip);
  arguments.strip = static_cast<int>(of_strip * images::kTile);
  arguments.segment =
      static_cast<int>(SegmentOf(arguments.positions[0], rows, batch * strips, blocks));
  const std::int64_t segments = CeilDivide(arguments.positions[0], arguments.segment);
  arguments.strips = cuda::DivisorOf(strips);
  arguments.segments = cuda::DivisorOf(segments);
  // Blocks count beyond the last one.
  constexpr std::int64_t kMostWorks = 1 << 30;
  const std::int64_t works = batch * strips * segments;
  if (works > kMostWorks || images->tiles > cuda::kMostBlocksYz) {
    return false;
  }
  arguments.works = static_cast<int>(works);
  images->blocks = std::min(works, blocks);
  return true;
}

/// The configuration with least room that is enough for channels and for taps in a row.
int FilterConfigOf(std::int64_t step, std::int64_t channels, std::int64_t taps) {
  const auto* const found =
      std::ranges::find_if(images::kFilterConfigAt, [&](const images::FilterKernelConfig& config) {
        return step == config.step && channels <= config.channels &&
               taps <= std::int64_t{2} * config.pairs;
      });
  return static_cast<int>(found - std::begin(images::kFilterConfigAt));
}

/// The slices that a kernel leaves with so many threads and so much shared memory.
FilterSlices<Arguments>
SlicesOf(const Images& images, CUkernel kernel, int threads, int shared_bytes) {
  return {
      .kernel = kernel,
      .shape =
          {.blocks_x = static_cast<unsigned>(images.blocks),
           .blocks_y = static_cast<unsigned>(images.tiles),
           .threads = static_cast<unsigned>(threads),
           .shared_bytes = static_cast<unsigned>(shared_bytes)},
      .arguments = images.arguments,
      .count = images.blocks};
}

}  // namespace

std::size_t Images::workspace() const {
  const Arguments& p = arguments;
  return static_cast<std::size_t>(blocks) * sizeof(float) *
         static_cast<std::size_t>(p.y_channels * p.w[0] * p.w[1] * p.x_channels);
}

std::optional<Images> PlanImages(int compute_capability, const Task& data, const Task& filter) {
  const Problem& problem = data.problem;
  if (!FitOnePass(compute_capability, data, filter) || !TakesProblem(problem, images::kStep)) {
    return std::nullopt;
  }
  const std::array<Window, images::kRank> windows = {
      WindowOf(problem.axes[0]), WindowOf(problem.axes[1])};
  Images images;
  images.config = ConfigOf(problem.y_channels, std::max(windows[0].size, windows[1].size));
  if (images.config < 0 || !std::ranges::all_of(windows, IsAround)) {
    return std::nullopt;
  }
  images.arguments = ArgumentsOf(problem);
  for (int i = 0; i < images::kRank; ++i) {
    const std::int64_t pairs = CeilDivide(problem.axes.at(i).x, images::kStep);
    images.arguments.begin[i] = static_cast<int>(windows.at(i).begin);
    images.arguments.positions[i] =
        std::max(images.arguments.positions[i], static_cast<int>(pairs));
  }
  return ShareOut(problem.batch, 1, images::kRows, &images) ? std::optional(images) : std::nullopt;
}

std::optional<Images> PlanImagesFilter(int compute_capability, const Task& task) {
  const Problem& problem = task.problem;
  if (task.primitive != Primitive::kBackwardFilter || !FitsNarrow(compute_capability, task)) {
    return std::nullopt;
  }
  const std::int64_t step = problem.axes[0].stride;
  if (step > images::kStep || !TakesProblem(problem, step)) {
    return std::nullopt;
  }
  constexpr std::int64_t kMostChannels =
      images::kFilterConfigAt[images::kFilterConfigs - 1].channels;
  const std::int64_t channels = std::min(problem.y_channels, kMostChannels);
  Images images;
  images.config = FilterConfigOf(step, channels, problem.axes[1].w);
  images.tiles = CeilDivide(problem.y_channels, kMostChannels);
  images.arguments = ArgumentsOf(problem);
  const int of_multiprocessor = images::kFilterConfigAt[images.config].blocks;
  return ShareOut(problem.batch, of_multiprocessor, images::kFilterRows, &images)
             ? std::optional(images)
             : std::nullopt;
}

Result<std::unique_ptr<internal::Plan>>
MakeImagesPlan(int device, const Task& data, const Task& filter, const Images& images) {
  const int shared_bytes = images::SharedBytes(kConfigAt[images.config]);
  const Result<CUkernel> kernel = cuda::FindKernelOf(
      shared_bytes, device, {&cuda::kImage_conv_images},
      NarrowKernel("gradsmith_images_" + std::to_string(images.config), data.problem.type).c_str());
  if (!kernel.ok()) {
    return kernel.status();
  }
  return std::unique_ptr<internal::Plan>(std::make_unique<OnePassPlan<Arguments>>(
      data, filter, SlicesOf(images, *kernel, images::kThreads, shared_bytes), images.blocks,
      images.workspace()));
}

Result<std::unique_ptr<internal::Plan>>
MakeImagesFilterPlan(int device, const Task& task, const Images& images) {
  const int shared_bytes = images::SharedBytes(images::kFilterConfigAt[images.config]);
  const std::string name = "gradsmith_images_filter_" + std::to_string(images.config);
  const Result<CUkernel> kernel = cuda::FindKernelOf(
      shared_bytes, device, {&cuda::kImage_conv_images_filter},
      NarrowKernel(name, task.problem.type).c_str());
  if (!kernel.ok()) {
    return kernel.status();
  }
  return std::unique_ptr<internal::Plan>(std::make_unique<FilterAndSumsPlan<Arguments>>(
      task, SlicesOf(images, *kernel, images::kFilterThreads, shared_bytes), images.workspace()));
}

}  // namespace gradsmith::conv
