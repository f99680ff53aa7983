#ifndef GRADSMITH_CONV_CUDA_DEPTHWISE_FORMS_H_
#define GRADSMITH_CONV_CUDA_DEPTHWISE_FORMS_H_

#include <optional>
#include <string>

#include "conv/cuda/depthwise_form.h"
#include "conv/task.h"

/// Which depthwise convolutions have kernels that compute tiles of results, and where tiles begin.
namespace gradsmith::conv::depthwise {

/// How many sides and steps of filters there are kernels for.
inline constexpr int kForms = 7;

/// FormOf returns how a depthwise task is computed by tiles; nothing where there is no kernel.
std::optional<KernelForm> FormOf(const Task& task);

/// IndexOf returns a number below kForms for a form's side and step.
int IndexOf(const KernelForm& form);

/// NameOf returns how kernels are named after a form's side and step.
std::string NameOf(const KernelForm& form);

/// Where tiles begin along an axis: in the tensor that they are of, and in the other.
struct Origin {
  int to;
  int from;
};

/// OriginOf is for a task that has a form.
Origin OriginOf(const Task& task, const Axis& axis);

/// HasDenseRows returns whether neighbours along an operand's last axis lie next to each other.
bool HasDenseRows(const Problem& problem, Operand operand);

/// HasSmallPlanes returns whether positions in an image of an operand fit into 32 bits.
bool HasSmallPlanes(const Problem& problem, Operand operand);

}  // namespace gradsmith::conv::depthwise

#endif  // GRADSMITH_CONV_CUDA_DEPTHWISE_FORMS_H_
