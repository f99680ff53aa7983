#ifndef GRADSMITH_PATTERNS_CUDA_MAP_POLICY_H_
#define GRADSMITH_PATTERNS_CUDA_MAP_POLICY_H_

#include <array>
#include <cstdint>

#include "cuda/device.h"
#include "cuda/policy.h"
#include "patterns/cuda/map_launch.h"

namespace gradsmith::cuda {

/// MapPolicy is how tasks of the pattern `map` are cut. What is quickest depends on the GPU.
struct MapPolicy {
  /// The least compute capability that it is for.
  int compute_capability = 0;
  /// Threads of a block, a power of two of whole warps, at most kMostMapThreads.
  int threads = 256;
  /// Threads of a block in passes of sums.
  int summing_threads = 256;
  /// Threads that lie beside each other in memory where places of sums do: they read whole sectors.
  std::int64_t place_lanes = 32;
  /// The fewest steps of a thread that sums which are worth a block.
  std::int64_t least_steps = 8;
  /// Blocks that sum, for each multiprocessor, at most, where there are enough steps: a multiple of
  /// what a multiprocessor may hold at once, 2, 3, 4 or 6.
  std::int64_t summing_blocks = 12;
};

inline constexpr std::array<MapPolicy, 1> kMapPolicies = {{{}}};

/// MapPolicyOf returns the policy of the latest compute capability that a device has.
inline const MapPolicy& MapPolicyOf(const DeviceInfo& device) {
  return LatestPolicy(kMapPolicies, device);
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_MAP_POLICY_H_
