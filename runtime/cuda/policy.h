#ifndef GRADSMITH_CUDA_POLICY_H_
#define GRADSMITH_CUDA_POLICY_H_

#include <array>
#include <cstddef>

#include "cuda/device.h"

namespace gradsmith::cuda {

/// LatestPolicy returns the row of a table of policies with the latest compute capability that a
/// device has. The first row is for all devices; each has the field compute_capability.
template <typename Policy, std::size_t kRows>
const Policy& LatestPolicy(const std::array<Policy, kRows>& table, const DeviceInfo& device) {
  const Policy* best = &table.front();
  for (const Policy& policy : table) {
    best = policy.compute_capability <= device.compute_capability() ? &policy : best;
  }
  return *best;
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_POLICY_H_
