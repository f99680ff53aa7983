#include "elementwise/functors.h"
#include "elementwise/kernels.h"
#include "patterns/map.h"

namespace gradsmith::elementwise {

using internal::MapOnCpu;

Status Sigmoid::RunCpu(
    const Context& context,
    const Attributes& /*attributes*/,
    const Inputs& inputs,
    const Outputs& outputs) {
  return MapOnCpu<SigmoidMap>(context, {}, inputs.X, outputs.Y);
}

Status SigmoidGrad::RunCpu(
    const Context& context,
    const Attributes& /*attributes*/,
    const Inputs& inputs,
    const Outputs& outputs) {
  return MapOnCpu<SigmoidGradMap>(context, {}, inputs.dY, inputs.Y, outputs.dX);
}

Status LeakyRelu::RunCpu(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return MapOnCpu<LeakyReluMap>(context, {attributes.alpha}, inputs.X, outputs.Y);
}

Status LeakyReluGrad::RunCpu(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return MapOnCpu<LeakyReluGradMap>(context, {attributes.alpha}, inputs.dY, inputs.X, outputs.dX);
}

}  // namespace gradsmith::elementwise
