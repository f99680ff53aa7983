#ifndef GRADSMITH_CONV_CUDA_FIRST_LAYERS_H_
#define GRADSMITH_CONV_CUDA_FIRST_LAYERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "conv/cuda/first_layers_arguments.h"
#include "conv/task.h"
#include "core/plan.h"
#include "gradsmith/status.h"

/// The gradients of a first layer, in half and bf16 and channels last, in one pass over dY: of a
/// convolution by steps of two that takes images of up to three channels; or the filter's alone, by
/// single steps as well. They are made on tensor cores, which multiply what 2 by 2 pixels of dX
/// meet at once.
///
/// Where no tap reaches there are zeros: what is infinite in dY makes NaN of pixels of dX beside
/// those that it reaches, and of taps of dW that meet padding there; what is infinite in x makes
/// NaN of dW behind the end of a row of y.
namespace gradsmith::conv {

/// The candidate for a call's gradients together, and for the filter's gradient.
inline constexpr const char* kFirstLayers = "own/first-layers";

/// Elements of dY from which it comes before others, which take copies with more channels.
inline constexpr std::int64_t kEnoughForFirstLayers = 1 << 20;

/// FirstLayers is how such gradients are launched.
struct FirstLayers {
  first_layers::Arguments arguments{};
  int config = 0;
  std::int64_t blocks = 0;
  /// The tiles of channels of y, where the filter's gradient is alone.
  std::int64_t tiles = 1;

  /// The bytes of the sums of dW and of dY's channels, of which every block leaves its own.
  [[nodiscard]] std::size_t workspace() const;
};

/// PlanFirstLayers returns nothing where the kernels do not take a problem: `data` is its backward
/// data, `filter` its backward filter.
std::optional<FirstLayers>
PlanFirstLayers(int compute_capability, const Task& data, const Task& filter);

/// MakeFirstLayersPlan returns a plan for both tasks. Its operands are those of a call (call.h); it
/// leaves partial sums of dY.
Result<std::unique_ptr<internal::Plan>> MakeFirstLayersPlan(
    int device,
    const Task& data,
    const Task& filter,
    const FirstLayers& first_layers);

/// PlanFirstLayersFilter returns nothing where the kernels do not take a problem whose task is its
/// backward filter.
std::optional<FirstLayers> PlanFirstLayersFilter(int compute_capability, const Task& task);

/// MakeFirstLayersFilterPlan returns a plan for it. It leaves partial sums of dY.
Result<std::unique_ptr<internal::Plan>>
MakeFirstLayersFilterPlan(int device, const Task& task, const FirstLayers& first_layers);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_FIRST_LAYERS_H_
