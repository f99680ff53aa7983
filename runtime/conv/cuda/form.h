#ifndef GRADSMITH_CONV_CUDA_FORM_H_
#define GRADSMITH_CONV_CUDA_FORM_H_

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "conv/cuda/task.h"
#include "core/plan.h"
#include "cuda/device.h"

/// In what form a task's operands meet an engine: as they are, or as copies that suit it.
namespace gradsmith::conv {

/// Form is the task as the engine sees it, and which operands are copied for that. A copied operand
/// is dense and aligned.
struct Form {
  /// Names the form in a candidate's id: "" or "packed ".
  std::string name;
  Task inner;
  std::array<bool, kOperands> copied = {};
};

/// FormsOf returns the forms that a task can be run in, the most promising first: as it is unless
/// an input has zero strides, and with copies of those operands that have odd strides or addresses.
std::vector<Form> FormsOf(const Task& task);

/// WrapPlan returns a plan for the task from one for the form: it copies inputs, and a result
/// that is added to, into the workspace, runs the inner plan, and copies the result back.
std::unique_ptr<internal::Plan> WrapPlan(
    const cuda::DeviceInfo& device,
    const Task& task,
    const Form& form,
    std::unique_ptr<internal::Plan> inner);

/// CopiesBytes returns the workspace that a form's copies take.
std::size_t CopiesBytes(const Form& form);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_FORM_H_
