#include "channels/functors.h"
#include "channels/kernels.h"
#include "channels/operands.h"
#include "cuda/kernel_images.h"
#include "patterns/run_functor.h"

namespace gradsmith::channels {

namespace {

using internal::ChannelsOf;
using internal::FunctorKernels;
using internal::RowsOnBackend;

constexpr FunctorKernels kNorm = {
    .name = "ChannelNorm",
    .operands = operands::ChannelNorm::kNames,
    .image = &cuda::kImage_channel_rows};
constexpr FunctorKernels kNormGrad = {
    .name = "ChannelNormGrad",
    .operands = operands::ChannelNormGrad::kNames,
    .image = &cuda::kImage_channel_rows};
constexpr FunctorKernels kTotals = {
    .name = "ChannelTotals",
    .operands = operands::ChannelTotals::kNames,
    .image = &cuda::kImage_channel_rows};

}  // namespace

Status ChannelNorm::Run(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return RowsOnBackend<ChannelNormRows>(
      context, kNorm, ChannelsOf(inputs.X->dims.size(), 1), {attributes.epsilon}, inputs.X,
      inputs.scale, inputs.B, outputs.Y, outputs.mean, outputs.inv_std);
}

Status ChannelNormGrad::Run(
    const Context& context,
    const Attributes& /*attributes*/,
    const Inputs& inputs,
    const Outputs& outputs) {
  return RowsOnBackend<ChannelNormGradRows>(
      context, kNormGrad, ChannelsOf(inputs.X->dims.size(), 1), {}, inputs.dY, inputs.X,
      inputs.scale, inputs.mean, inputs.inv_std, outputs.dX, outputs.dScale, outputs.dBias);
}

Status ChannelTotals::Run(
    const Context& context,
    const Attributes& /*attributes*/,
    const Inputs& inputs,
    const Outputs& outputs) {
  return RowsOnBackend<ChannelTotalsRows>(
      context, kTotals, ChannelsOf(inputs.X->dims.size(), 1), {}, inputs.X, inputs.weight,
      inputs.factor, outputs.Y, outputs.sums, outputs.of_totals, outputs.totals);
}

}  // namespace gradsmith::channels
