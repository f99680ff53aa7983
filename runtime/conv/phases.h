#ifndef GRADSMITH_CONV_PHASES_H_
#define GRADSMITH_CONV_PHASES_H_

#include <cstdint>
#include <vector>

#include "conv/axis_taps.h"
#include "conv/lowering.h"

namespace gradsmith::conv {

/// Phase is the positions of x along one axis that have one remainder by the stride, and the taps
/// that reach them: first_tap, first_tap + tap_period, and so on.
struct Phase {
  std::int64_t remainder = 0;
  std::int64_t first_tap = 0;
  std::int64_t tap_period = 0;
  AxisTaps taps;
};

/// PhasesOf returns the phases of an axis that taps reach. The axis has positions of y.
std::vector<Phase> PhasesOf(const Axis& axis);

/// Phases of all axes: every combination of theirs.
using PhaseLists = PerAxis<std::vector<Phase>>;

/// CoverAll says whether the phases together are all positions of x.
bool CoverAll(const PhaseLists& phases, const LoweredProblem& lowered);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_PHASES_H_
