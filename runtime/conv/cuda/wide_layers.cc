#include "conv/cuda/wide_layers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

#include "conv/cuda/channels_last.h"
#include "conv/cuda/filter_slices.h"
#include "conv/cuda/sharing_plan.h"
#include "core/tiles.h"
#include "cuda/kernel_images.h"
#include "cuda/module.h"

namespace gradsmith::conv {

namespace {

using internal::CeilDivide;
using wide_layers::Arguments;
using wide_layers::kPixels;

constexpr int kOnly = 90;

/// The blocks of a multiprocessor that turn dY.
constexpr std::int64_t kTurnBlocks = 8;

/// The axis down and that to the right: lines are a row of an image each.
std::array<Axis, 2> AxesOf(const Problem& problem) {
  return problem.spatial_rank == 1 ? std::array{Axis{.x = 1, .w = 1, .y = 1}, problem.axes[0]}
                                   : std::array{problem.axes[0], problem.axes[1]};
}

/// The strides of images, rows and columns.
struct Pitches {
  std::int64_t image;
  std::int64_t row;
  std::int64_t column;
};

Pitches PitchesOf(const Problem& problem, const Strides& strides) {
  const bool has_rows = problem.spatial_rank == 2;
  return {strides[0], has_rows ? strides[2] : 0, strides[has_rows ? 3 : 2]};
}

bool TakesAxis(const Axis& axis) {
  constexpr std::int64_t kMost = 1 << 14;
  return axis.stride == 1 && axis.w * axis.dilation <= kMost && std::abs(axis.pad_begin) <= kMost &&
         axis.x <= kMost && axis.y <= kMost;
}

/// Whether offsets within an image are counted in 32 bits.
bool HasSmallOffsets(const Problem& problem) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  return problem.x_strides[0] <= kMost && problem.y_strides[0] <= kMost;
}

bool TakesProblem(const Problem& problem) {
  if (problem.type != DataType::kFloat || problem.group != 1 || problem.spatial_rank > 2 ||
      IsEmpty(problem)) {
    return false;
  }
  const std::array<Axis, 2> axes = AxesOf(problem);
  return std::ranges::all_of(axes, TakesAxis) && axes[1].dilation == 1 &&
         problem.x_channels % wide_layers::kVector == 0 &&
         problem.y_channels % wide_layers::kVector == 0 && HasSmallOffsets(problem);
}

/// The places of x that a step has at most: its first row may have a run, and all others whole
/// rows.
std::int64_t PlacesOf(std::int64_t width, int run) {
  return kPixels + (run * (1 + CeilDivide(kPixels - run, width)));
}

/// The pixels of a row that is filled up to whole runs.
std::int64_t WidthOf(std::int64_t columns, int run) {
  return CeilDivide(columns, run) * run;
}

/// The length of runs, of those that a step has places for, that leaves least of a row empty: the
/// longer one of two; 0 for none.
int RunOf(std::int64_t columns) {
  int best = 0;
  for (const int run : wide_layers::kRunAt) {
    const std::int64_t width = WidthOf(columns, run);
    if (PlacesOf(width, run) <= wide_layers::kMostPlaces &&
        (best == 0 || width < WidthOf(columns, best))) {
      best = run;
    }
  }
  return best;
}

void SetOperands(const Problem& problem, Arguments* arguments) {
  const auto [down, right] = AxesOf(problem);
  const Pitches x = PitchesOf(problem, problem.x_strides);
  const Pitches y = PitchesOf(problem, problem.y_strides);
  arguments->x_channels = static_cast<int>(problem.x_channels);
  arguments->y_channels = static_cast<int>(problem.y_channels);
  arguments->filter_height = static_cast<int>(down.w);
  arguments->filter_width = static_cast<int>(right.w);
  arguments->dilation_down = static_cast<int>(down.dilation);
  arguments->pad_top = static_cast<int>(down.pad_begin);
  arguments->pad_left = static_cast<int>(right.pad_begin);
  arguments->x_height = static_cast<int>(down.x);
  arguments->x_width = static_cast<int>(right.x);
  arguments->x_image = x.image;
  arguments->x_row = static_cast<int>(x.row);
  arguments->x_column = static_cast<int>(x.column);
  arguments->y_image = y.image;
  arguments->y_row = static_cast<int>(y.row);
  arguments->y_column = static_cast<int>(y.column);
}

/// The most blocks that share a tile.
int PiecesOf(const Arguments& arguments) {
  const auto block_at = [&](std::int64_t step) {
    return CeilDivide((step + 1) * arguments.blocks, arguments.all_steps) - 1;
  };
  std::int64_t pieces = 0;
  for (std::int64_t begin = 0; begin < arguments.all_steps; begin += arguments.steps) {
    pieces = std::max(pieces, block_at(begin + arguments.steps - 1) - block_at(begin) + 1);
  }
  return static_cast<int>(pieces);
}

/// How many blocks are quickest, in clocks of a multiprocessor: what they leave is written and
/// read.
int BlocksOf(const Arguments& arguments, std::int64_t filter_elements) {
  constexpr double kClocksOfStep = 1600;
  constexpr double kElementsOfClock = 260;
  const double tiles = arguments.all_steps / static_cast<double>(arguments.steps);
  const int most = std::min(kMultiprocessorsOfSlices, arguments.all_steps);
  int best = 1;
  double least = std::numeric_limits<double>::infinity();
  for (int blocks = 1; blocks <= most; ++blocks) {
    const auto steps = static_cast<double>(CeilDivide(arguments.all_steps, blocks));
    const double pieces = std::ceil(blocks / tiles) + 1;
    const double clocks = (steps * kClocksOfStep) +
                          (pieces * static_cast<double>(filter_elements) / kElementsOfClock);
    if (clocks < least) {
      least = clocks;
      best = blocks;
    }
  }
  return best;
}

/// Shares the tiles' steps out; false where there are more than blocks count.
bool ShareOut(std::int64_t pixels, std::int64_t filter_elements, Arguments* arguments) {
  constexpr std::int64_t kMostSteps = 1 << 30;
  const std::int64_t steps = CeilDivide(pixels, kPixels);
  const std::int64_t tiles = std::int64_t{arguments->pairs} * arguments->y_tiles;
  if (tiles > kMostSteps / steps || std::int64_t{arguments->y_tiles} > cuda::kMostBlocksYz) {
    return false;
  }
  arguments->steps = static_cast<int>(steps);
  arguments->all_steps = static_cast<int>(steps * tiles);
  arguments->blocks = BlocksOf(*arguments, filter_elements);
  arguments->pieces = PiecesOf(*arguments);
  const std::int64_t turning =
      CeilDivide(kMultiprocessorsOfSlices * kTurnBlocks, arguments->y_tiles);
  arguments->turn_rows = static_cast<int>(std::min(steps, turning));
  return true;
}

std::size_t BytesOfTurned(const Arguments& arguments) {
  return (static_cast<std::size_t>(arguments.y_tiles) * arguments.steps *
          wide_layers::kTileBytesOfY) +
         (std::size_t{wide_layers::kZeros} * sizeof(float));
}

/// The share of products that are not of empty places.
double ShareOf(const Problem& problem, const WideLayers& plan) {
  const auto [down, right] = AxesOf(problem);
  const auto pixels = static_cast<double>(problem.batch * down.y * right.y);
  const Arguments& arguments = plan.arguments;
  constexpr double kOfStep = double{wide_layers::kConsumers} * wide_layers::kXChannels *
                             wide_layers::kTaps * wide_layers::kYChannels * kPixels;
  return static_cast<double>(plan.filter_elements) * pixels / (kOfStep * arguments.all_steps);
}

/// WideLayersPlan turns dY, computes the pieces of the filter's gradient, and adds them up.
class WideLayersPlan final : public SharingPlan {
 public:
  WideLayersPlan(const Task& task, const WideLayers& plan, CUkernel turn, CUkernel filter)
      : task_(task), plan_(plan), turn_(turn), filter_(filter) {}

  [[nodiscard]] std::size_t workspace() const override { return plan_.workspace(); }

  [[nodiscard]] std::int64_t PartialSumRows(int operand) const override {
    return operand == kY ? plan_.arguments.turn_rows : 0;
  }

  [[nodiscard]] bool AddsUpSums() const override { return true; }

  Status RunShared(const internal::Launch& launch, const Shared& shared) override {
    const Arguments& arguments = plan_.arguments;
    CUstream stream = launch.stream;
    void* const turned = static_cast<std::byte*>(launch.workspace) + plan_.bytes_of_pieces();
    const cuda::LaunchShape of_turn = {
        .blocks_x = static_cast<unsigned>(arguments.turn_rows),
        .blocks_y = static_cast<unsigned>(arguments.y_tiles),
        .threads = wide_layers::kTurnThreads};
    const cuda::LaunchShape of_filter = {
        .blocks_x = static_cast<unsigned>(arguments.blocks),
        .threads = wide_layers::kThreads,
        .shared_bytes = static_cast<unsigned>(wide_layers::SharedBytesOf(plan_.run))};
    const void* x = launch.operands[kX];
    const void* y = launch.operands[kY];
    if (Status status =
            cuda::Launch(turn_, of_turn, stream, arguments, y, turned, shared.partial_sums);
        !status.ok()) {
      return status;
    }
    if (Status status =
            cuda::Launch(filter_, of_filter, stream, arguments, x, turned, launch.workspace);
        !status.ok()) {
      return status;
    }
    return SumSlices(
        task_, arguments.pieces, launch.operands[kW], launch, shared, arguments.turn_rows);
  }

 private:
  Task task_;
  WideLayers plan_;
  CUkernel turn_;
  CUkernel filter_;
};

}  // namespace

std::size_t WideLayers::bytes_of_pieces() const {
  constexpr std::size_t kAlignment = 256;
  return internal::RoundUp(
      static_cast<std::size_t>(arguments.pieces) * static_cast<std::size_t>(filter_elements) *
          sizeof(float),
      kAlignment);
}

std::size_t WideLayers::workspace() const {
  return bytes_of_pieces() + BytesOfTurned(arguments);
}

std::optional<WideLayers> PlanWideLayers(int compute_capability, const Task& task) {
  const Problem& problem = task.problem;
  if (compute_capability != kOnly || !IsFilter(task) || !TakesProblem(problem) ||
      !IsChannelsLast(task)) {
    return std::nullopt;
  }
  const auto [down, right] = AxesOf(problem);
  WideLayers plan;
  plan.run = RunOf(right.y);
  if (plan.run == 0) {
    return std::nullopt;
  }
  plan.filter_elements = NumElements(DimsOf(problem, kW));
  const std::int64_t width = WidthOf(right.y, plan.run);
  const std::int64_t rows = problem.batch * down.y;
  if (constexpr std::int64_t kMostPixels = 1 << 30; rows > kMostPixels / width) {
    return std::nullopt;
  }
  Arguments& arguments = plan.arguments;
  SetOperands(problem, &arguments);
  arguments.x_units = static_cast<int>(CeilDivide(problem.x_channels, wide_layers::kXChannels));
  arguments.tap_groups = static_cast<int>(CeilDivide(right.w, wide_layers::kTaps));
  arguments.units = arguments.x_units * arguments.tap_groups * arguments.filter_height;
  arguments.pairs = static_cast<int>(CeilDivide(arguments.units, wide_layers::kConsumers));
  arguments.y_tiles = static_cast<int>(CeilDivide(problem.y_channels, wide_layers::kYChannels));
  arguments.rows = static_cast<int>(rows);
  arguments.y_columns = static_cast<int>(right.y);
  arguments.y_width = cuda::DivisorOf(width);
  arguments.y_height = cuda::DivisorOf(down.y);
  arguments.reach = cuda::DivisorOf(width + plan.run);
  arguments.reached = static_cast<int>(width) + wide_layers::kTaps - 1;
  arguments.places = static_cast<int>(PlacesOf(width, plan.run));
  if (!ShareOut(rows * width, plan.filter_elements, &arguments)) {
    return std::nullopt;
  }
  plan.share = ShareOf(problem, plan);
  return plan;
}

Result<std::unique_ptr<internal::Plan>>
MakeWideLayersPlan(int device, const Task& task, const WideLayers& plan) {
  const std::string run = std::to_string(plan.run);
  const Result<CUkernel> turn = cuda::FindKernelOf(
      0, device, {&cuda::kImage_conv_wide_layers_filter},
      ("gradsmith_wide_layers_turn_" + run).c_str());
  if (!turn.ok()) {
    return turn.status();
  }
  const Result<CUkernel> filter = cuda::FindKernelOf(
      wide_layers::SharedBytesOf(plan.run), device, {&cuda::kImage_conv_wide_layers_filter},
      ("gradsmith_wide_layers_filter_" + run).c_str());
  if (!filter.ok()) {
    return filter.status();
  }
  return std::unique_ptr<internal::Plan>(
      std::make_unique<WideLayersPlan>(task, plan, *turn, *filter));
}

}  // namespace gradsmith::conv
