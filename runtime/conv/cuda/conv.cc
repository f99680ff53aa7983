#include <array>
#include <string_view>

#include "conv/cuda/call.h"
#include "conv/cuda/together.h"
#include "conv/kernels.h"
#include "conv/problem.h"
#include "conv/task.h"
#include "cuda/run_op.h"

/// The four ops on CUDA.
namespace gradsmith::conv {

namespace {

using cuda::OpInfo;

/// What the op calls the operands of a call (call.h); `lead` is the one that its outputs are
/// computed from.
using Names = std::array<std::string_view, kCallTensors>;

constexpr OpInfo Op(std::string_view name, const Names& operands, Operand lead) {
  return {
      .name = name,
      .operands = operands,
      .inputs = kCallInputs,
      .lead = kInputs + lead,
      .text_of_choices = &TextOfChoices};
}

constexpr Names kConvNames = {"X", "W", "", "B", "", "", "Y", ""};
constexpr OpInfo kConv = Op("Conv", kConvNames, kX);
constexpr Names kConvGradNames = {"X", "W", "dY", "", "dX", "dW", "", "dB"};
constexpr OpInfo kConvGrad = Op("ConvGrad", kConvGradNames, kY);
constexpr Names kConvTransposeNames = {"", "W", "X", "B", "Y", "", "", ""};
constexpr OpInfo kConvTranspose = Op("ConvTranspose", kConvTransposeNames, kY);
constexpr Names kConvTransposeGradNames = {"dY", "W", "X", "", "", "dW", "dX", "dB"};
constexpr OpInfo kConvTransposeGrad = Op("ConvTransposeGrad", kConvTransposeGradNames, kX);

constexpr cuda::FamilyOnCuda kFamily = {
    .needs = cuda::Needs::kCudnn,
    .revision = kRevision,
    .compose = &FindCallPlan};

/// The operands that an op does not have.
constexpr const ConstTensorRef* kNoInput = nullptr;
constexpr const TensorRef* kNoResult = nullptr;

/// Runs an op on its arguments, in the order of a call's operands.
template <typename... Refs>
Status Run(
    const Context& context,
    const OpInfo& op,
    const Result<Problem>& problem,
    const Refs*... arguments) {
  static_assert(sizeof...(arguments) == kCallTensors);
  if (!problem.ok()) {
    return problem.status();
  }
  cuda::OpTask task = cuda::MakeOpTask(op, arguments...);
  AddChoices(*problem, &task);
  return cuda::RunOp(context, kFamily, task);
}

}  // namespace

Status Conv::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Run(
      context, kConv, ConvolutionProblem(attributes, inputs, outputs),  //
      inputs.X, inputs.W, kNoInput, inputs.B,                           //
      kNoResult, kNoResult, outputs.Y, kNoResult);
}

Status ConvGrad::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Run(
      context, kConvGrad, ConvolutionProblem(attributes, inputs, outputs),  //
      inputs.X, inputs.W, inputs.dY, kNoInput,                              //
      outputs.dX, outputs.dW, kNoResult, outputs.dB);
}

Status ConvTranspose::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Run(
      context, kConvTranspose, TransposedProblem(attributes, inputs, outputs),  //
      kNoInput, inputs.W, inputs.X, inputs.B,                                   //
      outputs.Y, kNoResult, kNoResult, kNoResult);
}

Status ConvTransposeGrad::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Run(
      context, kConvTransposeGrad, TransposedProblem(attributes, inputs, outputs),  //
      inputs.dY, inputs.W, inputs.X, kNoInput,                                      //
      kNoResult, outputs.dW, outputs.dX, outputs.dB);
}

}  // namespace gradsmith::conv
