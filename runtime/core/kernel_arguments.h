#ifndef GRADSMITH_CORE_KERNEL_ARGUMENTS_H_
#define GRADSMITH_CORE_KERNEL_ARGUMENTS_H_

#include <span>

#include "gradsmith/tensor.h"

namespace gradsmith {

/// Fields of a kernel's Inputs and Outputs whose arguments every op of the kernel has, and never
/// leaves out: the generator refuses an op that does. A field of another pointer type is null where
/// the op does not have the argument, or the caller has left it out.
using RequiredInput = const ConstTensorRef*;
using RequiredOutput = const TensorRef*;

/// Fields whose arguments are lists of tensors, one at least, all fields of a kernel of one length.
/// A tensor of a list that an op may leave out (another span of such tensors) may be absent.
using RequiredInputs = std::span<const ConstTensorRef>;
using RequiredOutputs = std::span<const TensorRef>;

}  // namespace gradsmith

#endif  // GRADSMITH_CORE_KERNEL_ARGUMENTS_H_
