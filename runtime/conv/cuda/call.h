#ifndef GRADSMITH_CONV_CUDA_CALL_H_
#define GRADSMITH_CONV_CUDA_CALL_H_

#include <array>
#include <string>
#include <type_traits>
#include <vector>

#include "conv/problem.h"
#include "conv/task.h"
#include "cuda/op_task.h"

/// A call of one of the four ops, as an OpTask in the terms of the convolution, so that all that
/// computes it is the same for the four.
namespace gradsmith::conv {

/// The operands of a call, in this order wherever they are a list: a convolution's three tensors
/// and the bias as inputs, its three tensors as results, and the sums of a bias gradient. An op has
/// some of them.
inline constexpr int kInputs = 0;
inline constexpr int kBiasInput = kOperands;
inline constexpr int kResults = kBiasInput + 1;
inline constexpr int kSums = kResults + kOperands;
inline constexpr int kCallTensors = kSums + 1;
inline constexpr int kCallInputs = kResults;

/// PlaceOf returns where among the operands of a call an operand is, for the primitive with this
/// result.
constexpr int PlaceOf(Operand result, int operand) {
  return (operand == result ? kResults : kInputs) + operand;
}

/// OperandsOf returns a primitive's operands among those of its call.
template <typename List>
auto OperandsOf(Primitive primitive, const List& of_call) {
  std::array<std::remove_cvref_t<decltype(of_call[0])>, kOperands> operands{};
  for (int i = 0; i < kOperands; ++i) {
    operands.at(i) = of_call[PlaceOf(ResultOf(primitive), i)];
  }
  return operands;
}

/// AddChoices adds to a call's task those attributes of its problem that dims do not tell.
void AddChoices(const Problem& problem, cuda::OpTask* call);

/// ProblemOf returns the problem that a call's dims and choices make. Strides are left empty.
Problem ProblemOf(const cuda::OpTask& call);

/// TextOfChoices says what a call's choices are: OpInfo::text_of_choices.
std::string TextOfChoices(const cuda::OpTask& call);

/// SharedOf returns the operand that all of a call's outputs are computed from, and that its bias
/// gradient sums: the op's lead.
Operand SharedOf(const cuda::OpTask& call);

/// TasksOf returns the primitives that a call asks for, at most two; none where there is nothing to
/// sum. To a bias, which is in the result before, a primitive is added. Volumes are images where
/// that is the same (WithMergedAxes).
std::vector<Task> TasksOf(const cuda::OpTask& call);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_CALL_H_
