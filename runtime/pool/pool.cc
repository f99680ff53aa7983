#include "core/arguments.h"
#include "patterns/windows.h"
#include "pool/functors.h"
#include "pool/kernels.h"
#include "pool/problem.h"

namespace gradsmith::pool {

namespace {

template <typename Functor>
Status Reduce(const Context& context, const Result<Problem>& problem) {
  if (!problem.ok()) {
    return problem.status();
  }
  const internal::WindowsTask task = internal::MakeWindowsTask(
      problem->windows, {problem->tensors.begin(), problem->tensors.end()});
  internal::ReduceWindowsOnCpu<Functor>(context, problem->tensors[0].type, task);
  return {};
}

template <typename Functor>
Status Gather(const Context& context, const Result<Problem>& problem) {
  if (!problem.ok()) {
    return problem.status();
  }
  const internal::WindowsTask task = internal::MakeWindowsTask(
      problem->windows, {problem->tensors.begin(), problem->tensors.end()});
  internal::GatherWindowsOnCpu<Functor>(context, problem->tensors[0].type, task);
  return {};
}

}  // namespace

Status MaxPool::RunCpu(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Reduce<MaxPoolWindow>(context, ProblemOf(attributes, inputs, outputs));
}

Status MaxPoolGrad::RunCpu(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Gather<MaxPoolGradWindows>(context, ProblemOf(attributes, inputs, outputs));
}

Status MaxPoolXYGrad::RunCpu(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Gather<MaxPoolXYGradWindows>(context, ProblemOf(attributes, inputs, outputs));
}

Status AveragePool::RunCpu(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Reduce<AveragePoolWindow>(context, ProblemOf(attributes, inputs, outputs));
}

Status AveragePoolGrad::RunCpu(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Gather<AveragePoolGradWindows>(context, ProblemOf(attributes, inputs, outputs));
}

Status GlobalMaxPool::RunCpu(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Reduce<MaxPoolWindow>(context, ProblemOf(attributes, inputs, outputs));
}

Status GlobalMaxPoolGrad::RunCpu(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Gather<MaxPoolXYGradWindows>(context, ProblemOf(attributes, inputs, outputs));
}

Status GlobalAveragePool::RunCpu(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Reduce<AveragePoolWindow>(context, ProblemOf(attributes, inputs, outputs));
}

Status GlobalAveragePoolGrad::RunCpu(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Gather<AveragePoolGradWindows>(context, ProblemOf(attributes, inputs, outputs));
}

}  // namespace gradsmith::pool
