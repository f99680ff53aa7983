#ifndef GRADSMITH_CORE_VALIDATE_H_
#define GRADSMITH_CORE_VALIDATE_H_

#include <span>
#include <vector>

#include "gradsmith/context.h"
#include "gradsmith/schema.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

namespace gradsmith::internal {

/// CheckCpuIndex: there is one CPU, and its index is 0.
Status CheckCpuIndex(int index);

/// ValidateCall checks everything that the schema says of a call: attributes, presence, types,
/// devices, memory, shapes and overlap. Of a call that equals one that has passed only addresses
/// are looked at (CheckedCall). Its sentences do not name the row; Call does.
Status ValidateCall(
    const Row& row,
    const Context& context,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs);

/// CheckWorkspace checks the workspace that the caller has given a CUDA context.
Status CheckWorkspace(const Context& context);

/// InferShapes returns the dims of every output. Only the presence and dims of the inputs and of
/// the outputs that the caller has already matter.
Result<std::vector<Dims>> InferShapes(
    const OpSchema& op,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const ConstTensorRef> outputs = {});

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_VALIDATE_H_
