#include "channels/functors.h"
#include "channels/kernels.h"
#include "patterns/rows.h"

namespace gradsmith::channels {

using internal::ChannelsOf;
using internal::RowsOnCpu;

Status ChannelNorm::RunCpu(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return RowsOnCpu<ChannelNormRows>(
      context, ChannelsOf(inputs.X->dims.size(), 1), {attributes.epsilon}, inputs.X, inputs.scale,
      inputs.B, outputs.Y, outputs.mean, outputs.inv_std);
}

Status ChannelNormGrad::RunCpu(
    const Context& context,
    const Attributes& /*attributes*/,
    const Inputs& inputs,
    const Outputs& outputs) {
  return RowsOnCpu<ChannelNormGradRows>(
      context, ChannelsOf(inputs.X->dims.size(), 1), {}, inputs.dY, inputs.X, inputs.scale,
      inputs.mean, inputs.inv_std, outputs.dX, outputs.dScale, outputs.dBias);
}

Status ChannelTotals::RunCpu(
    const Context& context,
    const Attributes& /*attributes*/,
    const Inputs& inputs,
    const Outputs& outputs) {
  return RowsOnCpu<ChannelTotalsRows>(
      context, ChannelsOf(inputs.X->dims.size(), 1), {}, inputs.X, inputs.weight, inputs.factor,
      outputs.Y, outputs.sums, outputs.totals);
}

}  // namespace gradsmith::channels
