#include "patterns/run_map.h"

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "core/stub.h"
#include "cuda/implementation.h"
#include "cuda/run_op.h"
#include "patterns/cuda/map.h"
#include "patterns/cuda/map_sums.h"

namespace gradsmith::internal {

namespace {

template <cuda::MakeMapSums* kMakeSums>
Result<std::unique_ptr<Plan>>
BuildOwnMap(const cuda::Target& target, const cuda::OpTask& task, const std::string& /*variant*/) {
  return cuda::MakeMapPlan(
      cuda::MapPolicyOf(target.device), *task.op->image, task, target, kMakeSums);
}

template <cuda::MakeMapSums* kMakeSums>
constexpr std::array<cuda::Implementation, 1> kTable = {
    {{.name = "own/map", .adds = true, .takes_all = true, .build = &BuildOwnMap<kMakeSums>}}};
constexpr cuda::FamilyOnCuda kMaps = {.table = kTable<nullptr>};
constexpr cuda::FamilyOnCuda kMapsWithSums = {.table = kTable<&cuda::MakeMapSumPlan>};

Status RunMap(
    const Context& context,
    const cuda::FamilyOnCuda& family,
    const cuda::OpInfo& op,
    std::span<const double> scalars,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  if (op.image == nullptr) {
    return cuda::WithoutImage();
  }
  cuda::OpTask task;
  task.op = &op;
  const auto count = static_cast<int>(op.operands.size());
  for (int i = 0; i < op.inputs; ++i) {
    cuda::AddOperand(ArgumentAt(inputs, static_cast<std::size_t>(i)), &task);
  }
  for (int i = op.inputs; i < count; ++i) {
    cuda::AddOperand(ArgumentAt(outputs, static_cast<std::size_t>(i - op.inputs)), &task);
  }
  for (const double scalar : scalars) {
    task.scalars.push_back(scalar);
  }
  return cuda::RunOp(context, family, task);
}

}  // namespace

Status RunMapOnCuda(
    const Context& context,
    const cuda::OpInfo& op,
    std::span<const double> scalars,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  return RunMap(context, kMaps, op, scalars, inputs, outputs);
}

Status RunMapWithSumsOnCuda(
    const Context& context,
    const cuda::OpInfo& op,
    std::span<const double> scalars,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  return RunMap(context, kMapsWithSums, op, scalars, inputs, outputs);
}

}  // namespace gradsmith::internal
