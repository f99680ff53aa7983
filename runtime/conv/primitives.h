#ifndef GRADSMITH_CONV_PRIMITIVES_H_
#define GRADSMITH_CONV_PRIMITIVES_H_

#include <array>

#include "conv/problem.h"
#include "conv/task.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

/// The primitives on the CPU, which all four ops run. RunPrimitive is what they call; the others
/// are our own kernels, each of which writes its whole result, also where
/// there is nothing to sum. Pointers are elements of the problem's type, laid out as its strides
/// say.
namespace gradsmith::conv {

/// y = x * w, plus the bias of each of y's channels unless it is null.
void Forward(
    const Context& context,
    const Problem& problem,
    const void* x,
    const void* w,
    const ConstTensorRef* bias,
    void* y);

/// x = the gradient of Forward with respect to x, given y's, plus the bias of each of x's channels
/// unless it is null. Where no tap reads x it is zero, plus the bias.
void BackwardData(
    const Context& context,
    const Problem& problem,
    const void* y,
    const void* w,
    const ConstTensorRef* bias,
    void* x);

/// w = the gradient of Forward with respect to w, given y's.
void BackwardFilter(
    const Context& context,
    const Problem& problem,
    const void* x,
    const void* y,
    void* w);

/// dB = the sums of dY (N, M, O...) over all but its channels.
void BackwardBias(const Context& context, const ConstTensorRef& dY, const TensorRef& dB);

/// RunOwn computes a primitive's result by the kernel above that does. `bias` is null, or that of
/// each of the result's channels; no filter has one.
void RunOwn(
    const Context& context,
    Primitive primitive,
    const Problem& problem,
    const std::array<void*, kOperands>& operands,
    const ConstTensorRef* bias);

/// RunPrimitive is RunOwn, or, in a build with oneDNN (conv/onednn, otherwise conv/no_onednn), what
/// was chosen for the problem.
Status RunPrimitive(
    const Context& context,
    Primitive primitive,
    const Problem& problem,
    const std::array<void*, kOperands>& operands,
    const ConstTensorRef* bias);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_PRIMITIVES_H_
