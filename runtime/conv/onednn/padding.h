#ifndef GRADSMITH_CONV_ONEDNN_PADDING_H_
#define GRADSMITH_CONV_ONEDNN_PADDING_H_

#include <array>

#include "conv/problem.h"
#include "conv/task.h"

namespace gradsmith::conv {

/// MayHaveMultipliedPadding says whether a kernel of floats that multiplies the zeros of padding
/// may have left NaN where there is none: whether what is multiplied with them, the filter or, in
/// backward-filter, y, holds what is not finite. `operands` hold the result; few of its elements
/// are read, and the other operand only where they are not finite.
bool MayHaveMultipliedPadding(
    Primitive primitive,
    const Problem& problem,
    const std::array<void*, kOperands>& operands);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_ONEDNN_PADDING_H_
