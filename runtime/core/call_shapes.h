#ifndef GRADSMITH_CORE_CALL_SHAPES_H_
#define GRADSMITH_CORE_CALL_SHAPES_H_

#include <span>
#include <vector>

#include "gradsmith/schema.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

namespace gradsmith::internal {

/// CheckShapes compares the shapes of a call's tensors, and the attributes that go by them, with
/// each other.
Status CheckShapes(
    const OpSchema& op,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs);

/// ShapesOfOutputs returns the dims of every output, by the inputs, the attributes and the outputs
/// that the caller has already. What is given has been checked.
Result<std::vector<Dims>> ShapesOfOutputs(
    const OpSchema& op,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const ConstTensorRef> outputs);

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_CALL_SHAPES_H_
