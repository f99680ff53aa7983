#include "patterns/run_functor.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/problem_key.h"
#include "cuda/implementation.h"
#include "cuda/run_op.h"
#include "patterns/cuda/rows.h"
#include "patterns/cuda/windows.h"

namespace gradsmith::internal {

namespace {

using cuda::Implementation;
using cuda::OpInfo;
using cuda::OpTask;

Result<std::unique_ptr<Plan>>
BuildRows(const cuda::Target& target, const OpTask& task, const std::string& /*variant*/) {
  return cuda::MakeRowsPlan(
      {target.device}, *task.op->image, task, task.op->rows->kernels.front().info);
}

template <bool kGathers>
Result<std::unique_ptr<Plan>>
BuildWindows(const cuda::Target& target, const OpTask& task, const std::string& /*variant*/) {
  const cuda::WindowsKind kind = {.kernels = task.op->name, .gathers = kGathers};
  return cuda::MakeWindowsPlan(cuda::WindowsPolicyOf(target.device), *task.op->image, kind, task);
}

constexpr std::array<Implementation, 1> kRowsTable = {
    {{.name = "own/rows", .adds = true, .takes_all = true, .build = &BuildRows}}};
template <bool kGathers>
constexpr std::array<Implementation, 1> kWindowsTable = {
    {{.name = "own/windows", .adds = true, .takes_all = true, .build = &BuildWindows<kGathers>}}};

constexpr cuda::FamilyOnCuda kRows = {.table = kRowsTable};
constexpr cuda::FamilyOnCuda kReductions = {.table = kWindowsTable<false>};
constexpr cuda::FamilyOnCuda kGathers = {.table = kWindowsTable<true>};

/// Operators of two libraries may have one name; their images do not.
OpInfo InfoOf(const FunctorCall& call) {
  const FunctorKernels& kernels = call.kernels;
  return {
      .name = kernels.name,
      .operands = kernels.operands.first(call.tensors.size()),
      .inputs = call.inputs,
      .image = kernels.image,
      .id = ProblemKey::HashOfText(kernels.name) ^ ProblemKey::HashOfText(kernels.image->name)};
}

OpTask TaskOf(const OpInfo& op, const FunctorCall& call) {
  OpTask task;
  task.op = &op;
  for (const TensorRef& tensor : call.tensors) {
    task.tensors.push_back(tensor);
  }
  return task;
}

}  // namespace

Status RunFunctorOfRows(
    const Context& context,
    const FunctorCall& call,
    const cuda::RowsKernels& kernels,
    const RowsAxes& axes,
    std::span<const double> scalars) {
  if (call.kernels.image->bytes == nullptr) {
    return cuda::WithoutImage();
  }
  const cuda::RowsPassesInfo pass = {.passes = {}, .kernels = {&kernels, 1}};
  OpInfo op = InfoOf(call);
  op.rows = &pass;
  OpTask task = TaskOf(op, call);
  cuda::AddAxes(axes, &task);
  for (const double scalar : scalars) {
    task.scalars.push_back(scalar);
  }
  return cuda::RunOp(context, kRows, task);
}

Status RunFunctorOfWindows(
    const Context& context,
    const FunctorCall& call,
    const WindowsGeometry& windows,
    bool gathers) {
  if (call.kernels.image->bytes == nullptr) {
    return cuda::WithoutImage();
  }
  const OpInfo op = InfoOf(call);
  OpTask task = TaskOf(op, call);
  cuda::AddChoices(windows, &task);
  return cuda::RunOp(context, gathers ? kGathers : kReductions, task);
}

}  // namespace gradsmith::internal
