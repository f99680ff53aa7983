#include "conv/phases.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace gradsmith::conv {

std::vector<Phase> PhasesOf(const Axis& axis) {
  const std::int64_t divisor = std::gcd(axis.stride, axis.dilation);
  const std::int64_t period = axis.stride / divisor;
  std::vector<Phase> phases;
  for (std::int64_t tap = 0; tap < std::min(axis.w, period); ++tap) {
    const std::int64_t reached = (tap * axis.dilation) - axis.pad_begin;
    const std::int64_t rest = reached % axis.stride;
    const std::int64_t remainder = rest < 0 ? rest + axis.stride : rest;
    if (remainder >= axis.x) {
      continue;
    }
    phases.push_back(
        {.remainder = remainder,
         .first_tap = tap,
         .tap_period = period,
         .taps = {
             .positions = ((axis.x - remainder - 1) / axis.stride) + 1,
             .source = axis.y,
             .taps = ((axis.w - tap - 1) / period) + 1,
             .step = 1,
             .first = (remainder - reached) / axis.stride,
             .tap_step = -(axis.dilation / divisor)}});
  }
  return phases;
}

bool CoverAll(const PhaseLists& phases, const LoweredProblem& lowered) {
  for (int i = 0; i < kMaxSpatialRank; ++i) {
    const auto count = static_cast<std::int64_t>(phases[i].size());
    if (count < std::min(lowered.axes[i].stride, lowered.axes[i].x)) {
      return false;
    }
  }
  return true;
}

}  // namespace gradsmith::conv
