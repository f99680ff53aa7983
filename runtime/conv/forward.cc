#include <cstdint>
#include <type_traits>
#include <vector>

#include "conv/lowering.h"
#include "conv/patch_product.h"
#include "conv/patches.h"
#include "conv/primitives.h"
#include "core/element.h"

namespace gradsmith::conv {
namespace {

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
  if (problem.y_channels == 0 || columns.empty()) {
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
  RunPatchProduct<T>(
      context, {.patches = patches,
                .patches_group_step = x_channels * lowered.x.channel,
                .filter = w,
                .filter_steps = lowered.w,
                .filter_group_step = y_channels * lowered.w.outer,
                .result = y,
                .result_steps = lowered.y,
                .result_group_step = y_channels * lowered.y.channel,
                .groups = problem.group,
                .rows = y_channels,
                .bias = &bias});
}

}  // namespace

void Forward(
    const Context& context,
    const Problem& problem,
    const void* x,
    const void* w,
    const ConstTensorRef* bias,
    void* y) {
  internal::VisitFloatingType(problem.type, [&]<typename T>(std::type_identity<T>) {
    ForwardOf(
        context, problem, static_cast<const T*>(x), static_cast<const T*>(w), bias,
        static_cast<T*>(y));
  });
}

}  // namespace gradsmith::conv
