#ifndef GRADSMITH_BATCH_NORM_CUDA_TASK_H_
#define GRADSMITH_BATCH_NORM_CUDA_TASK_H_

#include <cstdint>

#include "batch_norm/activation.h"
#include "batch_norm/kernels.h"
#include "cuda/op_task.h"
#include "gradsmith/tensor.h"

namespace gradsmith::batch_norm {

enum class Direction : unsigned char { kForward, kBackward };

/// The operands of an op, in this order wherever they are a list: its inputs, then its outputs.
namespace forward {
enum Operand : unsigned char {
  kX,
  kScale,
  kB,
  kRunningMean,
  kRunningVar,
  kY,
  kNewMean,
  kNewVar,
  kSavedMean,
  kSavedInvStd,
};
inline constexpr int kInputs = 5;
inline constexpr int kOperands = 10;
/// Launch's scalars.
enum Scalar : unsigned char { kEpsilon, kMomentum };
}  // namespace forward

namespace backward {
enum Operand : unsigned char {
  kDY,
  kX,
  kScale,
  kB,  ///< absent without an activation
  kSavedMean,
  kSavedInvStd,
  kDX,
  kDScale,
  kDBias,
};
inline constexpr int kInputs = 6;
inline constexpr int kOperands = 9;
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
