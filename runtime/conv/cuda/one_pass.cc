#include "conv/cuda/one_pass.h"

#include <cstdint>
#include <optional>

#include "conv/cuda/depthwise.h"
#include "conv/cuda/grouped.h"
#include "conv/cuda/images.h"
#include "conv/cuda/pointwise.h"

namespace gradsmith::conv {

namespace {

/// Whether reading dY once instead of three times is much of what a call takes: less waits for
/// launches.
bool IsLarge(const Problem& problem) {
  constexpr std::int64_t kEnough = 1 << 22;
  return NumElements(DimsOf(problem, kY)) >= kEnough;
}

std::optional<Pointwise>
PointwiseOf(const cuda::DeviceInfo& device, const Task& data, const Task& filter) {
  return PlanPointwise(device.compute_capability(), data, filter);
}

std::optional<Images>
ImagesOf(const cuda::DeviceInfo& device, const Task& data, const Task& filter) {
  return PlanImages(device.compute_capability(), data, filter);
}

std::optional<Grouped>
GroupedOf(const cuda::DeviceInfo& device, const Task& data, const Task& filter) {
  return PlanGrouped(device.compute_capability(), data, filter);
}

}  // namespace

OnePass OnePassOf(const cuda::DeviceInfo& device, const Task& data, const Task& filter) {
  if (const std::optional<Pointwise> pointwise = PointwiseOf(device, data, filter)) {
    return {kPointwise, pointwise->is_large()};
  }
  if (ImagesOf(device, data, filter)) {
    return {kImages, IsLarge(data.problem)};
  }
  if (GroupedOf(device, data, filter)) {
    return {kGrouped, IsLarge(data.problem)};
  }
  if (BothByDepthwiseTilesOf(data, filter)) {
    return {kDepthwiseTiles, IsLarge(data.problem)};
  }
  return {};
}

Result<std::unique_ptr<internal::Plan>>
MakeOnePassPlan(const cuda::DeviceInfo& device, const Task& data, const Task& filter) {
  if (const std::optional<Pointwise> pointwise = PointwiseOf(device, data, filter)) {
    return MakePointwisePlan(device.ordinal(), data, filter, *pointwise);
  }
  if (const std::optional<Images> images = ImagesOf(device, data, filter)) {
    return MakeImagesPlan(device.ordinal(), data, filter, *images);
  }
  if (const std::optional<Grouped> grouped = GroupedOf(device, data, filter)) {
    return MakeGroupedPlan(device.ordinal(), data, filter, *grouped);
  }
  if (const std::optional<DepthwiseTiles> tiles = BothByDepthwiseTilesOf(data, filter)) {
    return MakeBothByDepthwiseTilesPlan(data, filter, *tiles);
  }
  return InvalidArgument("the gradients are not computed in one pass");
}

}  // namespace gradsmith::conv
