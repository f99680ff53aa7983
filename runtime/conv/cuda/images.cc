#include "conv/cuda/images.h"

#include <algorithm>
#include <limits>
#include <string>

#include "conv/cuda/channels_last.h"
#include "conv/cuda/filter_slices.h"
#include "conv/cuda/one_pass_plan.h"
#include "conv/cuda/parts.h"
#include "core/tiles.h"
#include "cuda/module.h"

namespace gradsmith::conv {

namespace {

using images::Arguments;
using images::kFormAt;
using images::kForms;
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

bool TakesAxis(const Axis& axis) {
  return axis.stride == images::kStep && axis.dilation == 1 && axis.w >= images::kLeastTaps &&
         axis.w <= images::kMostTaps;
}

/// A position's own row and column of y have to be among those of the window.
bool IsAround(const Window& window) {
  return window.begin <= 0 && window.begin + window.size > 0;
}

/// The form with least room that is enough; -1 for none.
int FormOf(std::int64_t channels, std::int64_t window) {
  for (int i = 0; i < kForms; ++i) {
    if (channels <= kFormAt[i].channels && window <= kFormAt[i].window) {
      return i;
    }
  }
  return -1;
}

/// Rows of a segment: as many as let the blocks that run at once end soonest. A segment begins
/// with rows that another one has too: as if it had a step more.
std::int64_t SegmentOf(std::int64_t rows, std::int64_t strips) {
  const std::int64_t steps = CeilDivide(rows, images::kRows);
  std::int64_t best = steps;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t segments = 1; segments <= steps; ++segments) {
    const std::int64_t of_segment = CeilDivide(steps, segments);
    const std::int64_t works = strips * CeilDivide(steps, of_segment);
    const std::int64_t time = CeilDivide(works, kMultiprocessorsOfSlices) * (of_segment + 1);
    if (time < least) {
      least = time;
      best = of_segment;
    }
  }
  return best * images::kRows;
}

/// The kernels' arguments, but for how they share the work.
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
    arguments.begin[i] = static_cast<int>(WindowOf(axis).begin);
    arguments.positions[i] = static_cast<int>(std::max(axis.y, CeilDivide(axis.x, images::kStep)));
  }
  arguments.turns = images::kWarps / arguments.w[0];
  return arguments;
}

}  // namespace

std::size_t Images::workspace() const {
  const Arguments& p = arguments;
  return static_cast<std::size_t>(blocks) * sizeof(float) *
         static_cast<std::size_t>(p.y_channels * p.w[0] * p.w[1] * p.x_channels);
}

std::optional<Images> PlanImages(int compute_capability, const Task& data, const Task& filter) {
  const Problem& problem = data.problem;
  if (!FitOnePass(compute_capability, data, filter) || !CanBeCounted(problem) ||
      problem.group != 1 || problem.spatial_rank != images::kRank ||
      problem.x_channels > images::kMostChannels || problem.y_channels % images::kVector != 0 ||
      !TakesAxis(problem.axes[0]) || !TakesAxis(problem.axes[1])) {
    return std::nullopt;
  }
  const Window down = WindowOf(problem.axes[0]);
  const Window right = WindowOf(problem.axes[1]);
  Images images;
  images.form = FormOf(problem.y_channels, std::max(down.size, right.size));
  if (images.form < 0 || !IsAround(down) || !IsAround(right)) {
    return std::nullopt;
  }
  Arguments& arguments = images.arguments;
  arguments = ArgumentsOf(problem);
  constexpr std::int64_t kMostColumns = std::int64_t{images::kMostTiles} * images::kTile;
  const std::int64_t tiles = CeilDivide(arguments.positions[1], images::kTile);
  const std::int64_t of_strip = CeilDivide(tiles, CeilDivide(arguments.positions[1], kMostColumns));
  const std::int64_t strips = CeilDivide(tiles, of_strip);
  arguments.strip = static_cast<int>(of_strip * images::kTile);
  arguments.segment = static_cast<int>(SegmentOf(arguments.positions[0], problem.batch * strips));
  const std::int64_t segments = CeilDivide(arguments.positions[0], arguments.segment);
  arguments.strips = cuda::DivisorOf(strips);
  arguments.segments = cuda::DivisorOf(segments);
  const std::int64_t works = problem.batch * strips * segments;
  if (works > std::numeric_limits<int>::max()) {
    return std::nullopt;
  }
  arguments.works = static_cast<int>(works);
  images.blocks = std::min<std::int64_t>(works, kMultiprocessorsOfSlices);
  return images;
}

Result<std::unique_ptr<internal::Plan>>
MakeImagesPlan(int device, const Task& data, const Task& filter, const Images& images) {
  const std::string name =
      NarrowKernel("gradsmith_images_" + std::to_string(images.form), data.problem.type);
  const Result<CUkernel> kernel = cuda::FindKernelOf(
      images::SharedBytes(kFormAt[images.form]), device, {&cuda::kImage_conv_images}, name.c_str());
  if (!kernel.ok()) {
    return kernel.status();
  }
  const FilterSlices<Arguments> slices = {
      .kernel = *kernel,
      .shape =
          {.blocks_x = static_cast<unsigned>(images.blocks),
           .threads = images::kThreads,
           .shared_bytes = static_cast<unsigned>(images::SharedBytes(kFormAt[images.form]))},
      .arguments = images.arguments,
      .count = images.blocks};
  return std::unique_ptr<internal::Plan>(std::make_unique<OnePassPlan<Arguments>>(
      data, filter, slices, images.blocks, images.workspace()));
}

}  // namespace gradsmith::conv
