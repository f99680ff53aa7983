#ifndef GRADSMITH_CONV_CUDA_PADDING_CHECK_H_
#define GRADSMITH_CONV_CUDA_PADDING_CHECK_H_

#include <array>
#include <cstddef>
#include <span>

#include "conv/task.h"
#include "core/plan.h"
#include "cuda/trial.h"
#include "gradsmith/status.h"

namespace gradsmith::conv {

/// TriedTask is a task that a plan computes in a trial, and which of the trial's operands are its
/// own.
struct TriedTask {
  const Task* task = nullptr;
  std::array<std::size_t, kOperands> at{};
};

/// CheckPadding is an error where the plan multiplies padding, or zeros that fill its tiles: it
/// runs it with an element of an input that is not a number, one after another, and counts which
/// elements of the results are not finite. Nothing is tried in an input whose elements share
/// memory, where one stands for many.
Status CheckPadding(cuda::Trial& trial, internal::Plan& plan, std::span<const TriedTask> tasks);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_PADDING_CHECK_H_
