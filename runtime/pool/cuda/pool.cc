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
constexpr std::array<std::string_view, 2> kAveragePoolOperands = {"X", "Y"};
constexpr OpInfo kAveragePool = {
    .name = "AveragePool",
    .operands = kAveragePoolOperands,
    .inputs = 1};
constexpr std::array<std::string_view, 2> kAveragePoolGradOperands = {"dY", "dX"};
constexpr OpInfo kAveragePoolGrad = {
    .name = "AveragePoolGrad",
    .operands = kAveragePoolGradOperands,
    .inputs = 1};

template <bool kGathers, bool kReadsInput, bool kHasPlaces>
Result<std::unique_ptr<internal::Plan>>
Build(const cuda::Target& /*target*/, const OpTask& task, const std::string& /*variant*/) {
  constexpr WindowsKind kKind = {
      .gathers = kGathers, .reads_input = kReadsInput, .has_places = kHasPlaces};
  return cuda::MakeWindowsPlan(cuda::kImage_pool_windows, kKind, task);
}

template <bool kGathers, bool kReadsInput = false, bool kHasPlaces = false>
constexpr std::array<Implementation, 1> kTable = {
    {{.name = "own/windows",
      .adds = true,
      .takes_all = true,
      .build = &Build<kGathers, kReadsInput, kHasPlaces>}}};

constexpr cuda::FamilyOnCuda kReductions = {.table = kTable<false>};
constexpr cuda::FamilyOnCuda kGathers = {.table = kTable<true>};
constexpr cuda::FamilyOnCuda kGathersOfIndices = {.table = kTable<true, false, true>};
constexpr cuda::FamilyOnCuda kGathersWithInput = {.table = kTable<true, true>};

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
  return Run(context, kReductions, kMaxPool, ProblemOf(attributes, inputs, outputs));
}

Status MaxPoolGrad::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Run(context, kGathersOfIndices, kMaxPoolGrad, ProblemOf(attributes, inputs, outputs));
}

Status MaxPoolXYGrad::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Run(context, kGathersWithInput, kMaxPoolXYGrad, ProblemOf(attributes, inputs, outputs));
}

Status AveragePool::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Run(context, kReductions, kAveragePool, ProblemOf(attributes, inputs, outputs));
}

Status AveragePoolGrad::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  return Run(context, kGathers, kAveragePoolGrad, ProblemOf(attributes, inputs, outputs));
}

}  // namespace gradsmith::pool
