#ifndef GRADSMITH_CORE_ACCUMULATE_H_
#define GRADSMITH_CORE_ACCUMULATE_H_

#include <span>

#include "gradsmith/schema.h"

namespace gradsmith::internal {

/// RunOnCpu runs a row's kernel. Outputs that are to be added to are computed apart, so that no
/// kernel has to know of it, and then added.
Status RunOnCpu(
    const Row& row,
    const Context& context,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs);

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_ACCUMULATE_H_
