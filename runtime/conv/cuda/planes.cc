#include "conv/cuda/planes.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <span>
#include <string>

#include "conv/cuda/channels_last.h"
#include "conv/cuda/correlate_plan.h"
#include "conv/cuda/filter_slices.h"
#include "conv/cuda/math_name.h"
#include "conv/cuda/planes_places.h"
#include "core/tiles.h"
#include "cuda/kernel_images.h"
#include "cuda/module.h"

namespace gradsmith::conv {

namespace {

using internal::CeilDivide;
using planes::Arguments;
using planes::Line;
using planes::Pitches;

constexpr std::int64_t kMostInt = std::numeric_limits<int>::max();

/// Down and right; a line is an image of one row.
std::array<Axis, planes::kRank> AxesOf(const Problem& problem) {
  return problem.spatial_rank == 1 ? std::array<Axis, planes::kRank>{Axis{}, problem.axes[0]}
                                   : std::array{problem.axes[0], problem.axes[1]};
}

Line LineOf(const Axis& axis) {
  return {
      .x = static_cast<int>(axis.x),
      .w = static_cast<int>(axis.w),
      .y = static_cast<int>(axis.y),
      .step = static_cast<int>(axis.stride)};
}

/// The strides that count: 0 of dims of size 1, whose own may be anything.
Strides StridesThatCount(const Problem& problem, Operand operand) {
  const Dims dims = DimsOf(problem, operand);
  Strides strides = StridesOf(problem, operand);
  for (int i = 0; i < dims.size(); ++i) {
    strides[i] = dims[i] > 1 ? strides[i] : 0;
  }
  return strides;
}

Pitches PitchesOf(const Problem& problem, Operand operand) {
  const Strides strides = StridesThatCount(problem, operand);
  return {
      .image = strides[0],
      .channel = static_cast<int>(strides[1]),
      .row = problem.spatial_rank == 1 ? 0 : static_cast<int>(strides[2]),
      .column = static_cast<int>(strides[problem.spatial_rank + 1])};
}

/// Positions that are counted along an axis of x, real or not.
bool IsShort(const Axis& axis) {
  constexpr std::int64_t kMost = 1 << 20;
  return axis.x <= kMost && axis.y <= kMost && axis.w * axis.dilation <= kMost &&
         axis.stride <= kMost && std::abs(axis.pad_begin) <= kMost && axis.y * axis.stride <= kMost;
}

/// Whether offsets within an image are counted in 32 bits, those of pixels of x that are not there
/// as well.
bool HasSmallImages(const Problem& problem, Operand operand) {
  const Strides strides = StridesThatCount(problem, operand);
  if (std::any_of(strides.begin() + 1, strides.end(), [](std::int64_t stride) {
        return stride > kMostInt;
      })) {
    return false;
  }
  std::int64_t reach = (DimsOf(problem, operand)[1] - 1) * strides[1];
  for (int i = 0; i < problem.spatial_rank; ++i) {
    const Axis& axis = problem.axes.at(i);
    const std::int64_t around = (axis.w * axis.dilation) + axis.stride + std::abs(axis.pad_begin);
    reach += ((axis.y + planes::kMostColumns) * axis.stride + axis.x + around) * strides[i + 2];
  }
  return reach <= kMostInt;
}

bool TakesTask(int compute_capability, const Task& task) {
  const Problem& problem = task.problem;
  if (compute_capability < kFirstWithTensorCores || problem.type == DataType::kDouble ||
      problem.group != 1 || problem.spatial_rank > planes::kRank || IsEmpty(problem) ||
      task.primitive == Primitive::kBackwardData) {
    return false;
  }
  const auto axes = AxesOf(problem);
  return std::ranges::all_of(axes, IsShort) && problem.y_channels <= kMostInt &&
         (axes[1].y == 1 || problem.y_strides[problem.spatial_rank + 1] == 1) &&
         IsContiguous(problem, kW) && HasSmallImages(problem, kX) && HasSmallImages(problem, kY);
}

/// Whether all of an operand's rows are dense, begin at multiples of four elements and end there.
bool HasVectors(const Task& task, Operand operand, std::int64_t columns) {
  const auto alignment = planes::kVector * static_cast<int>(SizeOf(task.problem.type));
  const Strides strides = StridesThatCount(task.problem, operand);
  const auto* const column = strides.begin() + task.problem.spatial_rank + 1;
  return task.alignment[operand] >= alignment && columns % planes::kVector == 0 && *column == 1 &&
         std::all_of(strides.begin(), column, [](std::int64_t stride) {
           return stride % planes::kVector == 0;
         });
}

/// Whether a place is for two taps next to each other.
bool HasPairs(const Task& task) {
  return task.problem.type != DataType::kFloat && !IsFilter(task);
}

/// The least number of places that kernels have for the task's terms; 0 where these are more.
int PlacesFor(const Task& task) {
  const auto [down, right] = AxesOf(task.problem);
  const std::int64_t taps = HasPairs(task) ? CeilDivide(right.w, 2) : right.w;
  const std::int64_t terms = task.problem.x_channels * down.w * taps;
  const std::span<const int> all =
      HasPairs(task) ? std::span<const int>(planes::kPlacesOfPairsAt) : planes::kPlacesAt;
  const auto found = std::ranges::find_if(all, [&](int places) { return terms <= places; });
  return found == all.end() ? 0 : *found;
}

std::int64_t ReachOf(const Axis& axis, std::int64_t positions, std::int64_t taps) {
  return ((positions - 1) * axis.stride) + ((taps - 1) * axis.dilation) + 1;
}

/// By steps of two, lanes whose pixels of y are four apart meet what is eight apart: rows that are
/// four more than a multiple of eight are in other banks. By steps of one they meet what is in half
/// of the banks, and the next row is in the others.
std::int64_t PitchOf(std::int64_t columns, std::int64_t step) {
  const std::int64_t period = step % 2 == 0 ? 8 : 32;
  const std::int64_t apart = period / 2;
  return (CeilDivide(std::max<std::int64_t>(columns - apart, 0), period) * period) + apart;
}

/// Gives a block as many rows as its room takes; false where one is too many.
bool SetTile(const Task& task, std::int64_t most_bytes, Arguments* arguments) {
  const Problem& problem = task.problem;
  const auto [down, right] = AxesOf(problem);
  arguments->has_x_vectors = HasVectors(task, kX, right.x);
  arguments->has_y_vectors = HasVectors(task, kY, right.y);
  const std::int64_t columns = std::min<std::int64_t>(
      CeilDivide(right.y, planes::kPixels) * planes::kPixels, planes::kMostColumns);
  // Vectors begin at multiples of four, which the first tap need not.
  const std::int64_t left = -right.pad_begin;
  const std::int64_t lead = arguments->has_x_vectors ? left & (planes::kVector - 1) : 0;
  const std::int64_t taps = HasPairs(task) ? CeilDivide(right.w, 2) * 2 : right.w;
  const std::int64_t tile_columns =
      CeilDivide(lead + ReachOf(right, columns, taps), planes::kVector) * planes::kVector;
  const std::int64_t pitch = PitchOf(tile_columns, right.stride);
  const std::int64_t row_bytes =
      problem.x_channels * pitch *
      (planes::kWordBytes + static_cast<std::int64_t>(SizeOf(problem.type)));
  std::int64_t rows = std::min<std::int64_t>(down.y, planes::kMostRows);
  while (rows > 0 && ReachOf(down, rows, down.w) * row_bytes > most_bytes) {
    --rows;
  }
  if (rows == 0) {
    return false;
  }
  arguments->rows = static_cast<int>(rows);
  arguments->columns = static_cast<int>(columns);
  arguments->tile_top = static_cast<int>(-down.pad_begin);
  arguments->tile_left = static_cast<int>(left - lead);
  arguments->tile_rows = static_cast<int>(ReachOf(down, rows, down.w));
  arguments->tile_columns = static_cast<int>(tile_columns);
  arguments->tile_pitch = static_cast<int>(pitch);
  return true;
}

/// Blocks that run at once on a multiprocessor, fewer where their tiles would have no room for a
/// row; 0 for none. Sets their tiles.
int BlocksThatFit(const Task& task, int places, Arguments* arguments) {
  const int ring = IsFilter(task) ? planes::kRingBytes : 0;
  int blocks = IsFilter(task) ? planes::BlocksOfFilter(places) : planes::BlocksOfForward(places);
  while (blocks > 0 && !SetTile(task, planes::SharedBytesOf(blocks) - ring, arguments)) {
    --blocks;
  }
  return blocks;
}

/// BlocksOf returns as many blocks as share the works alike, of those that run at once.
int BlocksOf(std::int64_t works, std::int64_t tiles, int of_multiprocessor) {
  const std::int64_t most =
      std::max<std::int64_t>(1, std::int64_t{kMultiprocessorsOfSlices} * of_multiprocessor / tiles);
  return static_cast<int>(CeilDivide(works, CeilDivide(works, std::min(works, most))));
}

}  // namespace

std::size_t Planes::workspace() const {
  return static_cast<std::size_t>(blocks * filter_elements) * sizeof(float);
}

std::size_t Planes::shared_bytes() const {
  const planes::Arguments& p = arguments;
  const int elements = p.x_channels * p.tile_rows * p.tile_pitch;
  const int ring = filter_elements > 0 ? planes::kRingBytes : 0;
  const int bytes = (elements * (planes::kWordBytes + element_bytes)) + ring;
  return static_cast<std::size_t>(bytes);
}

std::optional<Planes> PlanPlanes(int compute_capability, const Task& task) {
  if (!TakesTask(compute_capability, task)) {
    return std::nullopt;
  }
  const Problem& problem = task.problem;
  const auto [down, right] = AxesOf(problem);
  Planes plan;
  plan.places = PlacesFor(task);
  plan.element_bytes = static_cast<int>(SizeOf(problem.type));
  Arguments& arguments = plan.arguments;
  const int at_once = plan.places > 0 ? BlocksThatFit(task, plan.places, &arguments) : 0;
  if (at_once == 0) {
    return std::nullopt;
  }
  arguments.x_channels = static_cast<int>(problem.x_channels);
  arguments.y_channels = static_cast<int>(problem.y_channels);
  arguments.lines[0] = LineOf(down);
  arguments.lines[1] = LineOf(right);
  arguments.x = PitchesOf(problem, kX);
  arguments.y = PitchesOf(problem, kY);
  const std::int64_t bands = CeilDivide(down.y, arguments.rows);
  const std::int64_t strips = CeilDivide(right.y, arguments.columns);
  const std::int64_t tiles = CeilDivide(problem.y_channels, planes::kBlockChannels);
  if (constexpr std::int64_t kMostWorks = 1 << 30;
      tiles > cuda::kMostBlocksYz || problem.batch > kMostWorks / (bands * strips)) {
    return std::nullopt;
  }
  arguments.bands = cuda::DivisorOf(bands);
  arguments.strips = cuda::DivisorOf(strips);
  arguments.works = static_cast<int>(problem.batch * bands * strips);
  plan.tiles = static_cast<int>(tiles);
  arguments.to_pair = static_cast<int>(IsFilter(task) ? right.stride : right.dilation);
  planes::PlaceTerms(
      {.is_filter = IsFilter(task),
       .has_pairs = HasPairs(task),
       .channels = problem.x_channels,
       .down = down,
       .right = right,
       .places = plan.places},
      &arguments);
  plan.blocks = BlocksOf(arguments.works, tiles, at_once);
  plan.filter_elements = IsFilter(task) ? NumElements(DimsOf(problem, kW)) : 0;
  return plan;
}

Result<std::unique_ptr<internal::Plan>>
MakePlanesPlan(int device, const Task& task, const Planes& planes) {
  const std::string name = std::string("gradsmith_planes_") +
                           (IsFilter(task) ? "filter_" : "forward_") +
                           MathNameOf(task.problem.type) + "_" + std::to_string(planes.places);
  const Result<CUkernel> kernel = cuda::FindKernelOf(
      planes::kMostSharedBytes, device,
      {&cuda::kImage_conv_planes, &cuda::kImage_conv_planes_narrow}, name.c_str());
  if (!kernel.ok()) {
    return kernel.status();
  }
  const cuda::LaunchShape shape = {
      .blocks_x = static_cast<unsigned>(planes.blocks),
      .blocks_y = static_cast<unsigned>(planes.tiles),
      .threads = planes::kThreads,
      .shared_bytes = static_cast<unsigned>(planes.shared_bytes())};
  if (!IsFilter(task)) {
    return std::unique_ptr<internal::Plan>(
        std::make_unique<CorrelatePlan<Arguments>>(task, planes.arguments, shape, *kernel));
  }
  const FilterSlices<Arguments> slices = {
      .kernel = *kernel, .shape = shape, .arguments = planes.arguments, .count = planes.blocks};
  return std::unique_ptr<internal::Plan>(
      std::make_unique<FilterAndSumsPlan<Arguments>>(task, slices, planes.workspace()));
}

}  // namespace gradsmith::conv
