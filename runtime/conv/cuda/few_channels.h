#ifndef GRADSMITH_CONV_CUDA_FEW_CHANNELS_H_
#define GRADSMITH_CONV_CUDA_FEW_CHANNELS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "conv/cuda/few_channels_arguments.h"
#include "conv/task.h"
#include "core/plan.h"
#include "gradsmith/status.h"

/// Gradients of x and of the filter of convolutions of few channels in half and bf16, channels
/// last: of 3 by 3 or 3 by 3 by 3 taps by single steps with pads of one, of one group, of up to 72
/// channels of y and 40 of x, or 32 and 64. They are made on tensor cores, which multiply a tile of
/// a plane in shared memory with all of its taps. Channels need not fill 16 bytes.
///
/// Where no tap reaches there are zeros: what is infinite makes NaN of elements beside those that
/// it reaches.
namespace gradsmith::conv {

inline constexpr const char* kFewChannels = "own/few-channels";

/// FewChannels is how such a task is launched.
struct FewChannels {
  few_channels::Arguments arguments{};
  int config = 0;
  /// Channels fill chunks of 16 bytes.
  bool are_chunks = false;
  std::int64_t blocks = 0;
  /// How many sums there are of dW, each of whose taps along the first of three axes has blocks of
  /// its own, and of dY's channels; none of dX, of which a block has all taps.
  std::int64_t slices = 0;

  [[nodiscard]] std::size_t workspace() const;
};

/// PlanFewChannels returns nothing where the kernels do not take a task.
std::optional<FewChannels> PlanFewChannels(int compute_capability, const Task& task);

/// MayBeFewChannels says whether there is a device for which it returns something.
bool MayBeFewChannels(const Task& task);

/// MakeFewChannelsPlan returns a plan for a task; of the filter's gradient one that leaves partial
/// sums of dY.
Result<std::unique_ptr<internal::Plan>>
MakeFewChannelsPlan(int device, const Task& task, const FewChannels& few);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_FEW_CHANNELS_H_
