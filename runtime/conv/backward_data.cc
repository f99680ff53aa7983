#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "conv/lowering.h"
#include "conv/patch_product.h"
#include "conv/patches.h"
#include "conv/phases.h"
#include "conv/primitives.h"
#include "core/element.h"

/// Each position of x is a sum over the positions of y that read it, so that no two threads add to
/// the same element. With a stride only some taps reach a position, which ones depends on its
/// remainder by the stride: the positions of one remainder are a product of their own, a
/// convolution of y without a stride.
namespace gradsmith::conv {
namespace {

/// Strides between every `steps`-th element along each axis, of which there are `counts`.
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
  RunPatchProduct<T>(
      context, {.patches = patches,
                .patches_group_step = y_channels * lowered.y.channel,
                .filter = w,
                .filter_steps =
                    {.outer = lowered.w.channel,
                     .channel = lowered.w.outer,
                     .spatial = Scaled(lowered.w.spatial, tap_periods, tap_counts)},
                .filter_group_step = y_channels * lowered.w.outer,
                .result = x,
                .result_steps = x_steps,
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
  if (problem.x_channels == 0 || columns.empty()) {
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

void BackwardData(
    const Context& context,
    const Problem& problem,
    const void* y,
    const void* w,
    const ConstTensorRef* bias,
    void* x) {
  internal::VisitFloatingType(problem.type, [&]<typename T>(std::type_identity<T>) {
    BackwardDataOf(
        context, problem, static_cast<const T*>(y), static_cast<const T*>(w), bias,
        static_cast<T*>(x));
  });
}

}  // namespace gradsmith::conv
