#include "conv/cuda/padding_check.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>

#include "conv/reach.h"
#include "gradsmith/tensor.h"

namespace gradsmith::conv {

namespace {

bool ShareMemory(const Dims& dims, const Strides& strides) {
  for (int i = 0; i < dims.size(); ++i) {
    if (dims[i] > 1 && strides[i] == 0) {
      return true;
    }
  }
  return false;
}

/// How many elements of a task's result an element of one of the trial's operands reaches.
std::int64_t ReachedOf(const TriedTask& tried, std::size_t operand, const Place& place) {
  for (const Operand input : {kX, kW, kY}) {
    if (input != ResultOf(tried.task->primitive) && tried.at.at(input) == operand) {
      return ReachedElements(tried.task->problem, {.operand = input, .index = place.index});
    }
  }
  return 0;
}

/// Runs the plan with a planted element, and compares the counts.
Status CheckPlanted(
    cuda::Trial& trial,
    internal::Plan& plan,
    std::span<const TriedTask> tasks,
    std::size_t operand,
    const Place& place) {
  if (Status status = trial.Run(plan); !status.ok()) {
    return status;
  }
  for (const TriedTask& tried : tasks) {
    const Result<std::int64_t> found =
        trial.CountNotFinite(tried.at.at(ResultOf(tried.task->primitive)));
    if (!found.ok()) {
      return found.status();
    }
    if (const std::int64_t reached = ReachedOf(tried, operand, place); *found != reached) {
      return Unsupported(
          "multiplies padding: where one element is not a number, " + std::to_string(*found) +
          " of the result are not; expected " + std::to_string(reached));
    }
  }
  return {};
}

}  // namespace

Status CheckPadding(cuda::Trial& trial, internal::Plan& plan, std::span<const TriedTask> tasks) {
  std::set<std::size_t> tried_operands;
  for (const TriedTask& tried : tasks) {
    const Problem& problem = tried.task->problem;
    for (const Operand input : {kX, kW, kY}) {
      const std::size_t operand = tried.at.at(input);
      if (input == ResultOf(tried.task->primitive) || !tried_operands.insert(operand).second ||
          ShareMemory(DimsOf(problem, input), StridesOf(problem, input))) {
        continue;
      }
      for (const Place& place : PlacesToTry(problem, input)) {
        Status status = trial.Plant(operand, OffsetOf(problem, place));
        if (!status.ok()) {
          return status;
        }
        status = CheckPlanted(trial, plan, tasks, operand, place);
        if (const Status restored = trial.Unplant(); !status.ok() || !restored.ok()) {
          return status.ok() ? restored : status;
        }
      }
    }
  }
  return {};
}

}  // namespace gradsmith::conv
