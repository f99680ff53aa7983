#include "conv/primitives.h"

namespace gradsmith::conv {

void RunOwn(
    const Context& context,
    Primitive primitive,
    const Problem& problem,
    const std::array<void*, kOperands>& operands,
    const ConstTensorRef* bias) {
  const auto [x, w, y] = operands;
  switch (primitive) {
    case Primitive::kForward:
      return Forward(context, problem, x, w, bias, y);
    case Primitive::kBackwardData:
      return BackwardData(context, problem, y, w, bias, x);
    case Primitive::kBackwardFilter:
      return BackwardFilter(context, problem, x, y, w);
  }
}

}  // namespace gradsmith::conv
