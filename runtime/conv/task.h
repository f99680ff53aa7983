#ifndef GRADSMITH_CONV_TASK_H_
#define GRADSMITH_CONV_TASK_H_

#include <array>
#include <string>
#include <string_view>

#include "conv/problem.h"
#include "core/problem_key.h"
#include "gradsmith/tensor.h"

namespace gradsmith::conv {

/// kRevision is the family's: what remembered choices of convolutions rely on, on CUDA and on the
/// CPU. FamilyOnCuda::revision says what raises it.
inline constexpr int kRevision = 10;

/// Primitive says which of a convolution's three tensors is computed from the other two.
enum class Primitive : unsigned char { kForward, kBackwardData, kBackwardFilter };

/// The operands of a primitive, in this order wherever they are a list.
enum Operand : unsigned char { kX, kW, kY };
inline constexpr int kOperands = 3;

/// ResultOf returns the operand that a primitive computes.
constexpr Operand ResultOf(Primitive primitive) {
  switch (primitive) {
    case Primitive::kForward:
      return kY;
    case Primitive::kBackwardData:
      return kX;
    case Primitive::kBackwardFilter:
      return kW;
  }
  return kY;
}

/// ToString returns "forward", "backward-data" or "backward-filter".
std::string_view ToString(Primitive primitive);

/// Task is a primitive of a problem as candidates compute it.
struct Task {
  Primitive primitive = Primitive::kForward;
  Problem problem;
  /// The result is added to what is there.
  bool accumulate = false;
  /// A bias of each channel is added to the result: kernels of the CPU do that in passing.
  bool bias = false;
  /// What each operand's address is a multiple of, in bytes: 16, or an element's size.
  std::array<int, kOperands> alignment = {16, 16, 16};
};

/// IsFilter says whether a task is a filter's gradient.
inline bool IsFilter(const Task& task) {
  return task.primitive == Primitive::kBackwardFilter;
}

/// DimsOf returns an operand's dims: x (batch, x_channels, x...), w (y_channels, x_channels /
/// group, w...), y (batch, y_channels, y...).
Dims DimsOf(const Problem& problem, Operand operand);
const Strides& StridesOf(const Problem& problem, Operand operand);
Strides& StridesOf(Problem& problem, Operand operand);

/// HasEmptyOperand is true where x, w or y has no elements: nothing is summed.
bool HasEmptyOperand(const Problem& problem);

/// AddTo adds everything that a choice of kernel depends on. Choices are remembered by primitives,
/// not by calls: the four ops share them, whatever else a call asks for.
void AddTo(const Task& task, internal::ProblemKey* key);

/// AttributesText returns ", strides [1, 2], pads [0, 2, 1, 1], dilations [1, 1], group 1".
std::string AttributesText(const Problem& problem);

/// Describe returns, for example, "backward-data of float, x [2, 3, 9, 11] NCHW, w ...".
std::string Describe(const Task& task);

/// TermsOf returns how many products make one element of the result.
double TermsOf(const Task& task);

/// ProductsOf returns how many products a plain kernel multiplies for the whole result.
double ProductsOf(const Task& task);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_TASK_H_
