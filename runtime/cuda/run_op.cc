#include "cuda/run_op.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "core/problem_key.h"
#include "core/ready_plan.h"
#include "cuda/branching_plan.h"
#include "cuda/capture.h"
#include "cuda/op_search_space.h"
#include "cuda/selected_run.h"
#include "cuda/thread_state.h"

namespace gradsmith::cuda {

namespace {

using internal::Plan;
using internal::ProblemKey;
using internal::ReadyPlan;

Status Explained(const TaskCall& call, const Status& status) {
  return status.ok()
             ? status
             : cuda::Explained(
                   call.context, call.type(), Describe(call.task), status, call.family.needs);
}

/// The implementation that there is no choice beside; null where there is a choice.
const Implementation* WithoutChoice(const TaskCall& call) {
  const std::span<const Implementation> table = call.family.table;
  if (table.size() == 1) {
    return &table.front();
  }
  if (!call.family.is_trivial(call.task)) {
    return nullptr;
  }
  const auto found = std::ranges::find_if(table, &Implementation::takes_all);
  return found == table.end() ? nullptr : &*found;
}

Result<Plan*> PlanWithoutChoice(const TaskCall& call, const Implementation& implementation) {
  ProblemKey key;
  AddTo(call.task, &key);
  internal::ReadyPlans& plans = ThreadState::OfThisThread(call.device).plans();
  if (ReadyPlan* ready = plans.Find(key)) {
    return ready->plan.get();
  }
  const RelaxedCapture relaxed;
  Result<std::unique_ptr<Plan>> plan = BuildPlan(call.device, implementation, call.task);
  if (!plan.ok()) {
    return Explained(call, plan.status());
  }
  ReadyPlan ready;
  ready.plan = std::move(*plan);
  return plans.Insert(key, std::move(ready)).plan.get();
}

void AddPolicy(const TaskCall& call, ProblemKey* key) {
  cuda::AddPolicy(call.context, OriginOf(call.device, call.family.revision), call.type(), key);
}

Result<Plan*> PlanOf(const TaskCall& call) {
  if (call.family.compose != nullptr) {
    ProblemKey key;
    AddTo(call.task, &key);
    AddPolicy(call, &key);
    return call.family.compose(call, &key);
  }
  if (const Implementation* only = WithoutChoice(call)) {
    return PlanWithoutChoice(call, *only);
  }
  ProblemKey key;
  AddTo(call.task, &key);
  const auto make = [&] {
    return std::make_unique<OpSearchSpace>(
        call.device, call.stream(), call.family, call.task,
        call.context.options().allow_reduced_accuracy);
  };
  return FindChoice(call, &key, std::cref(make));
}

Status Run(const TaskCall& call) {
  const Result<Plan*> plan = PlanOf(call);
  if (!plan.ok()) {
    return plan.status();
  }
  const OperandAddresses operands = AddressesOf(call.task);
  const std::span<const double> scalars(call.task.scalars.begin(), call.task.scalars.end());
  PlannedCall planned = {.plan = **plan, .workspace = (*plan)->workspace()};
  AddAddresses({operands.begin(), operands.end()}, &planned.key);
  for (const double scalar : scalars) {
    planned.key.Add(std::bit_cast<std::int64_t>(scalar));
  }
  const auto enqueue = [&](Branches& branches, void* workspace) {
    return EnqueuePlan(
        **plan, branches,
        {.stream = branches.stream(),
         .operands = std::span(operands.begin(), operands.end()),
         .workspace = workspace,
         .scalars = scalars});
  };
  return Explained(call, RunPlanned(call.context, call.device, &planned, std::cref(enqueue)));
}

Status CheckOperands(const OpTask& task) {
  if (static_cast<std::size_t>(task.operands()) == task.op->operands.size()) {
    return {};
  }
  return Internal(
      std::string(task.op->name) + " has " + std::to_string(task.operands()) +
      " operands; expected " + std::to_string(task.op->operands.size()));
}

}  // namespace

Result<Plan*> FindChoice(const TaskCall& call, ProblemKey* key, const internal::SpaceMaker& maker) {
  AddPolicy(call, key);
  return FindPlan(call.context, call.device, call.type(), *key, maker, call.family.needs);
}

Status RunOp(const Context& context, const FamilyOnCuda& family, const OpTask& task) {
  const Result<const DeviceInfo*> device = OpenCall(context, family.needs);
  if (!device.ok()) {
    return device.status();
  }
  if (Status status = CheckOperands(task); !status.ok()) {
    return status;
  }
  if (HasNothingToWrite(task)) {
    return {};
  }
  const CurrentDevice current(**device);
  return Run({context, **device, family, task});
}

}  // namespace gradsmith::cuda
