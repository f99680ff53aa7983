#ifndef GRADSMITH_POOL_PROBLEM_H_
#define GRADSMITH_POOL_PROBLEM_H_

#include "core/inline_vector.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"
#include "patterns/windows.h"
#include "pool/kernels.h"

namespace gradsmith::pool {

/// Problem is a call of a pooling operator: its windows, and its tensors in the order of the
/// operator's inputs and outputs, without those of which only the shape counts.
struct Problem {
  internal::WindowsGeometry windows;
  internal::InlineVector<TensorRef, internal::kMaxWindowTensors> tensors;
};

/// WindowsOver returns the windows that pooling with the attributes has over an input with dims
/// (N, C, D...). An error where they do not fit together.
Result<internal::WindowsGeometry> WindowsOver(
    const WindowAttributes& attributes,
    const Dims& input);

/// ProblemOf reads the arguments of an operator. An error where their dims or types do not fit
/// together as the kernel's kShapes and kTypes say, which the dims of MaxPoolGrad's dX may not.
Result<Problem> ProblemOf(
    const MaxPoolAttributes& attributes,
    const MaxPool::Inputs& inputs,
    const MaxPool::Outputs& outputs);
Result<Problem> ProblemOf(
    const MaxPoolGradAttributes& attributes,
    const MaxPoolGrad::Inputs& inputs,
    const MaxPoolGrad::Outputs& outputs);
Result<Problem> ProblemOf(
    const MaxPoolAttributes& attributes,
    const MaxPoolXYGrad::Inputs& inputs,
    const MaxPoolXYGrad::Outputs& outputs);
Result<Problem> ProblemOf(
    const AveragePoolAttributes& attributes,
    const AveragePool::Inputs& inputs,
    const AveragePool::Outputs& outputs);
Result<Problem> ProblemOf(
    const AveragePoolAttributes& attributes,
    const AveragePoolGrad::Inputs& inputs,
    const AveragePoolGrad::Outputs& outputs);
Result<Problem> ProblemOf(
    const NoAttributes& attributes,
    const GlobalMaxPool::Inputs& inputs,
    const GlobalMaxPool::Outputs& outputs);
Result<Problem> ProblemOf(
    const NoAttributes& attributes,
    const GlobalMaxPoolGrad::Inputs& inputs,
    const GlobalMaxPoolGrad::Outputs& outputs);
Result<Problem> ProblemOf(
    const NoAttributes& attributes,
    const GlobalAveragePool::Inputs& inputs,
    const GlobalAveragePool::Outputs& outputs);
Result<Problem> ProblemOf(
    const NoAttributes& attributes,
    const GlobalAveragePoolGrad::Inputs& inputs,
    const GlobalAveragePoolGrad::Outputs& outputs);

}  // namespace gradsmith::pool

#endif  // GRADSMITH_POOL_PROBLEM_H_
