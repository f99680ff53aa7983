#ifndef GRADSMITH_CONV_CUDA_GROUPED_H_
#define GRADSMITH_CONV_CUDA_GROUPED_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "conv/cuda/grouped_arguments.h"
#include "conv/task.h"
#include "core/plan.h"
#include "gradsmith/status.h"

/// The gradients of a convolution of narrow groups, as ResNeXt has them, in half and bf16 and
/// channels last, in one pass over dY: of 3x3 taps by single steps, where y is as large as x and
/// has as many channels. They are made on tensor cores, which multiply whole groups side by side.
///
/// Between groups there are zeros, and around images: what is infinite makes NaN of results beside
/// those that it belongs to, of up to 8 channels, or 16 of groups as wide.
namespace gradsmith::conv {

/// The candidate for a call's gradients together.
inline constexpr const char* kGrouped = "own/grouped";

/// Grouped is how such gradients are launched.
struct Grouped {
  grouped::Arguments arguments{};
  /// Pieces of the channels, each of which so many blocks share.
  std::int64_t slabs = 0;
  std::int64_t blocks = 0;

  /// Groups of up to 8 channels take half the products.
  [[nodiscard]] bool is_narrow() const { return arguments.group_channels <= grouped::kSlice / 2; }
  /// Each block's sums of dW: those of a slab's blocks at one place are a filter.
  [[nodiscard]] std::size_t workspace() const;
};

/// PlanGrouped returns nothing where the kernels do not take a problem: `data` is its backward
/// data, `filter` its backward filter.
std::optional<Grouped> PlanGrouped(int compute_capability, const Task& data, const Task& filter);

/// MakeGroupedPlan returns a plan for both tasks. Its operands are those of a call (call.h); it
/// leaves partial sums of dY.
Result<std::unique_ptr<internal::Plan>>
MakeGroupedPlan(int device, const Task& data, const Task& filter, const Grouped& grouped);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_GROUPED_H_
