#ifndef GRADSMITH_CUDA_POLICY_H_
#define GRADSMITH_CUDA_POLICY_H_

#include <algorithm>
#include <array>
#include <cstddef>

#include "cuda/device.h"

namespace gradsmith::cuda {

/// LatestPolicy returns the row of a table of policies with the latest compute capability that a
/// device has, 90 for 9.0. The first row is for all devices; each has the field compute_capability.
template <typename Policy, std::size_t kRows>
constexpr const Policy& LatestPolicy(
    const std::array<Policy, kRows>& table,
    int compute_capability) {
  const Policy* best = &table.front();
  for (const Policy& policy : table) {
    const bool is_later = policy.compute_capability >= best->compute_capability;
    best = policy.compute_capability <= compute_capability && is_later ? &policy : best;
  }
  return *best;
}

template <typename Policy, std::size_t kRows>
const Policy& LatestPolicy(const std::array<Policy, kRows>& table, const DeviceInfo& device) {
  return LatestPolicy(table, device.compute_capability());
}

/// HaveOneOrder returns whether all policies of a table have the same field `order`: what the order
/// of sums depends on.
template <typename Policy, std::size_t kRows>
constexpr bool HaveOneOrder(const std::array<Policy, kRows>& table) {
  return std::ranges::all_of(
      table, [&](const Policy& policy) { return policy.order == table.front().order; });
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_POLICY_H_
