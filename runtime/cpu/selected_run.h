#ifndef GRADSMITH_CPU_SELECTED_RUN_H_
#define GRADSMITH_CPU_SELECTED_RUN_H_

#include <span>

#include "core/problem_key.h"
#include "core/ready_plan.h"
#include "core/selection.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"
#include "gradsmith/types.h"

/// How a call on the CPU finds its plan and runs it, where there are kernels to choose among.
namespace gradsmith::cpu {

/// PolicyOf returns the context's policies as selection takes them.
internal::SearchPolicy PolicyOf(const Context& context, DataType type);

/// AddPolicy adds to a key the policies that every choice depends on besides the problem, and what
/// tells the family's candidates and checks of this Gradsmith from others'.
void AddPolicy(
    const Context& context,
    DataType type,
    int family_revision,
    internal::ProblemKey* key);

/// RunSelected finds a problem's plan and runs it. The thread keeps the plan for as long as few
/// others are asked for, and as much workspace as the largest of its plans took. Where the context
/// is preparing, everything but the run is done.
Status RunSelected(
    const Context& context,
    DataType type,
    const internal::ProblemKey& key,
    std::span<void* const> operands,
    const internal::SpaceMaker& maker);

}  // namespace gradsmith::cpu

#endif  // GRADSMITH_CPU_SELECTED_RUN_H_
