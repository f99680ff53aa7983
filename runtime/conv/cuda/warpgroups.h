#ifndef GRADSMITH_CONV_CUDA_WARPGROUPS_H_
#define GRADSMITH_CONV_CUDA_WARPGROUPS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "conv/cuda/warpgroups_arguments.h"
#include "conv/task.h"
#include "core/plan.h"
#include "gradsmith/status.h"

/// The filter's gradient of convolutions of images in TF32 by products of warpgroups (`wgmma`), on
/// compute capability 9.0: of float, channels last and in fours, one group, 2 by 2 taps or more, by
/// any steps, dilations and pads that shared memory has room for. Products want the terms of a
/// column next to each other, which are pixels, in a place that a tap's shift would leave: they are
/// y's, turned on the way, and those of x come by registers. It leaves sums of dY's channels in
/// passing.
///
/// Both factors are rounded to TF32, and summed in float. What is infinite makes NaN of elements
/// beside those that it reaches.
namespace gradsmith::conv {

/// The candidate's name.
inline constexpr const char* kWarpgroups = "own/warpgroups";

/// Warpgroups is how a task is launched.
struct Warpgroups {
  warpgroups::Arguments arguments = {};
  int config = 0;
  /// The tiles of channels and of taps that a slice has.
  std::int64_t tiles = 0;
  std::int64_t groups = 0;
  std::int64_t filter_elements = 0;
  /// The share of all products that is not for empty places of tiles.
  double share = 0;

  [[nodiscard]] std::size_t workspace() const;
};

/// PlanWarpgroups plans the launch; nothing where the task does not fit.
std::optional<Warpgroups> PlanWarpgroups(int compute_capability, const Task& task);

Result<std::unique_ptr<internal::Plan>>
MakeWarpgroupsPlan(int device, const Task& task, const Warpgroups& plan);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_WARPGROUPS_H_
