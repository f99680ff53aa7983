#ifndef GRADSMITH_CORE_HELD_SHAPE_H_
#define GRADSMITH_CORE_HELD_SHAPE_H_

#include "gradsmith/schema.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

namespace gradsmith::internal {

/// HeldShape reads the dims that an input holds for an output (TensorSpec::shape_of). An error says
/// that the tensor is no vector of int64 on the host, or that what it holds are no dims.
Result<Dims> HeldShape(const TensorSpec& spec, const ConstTensorRef& tensor);

/// CheckOnHost refuses an input that holds a shape and lies on a device.
Status CheckOnHost(const TensorSpec& spec, const ConstTensorRef& tensor);

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_HELD_SHAPE_H_
