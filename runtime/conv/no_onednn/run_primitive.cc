#include "conv/primitives.h"

/// The CPU's primitives in a build without oneDNN: there is nothing to choose.
namespace gradsmith::conv {

Status RunPrimitive(
    const Context& context,
    Primitive primitive,
    const Problem& problem,
    const std::array<void*, kOperands>& operands,
    const ConstTensorRef* bias) {
  RunOwn(context, primitive, problem, operands, bias);
  return {};
}

}  // namespace gradsmith::conv
