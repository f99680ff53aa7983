#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <type_traits>
#include <vector>

#include "conv/lowering.h"
#include "conv/patches.h"
#include "conv/primitives.h"
#include "conv/tiling.h"
#include "core/element.h"
#include "core/parallel.h"

/// Forward and backward-data are the same product: result = filter * patches of the source.
/// Backward-data's patches are those of y that a position of x is reached from. With a stride only
/// some taps reach a position, which ones depends on its remainder by the stride; each remainder is
/// a product of its own, without a stride.
namespace gradsmith::conv {
namespace {

/// What one group of channels reads and writes, and how far on the next group lies.
template <typename T>
struct PatchProduct {
  using Real = internal::Accumulator<T>;

  PatchMatrix<T> patches;
  std::int64_t patches_group_step;
  const T* filter;
  std::int64_t filter_row_stride;
  Grid filter_columns;
  std::int64_t filter_group_step;
  T* result;
  std::int64_t result_row_stride;
  Grid result_columns;
  std::int64_t result_group_step;
  std::int64_t groups;
  std::int64_t rows;
  /// One for each row of each group, or empty.
  const std::vector<Real>* bias;

  [[nodiscard]] GridMatrix<const T> Filter(std::int64_t group) const {
    return {filter + (group * filter_group_step), filter_row_stride, filter_columns};
  }
  [[nodiscard]] GridMatrix<T> Result(std::int64_t group) const {
    return {result + (group * result_group_step), result_row_stride, result_columns};
  }
};

/// How a product is cut: rows and columns of the result, and the terms of its sums.
struct Blocking {
  Tiles rows;
  PositionTiles cols;
  Tiles depth;
};

template <typename T>
Blocking ChooseBlocking(const PatchProduct<T>& product) {
  constexpr std::int64_t kMaxRows = 256;
  constexpr std::int64_t kMinRows = 32;
  constexpr std::int64_t kMaxDepth = 2048;
  constexpr std::int64_t kMaxCols = 4096;
  const Tiles depth(product.patches.rows(), kMaxDepth);
  const PositionTiles cols(
      product.patches.images(), product.patches.positions_per_image(),
      std::min(kMaxCols, CeilDivide(kBlockElements, depth.largest())));
  std::int64_t rows = kMaxRows;
  while (rows > kMinRows &&
         product.groups * Tiles(product.rows, rows).count() * cols.count() < kEnoughTasks) {
    rows /= 2;
  }
  return {Tiles(product.rows, rows), cols, depth};
}

/// Scratch memory of one thread.
template <typename Real>
struct Workspace {
  explicit Workspace(const Blocking& blocking)
      : filter(Allocate(blocking.rows.largest() * blocking.depth.largest())),
        patches(Allocate(blocking.depth.largest() * blocking.cols.largest())),
        result(Allocate(blocking.rows.largest() * blocking.cols.largest())) {}

  static std::unique_ptr<Real[]> Allocate(std::int64_t count) {
    return std::make_unique_for_overwrite<Real[]>(count);
  }

  std::unique_ptr<Real[]> filter;
  std::unique_ptr<Real[]> patches;
  std::unique_ptr<Real[]> result;
};

template <typename Real>
void FillRow(const MatrixView<Real>& matrix, std::int64_t row, Real value) {
  const std::int64_t stride = matrix.row_major ? 1 : matrix.outer_stride;
  Real* data = matrix.data + (row * (matrix.row_major ? matrix.outer_stride : 1));
  CopyRun(&value, 0, data, stride, matrix.cols);
}

template <typename T>
void RunTile(
    const PatchProduct<T>& product,
    const Tiles& depth_tiles,
    std::int64_t group,
    Range rows,
    Range cols,
    const Workspace<internal::Accumulator<T>>& workspace) {
  using Real = internal::Accumulator<T>;
  const GridMatrix<const T> filter = product.Filter(group);
  const GridMatrix<T> result = product.Result(group);
  const PatchMatrix<T> patches = product.patches.Advanced(group * product.patches_group_step);

  // Float and double results are summed where they will stand, if memory allows.
  MatrixView<Real> sum = result.Packed(workspace.result.get(), rows, cols);
  bool in_place = false;
  if constexpr (std::is_same_v<T, Real>) {
    const std::optional<MatrixView<T>> view = result.View(rows, cols);
    in_place = view.has_value();
    sum = view.value_or(sum);
  }
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const std::int64_t channel = (group * product.rows) + row;
    FillRow(sum, row - rows.begin, product.bias->empty() ? Real{0} : (*product.bias)[channel]);
  }
  for (std::int64_t i = 0; i < depth_tiles.count(); ++i) {
    const Range depth = depth_tiles[i];
    AddProduct(
        ViewOrPack(filter, rows, depth, workspace.filter.get()),
        ViewOrPack(patches, depth, cols, workspace.patches.get()), sum);
  }
  if (!in_place) {
    result.Unpack(workspace.result.get(), rows, cols);
  }
}

template <typename T>
void Run(const Context& context, const PatchProduct<T>& product) {
  const Blocking blocking = ChooseBlocking(product);
  const std::int64_t row_tiles = blocking.rows.count();
  const std::int64_t col_tiles = blocking.cols.count();
  const std::int64_t multiplications =
      blocking.rows.largest() * blocking.cols.largest() * product.patches.rows();
  const auto body = [&](std::int64_t begin, std::int64_t end) {
    const Workspace<internal::Accumulator<T>> workspace(blocking);
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t group = task / (row_tiles * col_tiles);
      RunTile(
          product, blocking.depth, group, blocking.rows[(task / col_tiles) % row_tiles],
          blocking.cols[task % col_tiles], workspace);
    }
  };
  internal::ParallelFor(
      context, product.groups * row_tiles * col_tiles,
      CeilDivide(kMinMultiplications, multiplications), body);
}

template <typename T>
std::vector<internal::Accumulator<T>> LoadBias(const ConstTensorRef* bias) {
  if (bias == nullptr) {
    return {};
  }
  std::vector<internal::Accumulator<T>> values(bias->dims[0]);
  CopyRun(static_cast<const T*>(bias->data), bias->strides[0], values.data(), 1, bias->dims[0]);
  return values;
}

/// Writes each channel's bias, or zero, to all of a tensor.
template <typename T>
void FillWithBias(
    const Context& context,
    T* data,
    std::int64_t channels,
    std::int64_t channel_stride,
    const Grid& columns,
    const std::vector<internal::Accumulator<T>>& bias) {
  constexpr std::int64_t kColumnsPerTask = 1 << 16;
  const GridMatrix<T> result(data, channel_stride, columns);
  const Tiles tiles(columns.size(), kColumnsPerTask);
  internal::ParallelFor(
      context, channels * tiles.count(), CeilDivide(kColumnsPerTask, tiles.largest()),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t task = begin; task < end; ++task) {
          const std::int64_t channel = task / tiles.count();
          result.Fill(
              bias.empty() ? 0 : bias[channel], {channel, channel + 1},
              tiles[task % tiles.count()]);
        }
      });
}

/// Strides of a tensor of which only every `steps`-th element along each axis is used, `counts` in
/// all.
PerAxis<std::int64_t> Scaled(
    const PerAxis<std::int64_t>& strides,
    const PerAxis<std::int64_t>& steps,
    const PerAxis<std::int64_t>& counts) {
  PerAxis<std::int64_t> result{};
  for (int i = 0; i < kMaxSpatialRank; ++i) {
    // The step of a single element means nothing, and may be too large to multiply.
    result[i] = counts[i] > 1 ? strides[i] * steps[i] : 0;
  }
  return result;
}

template <typename T>
void ForwardOf(
    const Context& context,
    const Problem& problem,
    const T* x,
    const T* w,
    const ConstTensorRef* bias_tensor,
    T* y) {
  const LoweredProblem lowered = Lower(problem);
  const Grid columns = ImageGrid(problem.batch, SizesOf(lowered, &Axis::y), lowered.y);
  if (problem.y_channels == 0 || columns.size() == 0) {
    return;
  }
  const std::vector<internal::Accumulator<T>> bias = LoadBias<T>(bias_tensor);
  const std::int64_t x_channels = problem.x_channels / problem.group;
  const std::int64_t y_channels = problem.y_channels / problem.group;
  if (x_channels == 0 || HasZero(SizesOf(lowered, &Axis::x))) {
    FillWithBias(context, y, problem.y_channels, lowered.y.channel, columns, bias);
    return;
  }
  const PatchMatrix<T> patches(x, lowered.x, problem.batch, x_channels, ForwardTaps(lowered));
  Run<T>(
      context, {.patches = patches,
                .patches_group_step = x_channels * lowered.x.channel,
                .filter = w,
                .filter_row_stride = lowered.w.outer,
                .filter_columns = patches.RowGrid(lowered.w.channel, lowered.w.spatial),
                .filter_group_step = y_channels * lowered.w.outer,
                .result = y,
                .result_row_stride = lowered.y.channel,
                .result_columns = columns,
                .result_group_step = y_channels * lowered.y.channel,
                .groups = problem.group,
                .rows = y_channels,
                .bias = &bias});
}

/// Phase is the positions of x along one axis that have the same remainder by the stride and that
/// some tap reaches: remainder, remainder + stride, ... The taps are first_tap, first_tap +
/// tap_period, ...
struct Phase {
  std::int64_t remainder;
  std::int64_t first_tap;
  std::int64_t tap_period;
  AxisTaps taps;
};

std::vector<Phase> PhasesOf(const Axis& axis) {
  const std::int64_t divisor = std::gcd(axis.stride, axis.dilation);
  const std::int64_t period = axis.stride / divisor;
  std::vector<Phase> phases;
  for (std::int64_t tap = 0; tap < std::min(axis.w, period); ++tap) {
    const std::int64_t reached = (tap * axis.dilation) - axis.pad_begin;
    const std::int64_t remainder = ((reached % axis.stride) + axis.stride) % axis.stride;
    if (remainder >= axis.x) {
      continue;
    }
    phases.push_back(
        {.remainder = remainder,
         .first_tap = tap,
         .tap_period = period,
         .taps = {
             .positions = ((axis.x - remainder - 1) / axis.stride) + 1,
             .source = axis.y,
             .taps = ((axis.w - tap - 1) / period) + 1,
             .step = 1,
             .first = (remainder - reached) / axis.stride,
             .tap_step = -(axis.dilation / divisor)}});
  }
  return phases;
}

/// Phases of all axes: every combination of theirs.
using PhaseLists = PerAxis<std::vector<Phase>>;

/// Whether the phases together are all positions of x.
bool CoverAll(const PhaseLists& phases, const LoweredProblem& lowered) {
  for (int i = 0; i < kMaxSpatialRank; ++i) {
    const auto count = static_cast<std::int64_t>(phases[i].size());
    if (count < std::min(lowered.axes[i].stride, lowered.axes[i].x)) {
      return false;
    }
  }
  return true;
}

template <typename T>
struct BackwardDataArguments {
  const T* y;
  const T* w;
  T* x;
  const std::vector<internal::Accumulator<T>>* bias;
};

template <typename T>
void RunPhase(
    const Context& context,
    const Problem& problem,
    const LoweredProblem& lowered,
    const BackwardDataArguments<T>& arguments,
    const PerAxis<Phase>& phase) {
  PerAxis<AxisTaps> taps;
  PerAxis<std::int64_t> tap_counts{};
  PerAxis<std::int64_t> tap_periods{};
  PerAxis<std::int64_t> positions{};
  PerAxis<std::int64_t> strides{};
  const T* w = arguments.w;
  T* x = arguments.x;
  for (int i = 0; i < kMaxSpatialRank; ++i) {
    taps[i] = phase[i].taps;
    tap_counts[i] = taps[i].taps;
    tap_periods[i] = phase[i].tap_period;
    positions[i] = taps[i].positions;
    strides[i] = lowered.axes[i].stride;
    w += phase[i].first_tap * lowered.w.spatial[i];
    x += phase[i].remainder * lowered.x.spatial[i];
  }
  TensorSteps x_steps = lowered.x;
  x_steps.spatial = Scaled(lowered.x.spatial, strides, positions);
  const std::int64_t x_channels = problem.x_channels / problem.group;
  const std::int64_t y_channels = problem.y_channels / problem.group;
  const PatchMatrix<T> patches(arguments.y, lowered.y, problem.batch, y_channels, taps);
  Run<T>(
      context, {.patches = patches,
                .patches_group_step = y_channels * lowered.y.channel,
                .filter = w,
                .filter_row_stride = lowered.w.channel,
                .filter_columns = patches.RowGrid(
                    lowered.w.outer, Scaled(lowered.w.spatial, tap_periods, tap_counts)),
                .filter_group_step = y_channels * lowered.w.outer,
                .result = x,
                .result_row_stride = lowered.x.channel,
                .result_columns = ImageGrid(problem.batch, positions, x_steps),
                .result_group_step = x_channels * lowered.x.channel,
                .groups = problem.group,
                .rows = x_channels,
                .bias = arguments.bias});
}

template <typename T>
void BackwardDataOf(
    const Context& context,
    const Problem& problem,
    const T* y,
    const T* w,
    const ConstTensorRef* bias_tensor,
    T* x) {
  const LoweredProblem lowered = Lower(problem);
  const Grid columns = ImageGrid(problem.batch, SizesOf(lowered, &Axis::x), lowered.x);
  if (problem.x_channels == 0 || columns.size() == 0) {
    return;
  }
  const std::vector<internal::Accumulator<T>> bias = LoadBias<T>(bias_tensor);
  const bool y_is_empty = problem.y_channels == 0 || HasZero(SizesOf(lowered, &Axis::y));
  PhaseLists phases;
  for (int i = 0; i < kMaxSpatialRank && !y_is_empty; ++i) {
    phases[i] = PhasesOf(lowered.axes[i]);
  }
  if (!CoverAll(phases, lowered)) {
    FillWithBias(context, x, problem.x_channels, lowered.x.channel, columns, bias);
  }
  const BackwardDataArguments<T> arguments{.y = y, .w = w, .x = x, .bias = &bias};
  for (const Phase& first : phases[0]) {
    for (const Phase& second : phases[1]) {
      for (const Phase& third : phases[2]) {
        RunPhase(context, problem, lowered, arguments, {first, second, third});
      }
    }
  }
}

}  // namespace

void Forward(
    const Context& context,
    const Problem& problem,
    const void* x,
    const void* w,
    const ConstTensorRef* bias,
    void* y) {
  internal::VisitDataType(problem.type, [&]<typename T>(std::type_identity<T>) {
    ForwardOf(
        context, problem, static_cast<const T*>(x), static_cast<const T*>(w), bias,
        static_cast<T*>(y));
  });
}

void BackwardData(
    const Context& context,
    const Problem& problem,
    const void* y,
    const void* w,
    const ConstTensorRef* bias,
    void* x) {
  internal::VisitDataType(problem.type, [&]<typename T>(std::type_identity<T>) {
    BackwardDataOf(
        context, problem, static_cast<const T*>(y), static_cast<const T*>(w), bias,
        static_cast<T*>(x));
  });
}

}  // namespace gradsmith::conv
