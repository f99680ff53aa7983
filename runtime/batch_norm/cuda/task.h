#ifndef GRADSMITH_BATCH_NORM_CUDA_TASK_H_
#define GRADSMITH_BATCH_NORM_CUDA_TASK_H_

#include <cstdint>

#include "batch_norm/activation.h"
#include "batch_norm/kernels.h"
#include "batch_norm/operands.h"
#include "cuda/op_task.h"
#include "gradsmith/tensor.h"

namespace gradsmith::batch_norm {

enum class Direction : unsigned char { kForward, kBackward };

/// The operands of an op, in this order wherever they are a list: its inputs, then its outputs.
/// Both operators of a direction have the same: without an activation the gradient's B is absent.
namespace forward {
using Operands = operands::BatchNormalization;
using Operand = Operands::Operand;
using enum Operand;
inline constexpr int kInputs = Operands::kInputs;
inline constexpr int kOperands = Operands::kOperands;
/// Launch's scalars.
enum Scalar : unsigned char { kEpsilon, kMomentum };
}  // namespace forward

namespace backward {
using Operands = operands::BatchNormalizationReluGrad;
using Operand = Operands::Operand;
using enum Operand;
inline constexpr int kInputs = Operands::kInputs;
inline constexpr int kOperands = Operands::kOperands;
}  // namespace backward

/// OpOf returns what is the same of all calls of an op.
const cuda::OpInfo& OpOf(Direction direction, Activation activation);
Direction DirectionOf(const cuda::OpTask& task);
Activation ActivationOf(const cuda::OpTask& task);

cuda::OpTask MakeTask(
    Activation activation,
    const Attributes& attributes,
    const BatchNormalization::Inputs& inputs,
    const BatchNormalization::Outputs& outputs);
cuda::OpTask MakeTask(
    const BatchNormalizationReluGrad::Inputs& inputs,
    const BatchNormalizationGrad::Outputs& outputs);

/// XOf returns X.
inline const TensorRef& XOf(const cuda::OpTask& task) {
  return task.lead();
}
/// IsPerElement is true for tensors (N, C, D...), false for those of one number for each channel.
bool IsPerElement(const TensorRef& tensor);
std::int64_t SamplesPerChannel(const cuda::OpTask& task);

}  // namespace gradsmith::batch_norm

#endif  // GRADSMITH_BATCH_NORM_CUDA_TASK_H_
