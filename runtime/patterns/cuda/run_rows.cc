#include "patterns/run_rows.h"

#include <array>
#include <memory>
#include <span>
#include <string>

#include "cuda/implementation.h"
#include "cuda/run_op.h"
#include "patterns/cuda/rows.h"

namespace gradsmith::internal {

namespace {

Result<std::unique_ptr<Plan>>
BuildOwnRows(const cuda::Target& target, const cuda::OpTask& task, const std::string& /*variant*/) {
  return cuda::MakeRowsPlan(target.device, *task.op->image, task, *task.op->rows);
}

constexpr std::array<cuda::Implementation, 1> kTable = {
    {{.name = "own/rows", .adds = true, .takes_all = true, .build = &BuildOwnRows}}};
constexpr cuda::FamilyOnCuda kRows = {.table = kTable};

}  // namespace

Status RunRowsOnCuda(
    const Context& context,
    const cuda::OpInfo& op,
    const RowsCall& call,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  if (op.image == nullptr) {
    return cuda::WithoutImage();
  }
  std::array<TensorRef, kMaxRowsTensors> tensors;
  const std::span<TensorRef> spread(tensors.data(), call.operands.size());
  if (!SpreadOperands(
          call.dims, call.of_row, op.rows->counts, call.operands, inputs, outputs, spread)) {
    return {};
  }
  cuda::OpTask task;
  task.op = &op;
  for (const TensorRef& tensor : spread) {
    cuda::AddOperand(&tensor, &task);
  }
  cuda::AddAxes(call.dims.Axes(call.of_row), &task);
  for (const double scalar : call.scalars) {
    task.scalars.push_back(scalar);
  }
  return cuda::RunOp(context, kRows, task);
}

}  // namespace gradsmith::internal
