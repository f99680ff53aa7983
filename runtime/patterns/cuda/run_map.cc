#include "patterns/run_map.h"

#include <memory>
#include <string>

#include "cuda/implementation.h"
#include "cuda/run_op.h"
#include "patterns/cuda/map.h"

namespace gradsmith::internal {

namespace {

Result<std::unique_ptr<Plan>> BuildOwnMap(
    const cuda::Target& /*target*/,
    const cuda::OpTask& task,
    const std::string& /*variant*/) {
  return cuda::MakeMapPlan(*task.op->image, task);
}

constexpr std::array<cuda::Implementation, 1> kTable = {
    {{.name = "own/map", .adds = true, .takes_all = true, .build = &BuildOwnMap}}};
constexpr cuda::FamilyOnCuda kFamily = {.table = kTable};

}  // namespace

Status RunMapOnCuda(
    const Context& context,
    const cuda::OpInfo& op,
    std::span<const double> scalars,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  cuda::OpTask task;
  task.op = &op;
  for (const ConstTensorRef& input : inputs) {
    cuda::AddOperand(&input, &task);
  }
  for (const TensorRef& output : outputs) {
    cuda::AddOperand(&output, &task);
  }
  for (const double scalar : scalars) {
    task.scalars.push_back(scalar);
  }
  return cuda::RunOp(context, kFamily, task);
}

}  // namespace gradsmith::internal
