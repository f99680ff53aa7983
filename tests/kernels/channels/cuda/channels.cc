#include <array>
#include <string_view>

#include "channels/functors.h"
#include "channels/kernels.h"
#include "cuda/kernel_images.h"
#include "cuda/run_op.h"
#include "patterns/cuda/rows.h"

namespace gradsmith::channels {

namespace {

constexpr std::array<std::string_view, 6> kNormOperands = {"X", "scale", "B",
                                                           "Y", "mean",  "inv_std"};
constexpr cuda::OpInfo kNorm = {.name = "ChannelNorm", .operands = kNormOperands, .inputs = 3};

constexpr std::array<std::string_view, 8> kGradOperands = {"dY",      "X",  "scale",  "mean",
                                                           "inv_std", "dX", "dScale", "dBias"};
constexpr cuda::OpInfo kNormGrad = {
    .name = "ChannelNormGrad",
    .operands = kGradOperands,
    .inputs = 5};

constexpr std::array<std::string_view, 6> kTotalsOperands = {"X", "weight", "factor",
                                                             "Y", "sums",   "totals"};
constexpr cuda::OpInfo kTotals = {
    .name = "ChannelTotals",
    .operands = kTotalsOperands,
    .inputs = 3};

template <typename Functor>
Status Run(const Context& context, const ConstTensorRef& X, cuda::OpTask task) {
  static constexpr std::array kTable = {cuda::RowsBy<Functor, cuda::kImage_channel_rows>};
  static constexpr cuda::FamilyOnCuda kFamily = {.table = kTable};
  cuda::AddAxes(internal::ChannelsOf(X.dims.size(), 1), &task);
  return cuda::RunOp(context, kFamily, task);
}

}  // namespace

Status ChannelNorm::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  cuda::OpTask task = cuda::MakeOpTask(
      kNorm, inputs.X, inputs.scale, inputs.B, outputs.Y, outputs.mean, outputs.inv_std);
  task.scalars.push_back(attributes.epsilon);
  return Run<ChannelNormRows>(context, *inputs.X, task);
}

Status ChannelNormGrad::RunCuda(
    const Context& context,
    const Attributes& /*attributes*/,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Run<ChannelNormGradRows>(
      context, *inputs.X,
      cuda::MakeOpTask(
          kNormGrad, inputs.dY, inputs.X, inputs.scale, inputs.mean, inputs.inv_std, outputs.dX,
          outputs.dScale, outputs.dBias));
}

Status ChannelTotals::RunCuda(
    const Context& context,
    const Attributes& /*attributes*/,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Run<ChannelTotalsRows>(
      context, *inputs.X,
      cuda::MakeOpTask(
          kTotals, inputs.X, inputs.weight, inputs.factor, outputs.Y, outputs.sums,
          outputs.totals));
}

}  // namespace gradsmith::channels
