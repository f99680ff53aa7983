#include "patterns/map.h"
#include "prelu/functors.h"
#include "prelu/kernels.h"

namespace gradsmith::prelu {

using internal::MapOnCpu;

Status PRelu::RunCpu(
    const Context& context,
    const Attributes& /*attributes*/,
    const Inputs& inputs,
    const Outputs& outputs) {
  return MapOnCpu<PReluMap>(context, {}, inputs.X, inputs.slope, outputs.Y);
}

Status PReluGrad::RunCpu(
    const Context& context,
    const Attributes& /*attributes*/,
    const Inputs& inputs,
    const Outputs& outputs) {
  return MapOnCpu<PReluGradMap>(
      context, {}, inputs.dY, inputs.X, inputs.slope, outputs.dX, outputs.dSlope);
}

}  // namespace gradsmith::prelu
