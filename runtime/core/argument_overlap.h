#ifndef GRADSMITH_CORE_ARGUMENT_OVERLAP_H_
#define GRADSMITH_CORE_ARGUMENT_OVERLAP_H_

#include <span>

#include "gradsmith/schema.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

namespace gradsmith::internal {

/// CheckNoneIsShared refuses an output of which elements share memory.
Status CheckNoneIsShared(const OpSchema& op, std::span<const TensorRef> outputs);

/// CheckOverlaps refuses an output that shares memory with an input that it may not take the place
/// of, or with another output.
Status CheckOverlaps(
    const OpSchema& op,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs);

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_ARGUMENT_OVERLAP_H_
