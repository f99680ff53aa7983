#ifndef GRADSMITH_CONV_CUDA_POINTWISE_H_
#define GRADSMITH_CONV_CUDA_POINTWISE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "conv/cuda/pointwise_arguments.h"
#include "conv/task.h"
#include "core/plan.h"
#include "gradsmith/status.h"

/// The gradients of a convolution of one tap, in half and bf16 and channels last, in one pass over
/// dY: products with the filter and with X are of the same tile of it, as are the sums of its
/// channels. For as many channels as a block has room for the sums of dW, on tensor cores.
namespace gradsmith::conv {

/// The candidate for a call's gradients together.
inline constexpr const char* kPointwise = "own/pointwise";

/// Pointwise is how such gradients are launched.
struct Pointwise {
  pointwise::Arguments arguments{};
  int config = 0;
  std::int64_t blocks = 0;

  /// Rows of partial sums of dY's channels.
  [[nodiscard]] std::int64_t sum_rows() const { return blocks * arguments.active_warps_of_x; }
  /// Each block's sums of dW.
  [[nodiscard]] std::size_t workspace() const {
    return static_cast<std::size_t>(blocks) * static_cast<std::size_t>(arguments.y_channels) *
           static_cast<std::size_t>(arguments.x_channels) * sizeof(float);
  }
  /// Whether there is a tile for every multiprocessor: then one pass is what takes least.
  [[nodiscard]] bool fills_device() const;
};

/// PlanPointwise returns nothing where the kernels do not take a problem: `data` is its backward
/// data, `filter` its backward filter.
std::optional<Pointwise>
PlanPointwise(int compute_capability, const Task& data, const Task& filter);

/// MakePointwisePlan returns a plan for both tasks. Its operands are those of a call (call.h); it
/// leaves partial sums of dY.
Result<std::unique_ptr<internal::Plan>>
MakePointwisePlan(int device, const Task& data, const Task& filter, const Pointwise& pointwise);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_POINTWISE_H_
