#ifndef GRADSMITH_CORE_BRIEF_LOOK_H_
#define GRADSMITH_CORE_BRIEF_LOOK_H_

#include "core/candidate.h"
#include "core/candidate_trial.h"
#include "core/selection.h"

namespace gradsmith::internal {

/// LookAtOthers times what heuristics put first beside others for a moment, first the best of each
/// source and form, and takes a quicker one: for as long as the policy's first_choice_seconds and
/// some runs of the first, or, where that takes many milliseconds, as long as some tens of them.
/// `tried` is how many candidates were tried until then.
void LookAtOthers(
    SearchSpace& space,
    const SearchPolicy& policy,
    int tried,
    Batches* batches,
    Selected* selected);

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_BRIEF_LOOK_H_
