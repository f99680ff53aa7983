#ifndef GRADSMITH_CORE_PROBLEM_WORDS_H_
#define GRADSMITH_CORE_PROBLEM_WORDS_H_

#include <span>
#include <string>

#include "gradsmith/schema.h"
#include "gradsmith/tensor.h"

namespace gradsmith::internal {

/// ProblemWords returns a call as a line of a list of problems has it (tools/problem_line.h):
///
///     ConvGrad half dY=8x4x7x7 X=8x3x9x9 W=4x3x3x3 pads=1,1,1,1 layout=NHWC outputs=dX,dW
///
/// the op, its row, the dims of the inputs that are given, the attributes that are not their
/// defaults, the layout of images, the outputs where some are left out, and those that are added
/// to. The arguments have been validated. A tensor without dims is "scalar", a list of tensors has
/// commas between. Empty where there are no words: for a text with blanks or marks, and where some
/// tensors of a list are left out, or added to, and others are not.
std::string ProblemWords(
    const Row& row,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs);

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_PROBLEM_WORDS_H_
