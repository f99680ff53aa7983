#include <array>
#include <string>

#include "cuda/kernel_images.h"
#include "cuda/run_op.h"
#include "patterns/cuda/windows.h"
#include "pool/kernels.h"
#include "pool/operands.h"
#include "pool/problem.h"

namespace gradsmith::pool {

namespace {

using cuda::Implementation;
using cuda::OpInfo;
using cuda::OpTask;
using cuda::WindowsKind;

constexpr WindowsKind kMaxPoolKind = {.kernels = "MaxPool", .has_whole = true, .has_tiles = true};
constexpr WindowsKind kAveragePoolKind = {
    .kernels = "AveragePool",
    .has_whole = true,
    .has_tiles = true};
constexpr WindowsKind kMaxPoolGradKind = {
    .kernels = "MaxPoolGrad",
    .gathers = true,
    .has_places = true,
    .has_tiles = true};
constexpr WindowsKind kMaxPoolXYGradKind = {
    .kernels = "MaxPoolXYGrad",
    .gathers = true,
    .reads_input = true,
    .has_whole = true,
    .has_tiles = true};
constexpr WindowsKind kAveragePoolGradKind = {
    .kernels = "AveragePoolGrad",
    .gathers = true,
    .has_whole = true,
    .has_tiles = true};

template <const WindowsKind& kKind>
Result<std::unique_ptr<internal::Plan>>
Build(const cuda::Target& target, const OpTask& task, const std::string& /*variant*/) {
  return cuda::MakeWindowsPlan(
      cuda::WindowsPolicyOf(target.device), cuda::kImage_pool_windows, kKind, task);
}

template <const WindowsKind& kKind>
constexpr std::array<Implementation, 1> kTable = {
    {{.name = "own/windows", .adds = true, .takes_all = true, .build = &Build<kKind>}}};

template <const WindowsKind& kKind>
constexpr cuda::FamilyOnCuda kFamily = {.table = kTable<kKind>};

Status Run(
    const Context& context,
    const cuda::FamilyOnCuda& family,
    const OpInfo& op,
    const Result<Problem>& problem) {
  if (!problem.ok()) {
    return problem.status();
  }
  OpTask task;
  task.op = &op;
  for (const TensorRef& tensor : problem->tensors) {
    task.tensors.push_back(tensor);
  }
  cuda::AddChoices(problem->windows, &task);
  return cuda::RunOp(context, family, task);
}

}  // namespace

Status MaxPool::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Run(
      context, kFamily<kMaxPoolKind>, operands::MaxPool::kOp,
      ProblemOf(attributes, inputs, outputs));
}

Status MaxPoolGrad::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Run(
      context, kFamily<kMaxPoolGradKind>, operands::MaxPoolGrad::kOp,
      ProblemOf(attributes, inputs, outputs));
}

Status MaxPoolXYGrad::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Run(
      context, kFamily<kMaxPoolXYGradKind>, operands::MaxPoolXYGrad::kOp,
      ProblemOf(attributes, inputs, outputs));
}

Status AveragePool::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Run(
      context, kFamily<kAveragePoolKind>, operands::AveragePool::kOp,
      ProblemOf(attributes, inputs, outputs));
}

Status AveragePoolGrad::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Run(
      context, kFamily<kAveragePoolGradKind>, operands::AveragePoolGrad::kOp,
      ProblemOf(attributes, inputs, outputs));
}

Status GlobalMaxPool::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Run(
      context, kFamily<kMaxPoolKind>, operands::GlobalMaxPool::kOp,
      ProblemOf(attributes, inputs, outputs));
}

Status GlobalMaxPoolGrad::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Run(
      context, kFamily<kMaxPoolXYGradKind>, operands::GlobalMaxPoolGrad::kOp,
      ProblemOf(attributes, inputs, outputs));
}

Status GlobalAveragePool::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Run(
      context, kFamily<kAveragePoolKind>, operands::GlobalAveragePool::kOp,
      ProblemOf(attributes, inputs, outputs));
}

Status GlobalAveragePoolGrad::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Run(
      context, kFamily<kAveragePoolGradKind>, operands::GlobalAveragePoolGrad::kOp,
      ProblemOf(attributes, inputs, outputs));
}

}  // namespace gradsmith::pool
