#include "conv/cuda/planes.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <string>

#include "conv/cuda/channels_last.h"
#include "conv/cuda/correlate_plan.h"
#include "conv/cuda/filter_slices.h"
#include "core/tiles.h"
#include "cuda/module.h"

namespace gradsmith::conv {

namespace {

using internal::CeilDivide;
using planes::Arguments;
using planes::kTermsAt;
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
      .step = static_cast<int>(axis.stride),
      .dilation = static_cast<int>(axis.dilation),
      .pad = static_cast<int>(axis.pad_begin)};
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
  if (compute_capability < kFirstWithTensorCores || problem.type != DataType::kFloat ||
      problem.group != 1 || problem.spatial_rank > planes::kRank || IsEmpty(problem) ||
      task.primitive == Primitive::kBackwardData) {
    return false;
  }
  const auto axes = AxesOf(problem);
  return std::ranges::all_of(axes, IsShort) && problem.y_channels <= kMostInt &&
         (axes[1].y == 1 || problem.y_strides[problem.spatial_rank + 1] == 1) &&
         IsContiguous(problem, kW) && HasSmallImages(problem, kX) && HasSmallImages(problem, kY);
}

/// Whether all of y's rows begin at multiples of four elements, and end there.
bool HasVectors(const Task& task) {
  constexpr int kAlignment = 16;
  const Problem& problem = task.problem;
  const Strides strides = StridesThatCount(problem, kY);
  const auto columns = AxesOf(problem)[1].y;
  return task.alignment[kY] >= kAlignment && columns % planes::kVector == 0 &&
         std::all_of(
             strides.begin(), strides.begin() + problem.spatial_rank + 1,
             [](std::int64_t stride) { return stride % planes::kVector == 0; });
}

/// The least form that has room; -1 for none.
int FormOf(std::int64_t terms) {
  const auto* const found = std::ranges::find_if(kTermsAt, [&](int room) { return terms <= room; });
  return found == std::end(kTermsAt) ? -1 : static_cast<int>(found - std::begin(kTermsAt));
}

std::int64_t ReachOf(const Axis& axis, std::int64_t positions) {
  return ((positions - 1) * axis.stride) + ((axis.w - 1) * axis.dilation) + 1;
}

/// Four more than a multiple of eight: by steps of two, a product's pixels of terms in two rows are
/// in different banks.
std::int64_t PitchOf(std::int64_t columns) {
  constexpr std::int64_t kBanks = 8;
  constexpr std::int64_t kApart = 4;
  return (CeilDivide(columns + kBanks - kApart, kBanks) * kBanks) - kBanks + kApart;
}

/// Gives a block as many rows as its room takes; false where one is too many.
bool SetTile(const Problem& problem, Arguments* arguments) {
  const auto [down, right] = AxesOf(problem);
  const std::int64_t columns = std::min<std::int64_t>(
      CeilDivide(right.y, planes::kPixels) * planes::kPixels, planes::kMostColumns);
  const std::int64_t tile_columns = ReachOf(right, columns);
  const std::int64_t row_bytes =
      problem.x_channels * PitchOf(tile_columns) * static_cast<std::int64_t>(sizeof(float));
  std::int64_t rows = std::min<std::int64_t>(down.y, planes::kMostRows);
  while (rows > 0 && ReachOf(down, rows) * row_bytes > planes::kMostTileBytes) {
    --rows;
  }
  if (rows == 0) {
    return false;
  }
  arguments->rows = static_cast<int>(rows);
  arguments->columns = static_cast<int>(columns);
  arguments->tile_rows = static_cast<int>(ReachOf(down, rows));
  arguments->tile_columns = static_cast<int>(tile_columns);
  arguments->tile_pitch = static_cast<int>(PitchOf(tile_columns));
  return true;
}

/// As many blocks as share the works alike, of those that run at once.
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
  return static_cast<std::size_t>(p.x_channels * p.tile_rows * p.tile_pitch) * sizeof(float);
}

std::optional<Planes> PlanPlanes(int compute_capability, const Task& task) {
  if (!TakesTask(compute_capability, task)) {
    return std::nullopt;
  }
  const Problem& problem = task.problem;
  const auto [down, right] = AxesOf(problem);
  Planes plan;
  plan.form = FormOf(problem.x_channels * down.w * right.w);
  Arguments& arguments = plan.arguments;
  if (plan.form < 0 || !SetTile(problem, &arguments)) {
    return std::nullopt;
  }
  arguments.x_channels = static_cast<int>(problem.x_channels);
  arguments.y_channels = static_cast<int>(problem.y_channels);
  arguments.lines[0] = LineOf(down);
  arguments.lines[1] = LineOf(right);
  arguments.x = PitchesOf(problem, kX);
  arguments.y = PitchesOf(problem, kY);
  arguments.has_vectors = HasVectors(task);
  const std::int64_t bands = CeilDivide(down.y, arguments.rows);
  const std::int64_t strips = CeilDivide(right.y, arguments.columns);
  const std::int64_t tiles = CeilDivide(problem.y_channels, planes::kBlockChannels);
  if (constexpr std::int64_t kMostTiles = 65535, kMostWorks = 1 << 30;
      tiles > kMostTiles || problem.batch > kMostWorks / (bands * strips)) {
    return std::nullopt;
  }
  arguments.bands = cuda::DivisorOf(bands);
  arguments.strips = cuda::DivisorOf(strips);
  arguments.works = static_cast<int>(problem.batch * bands * strips);
  plan.tiles = static_cast<int>(tiles);
  const int terms = kTermsAt[plan.form];
  plan.blocks = BlocksOf(
      arguments.works, tiles,
      IsFilter(task) ? planes::BlocksOfFilter(terms) : planes::BlocksOfForward(terms));
  plan.filter_elements = IsFilter(task) ? NumElements(DimsOf(problem, kW)) : 0;
  return plan;
}

Result<std::unique_ptr<internal::Plan>> MakePlanesPlan(const Task& task, const Planes& planes) {
  const std::string name = std::string("gradsmith_planes_") +
                           (IsFilter(task) ? "filter_" : "forward_") +
                           std::to_string(kTermsAt[planes.form]);
  const Result<CUkernel> kernel = cuda::FindKernel({&cuda::kImage_conv_planes}, name.c_str());
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
