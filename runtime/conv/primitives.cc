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
      Forward(context, problem, x, w, bias, y);
      return;
    case Primitive::kBackwardData:
      BackwardData(context, problem, y, w, bias, x);
      return;
    case Primitive::kBackwardFilter:
      BackwardFilter(context, problem, x, y, w);
      return;
  }
}

}  // namespace gradsmith::conv
