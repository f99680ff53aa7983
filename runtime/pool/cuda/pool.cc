#include <array>
#include <string>
#include <string_view>

#include "cuda/kernel_images.h"
#include "cuda/run_op.h"
#include "patterns/cuda/windows.h"
#include "pool/kernels.h"
#include "pool/problem.h"

namespace gradsmith::pool {

namespace {

using cuda::Implementation;
using cuda::OpInfo;
using cuda::OpTask;
using cuda::WindowsKind;

constexpr std::array<std::string_view, 3> kMaxPoolOperands = {"X", "Y", "Indices"};
constexpr OpInfo kMaxPool = {.name = "MaxPool", .operands = kMaxPoolOperands, .inputs = 1};
constexpr std::array<std::string_view, 3> kMaxPoolGradOperands = {"dY", "Indices", "dX"};
constexpr OpInfo kMaxPoolGrad = {
    .name = "MaxPoolGrad",
    .operands = kMaxPoolGradOperands,
    .inputs = 2};
constexpr std::array<std::string_view, 4> kMaxPoolXYGradOperands = {"dY", "X", "Y", "dX"};
constexpr OpInfo kMaxPoolXYGrad = {
    .name = "MaxPoolXYGrad",
    .operands = kMaxPoolXYGradOperands,
    .inputs = 3};
constexpr std::array<std::string_view, 2> kForwardOperands = {"X", "Y"};
constexpr OpInfo kAveragePool = {.name = "AveragePool", .operands = kForwardOperands, .inputs = 1};
constexpr std::array<std::string_view, 2> kAveragePoolGradOperands = {"dY", "dX"};
constexpr OpInfo kAveragePoolGrad = {
    .name = "AveragePoolGrad",
    .operands = kAveragePoolGradOperands,
    .inputs = 1};

constexpr OpInfo kGlobalMaxPool = {
    .name = "GlobalMaxPool",
    .operands = kForwardOperands,
    .inputs = 1};
constexpr OpInfo kGlobalMaxPoolGrad = {
    .name = "GlobalMaxPoolGrad",
    .operands = kMaxPoolXYGradOperands,
    .inputs = 3};
constexpr OpInfo kGlobalAveragePool = {
    .name = "GlobalAveragePool",
    .operands = kForwardOperands,
    .inputs = 1};
constexpr OpInfo kGlobalAveragePoolGrad = {
    .name = "GlobalAveragePoolGrad",
    .operands = kAveragePoolGradOperands,
    .inputs = 1};

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
    .has_tiles = true};

template <const WindowsKind& kKind>
Result<std::unique_ptr<internal::Plan>>
Build(const cuda::Target& /*target*/, const OpTask& task, const std::string& /*variant*/) {
  return cuda::MakeWindowsPlan(cuda::kImage_pool_windows, kKind, task);
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
  return Run(context, kFamily<kMaxPoolKind>, kMaxPool, ProblemOf(attributes, inputs, outputs));
}

Status MaxPoolGrad::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Run(
      context, kFamily<kMaxPoolGradKind>, kMaxPoolGrad, ProblemOf(attributes, inputs, outputs));
}

Status MaxPoolXYGrad::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Run(
      context, kFamily<kMaxPoolXYGradKind>, kMaxPoolXYGrad, ProblemOf(attributes, inputs, outputs));
}

Status AveragePool::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Run(
      context, kFamily<kAveragePoolKind>, kAveragePool, ProblemOf(attributes, inputs, outputs));
}

Status AveragePoolGrad::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Run(
      context, kFamily<kAveragePoolGradKind>, kAveragePoolGrad,
      ProblemOf(attributes, inputs, outputs));
}

Status GlobalMaxPool::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Run(
      context, kFamily<kMaxPoolKind>, kGlobalMaxPool, ProblemOf(attributes, inputs, outputs));
}

Status GlobalMaxPoolGrad::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Run(
      context, kFamily<kMaxPoolXYGradKind>, kGlobalMaxPoolGrad,
      ProblemOf(attributes, inputs, outputs));
}

Status GlobalAveragePool::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Run(
      context, kFamily<kAveragePoolKind>, kGlobalAveragePool,
      ProblemOf(attributes, inputs, outputs));
}

Status GlobalAveragePoolGrad::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Run(
      context, kFamily<kAveragePoolGradKind>, kGlobalAveragePoolGrad,
      ProblemOf(attributes, inputs, outputs));
}

}  // namespace gradsmith::pool
