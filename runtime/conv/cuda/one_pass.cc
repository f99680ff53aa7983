#include "conv/cuda/one_pass.h"

#include <cstdint>
#include <optional>

#include "conv/cuda/depthwise.h"
#include "conv/cuda/first_layers.h"
#include "conv/cuda/grouped.h"
#include "conv/cuda/pointwise.h"

namespace gradsmith::conv {

namespace {

/// Whether reading dY once instead of three times is much of what a call takes: less waits for
/// launches.
bool HasManyElements(const Problem& problem, std::int64_t enough = 1 << 22) {
  return NumElements(DimsOf(problem, kY)) >= enough;
}

}  // namespace

OnePass OnePassOf(int compute_capability, const Task& data, const Task& filter) {
  if (const std::optional<Pointwise> pointwise = PlanPointwise(compute_capability, data, filter)) {
    return {kPointwise, pointwise->fills_device()};
  }
  if (PlanFirstLayers(compute_capability, data, filter)) {
    return {kFirstLayers, HasManyElements(data.problem, kEnoughForFirstLayers)};
  }
  if (PlanGrouped(compute_capability, data, filter)) {
    return {kGrouped, HasManyElements(data.problem)};
  }
  if (BothByDepthwiseTilesOf(data, filter)) {
    return {kDepthwiseTiles, HasManyElements(data.problem)};
  }
  return {};
}

Result<std::unique_ptr<internal::Plan>>
MakeOnePassPlan(const cuda::DeviceInfo& device, const Task& data, const Task& filter) {
  const int compute_capability = device.compute_capability();
  if (const std::optional<Pointwise> pointwise = PlanPointwise(compute_capability, data, filter)) {
    return MakePointwisePlan(device.ordinal(), data, filter, *pointwise);
  }
  if (const std::optional<FirstLayers> first_layers =
          PlanFirstLayers(compute_capability, data, filter)) {
    return MakeFirstLayersPlan(device.ordinal(), data, filter, *first_layers);
  }
  if (const std::optional<Grouped> grouped = PlanGrouped(compute_capability, data, filter)) {
    return MakeGroupedPlan(device.ordinal(), data, filter, *grouped);
  }
  if (const std::optional<DepthwiseTiles> tiles = BothByDepthwiseTilesOf(data, filter)) {
    return MakeBothByDepthwiseTilesPlan(data, filter, *tiles);
  }
  return InvalidArgument("the gradients are not computed in one pass");
}

}  // namespace gradsmith::conv
