#ifndef GRADSMITH_CONV_CUDA_PLANES_H_
#define GRADSMITH_CONV_CUDA_PLANES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "conv/cuda/planes_arguments.h"
#include "conv/task.h"
#include "core/plan.h"
#include "gradsmith/status.h"

/// Forward, and the filter's gradient, of convolutions of images or lines of few channels in TF32,
/// half and bf16 where pixels of y lie next to each other, channels first: y is read, or written,
/// once and straight from or to its planes, and x, which is small beside it, waits in shared
/// memory. The filter's gradient leaves sums of dY's channels in passing. They are made on tensor
/// cores.
///
/// Factors of float are rounded to TF32; sums are in float. Zeros stand where there are no pixels
/// and no terms: what is infinite may make NaN instead of infinity, and of what meets padding.
namespace gradsmith::conv {

/// The candidate's name.
inline constexpr const char* kPlanes = "own/planes";

/// Planes is how a task is launched.
struct Planes {
  planes::Arguments arguments = {};
  /// The places for terms that the kernel has, which tell one kernel from another.
  int places = 0;
  int element_bytes = 0;
  int blocks = 0;
  /// The tiles of channels of y.
  int tiles = 0;
  /// The elements of the filter, of which each block of a tile leaves sums; 0 for forward.
  std::int64_t filter_elements = 0;

  [[nodiscard]] std::size_t workspace() const;
  [[nodiscard]] std::size_t shared_bytes() const;
};

/// PlanPlanes plans the launch; nothing where the task does not fit.
std::optional<Planes> PlanPlanes(int compute_capability, const Task& task);

Result<std::unique_ptr<internal::Plan>>
MakePlanesPlan(int device, const Task& task, const Planes& planes);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_PLANES_H_
