#ifndef GRADSMITH_BATCH_NORM_CUDA_TASK_H_
#define GRADSMITH_BATCH_NORM_CUDA_TASK_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "batch_norm/activation.h"
#include "batch_norm/kernels.h"
#include "core/problem_key.h"
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

inline constexpr int kMaxOperands = forward::kOperands;

/// Task is an op as it is run on CUDA. Epsilon and momentum are no part of it: no plan depends on
/// them.
struct Task {
  Direction direction = Direction::kForward;
  Activation activation = Activation::kNone;
  /// Of their addresses, what counts is whether they are aligned and whether a running statistic is
  /// updated in place. Absent operands are not given or not wanted.
  std::array<TensorRef, kMaxOperands> tensors = {};
};

Task MakeTask(
    Activation activation,
    const BatchNormalization::Inputs& inputs,
    const BatchNormalization::Outputs& outputs);
Task MakeTask(
    const BatchNormalizationReluGrad::Inputs& inputs,
    const BatchNormalizationGrad::Outputs& outputs);

constexpr int OperandsOf(Direction direction) {
  return direction == Direction::kForward ? forward::kOperands : backward::kOperands;
}
constexpr int InputsOf(Direction direction) {
  return direction == Direction::kForward ? forward::kInputs : backward::kInputs;
}
/// NameOf returns the schema's name of an operand.
std::string_view NameOf(Direction direction, int operand);

const TensorRef& XOf(const Task& task);
/// IsLarge is true for tensors (N, C, D...), false for those of one number for each channel.
bool IsLarge(const TensorRef& tensor);
std::int64_t SamplesPerChannel(const Task& task);

/// AddressesOf returns the operands' addresses, null for absent ones.
std::array<void*, kMaxOperands> AddressesOf(const Task& task);

/// AddTo adds everything that a choice of kernel depends on.
void AddTo(const Task& task, internal::ProblemKey* key);

/// OpOf returns the op's name.
std::string OpOf(const Task& task);

/// Describe returns, for example, "BatchNormalizationGrad, dY half [2, 3, 9, 11] NCHW, X ...".
std::string Describe(const Task& task);

}  // namespace gradsmith::batch_norm

#endif  // GRADSMITH_BATCH_NORM_CUDA_TASK_H_
