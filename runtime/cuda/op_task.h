#ifndef GRADSMITH_CUDA_OP_TASK_H_
#define GRADSMITH_CUDA_OP_TASK_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/inline_vector.h"
#include "core/problem_key.h"
#include "cuda/kernel_image.h"
#include "gradsmith/tensor.h"

/// A call of an operator without its mathematics: what RunOp (run_op.h) knows of it.
namespace gradsmith::cuda {

struct OpTask;
struct RowsPassesInfo;

/// The most operands (inputs and outputs), choices and scalars that an operator has.
inline constexpr int kMaxOperands = 16;
inline constexpr int kMaxChoices = 24;
inline constexpr int kMaxScalars = 8;

/// InPlacePair names an input and the output that may be written in its memory.
struct InPlacePair {
  int input = 0;
  int output = 0;
};

/// OpInfo is what is the same of all calls of an operator; a constant of its family.
struct OpInfo {
  /// The operator's name in ops.yaml.
  std::string_view name;
  /// The names of the operands: first the inputs, then the outputs.
  std::span<const std::string_view> operands;
  int inputs = 0;
  std::span<const InPlacePair> in_place = {};
  /// The operand whose element type and rank stand for the call's.
  int lead = 0;
  /// The scalars that candidates are tried with.
  std::span<const double> trial_scalars = {};
  /// Says in words what the choices of a call are, as ", group 2", for messages; null where their
  /// numbers are to stand for themselves.
  std::string (*text_of_choices)(const OpTask& call) = nullptr;
  /// What lists of bad engines call the operator; empty where it uses none of cuDNN's.
  std::string_view operation = {};
  /// Holds the kernels of an operator that has formulas; null for others.
  const KernelImage* image = nullptr;
  /// Bit i is set where input i of a map is a mask (patterns/map.h).
  unsigned masks = 0;
  /// Bit i is set where formulas read single bits of input i, which has words (patterns/functor.h).
  unsigned bits = 0;
  /// Bit i is set where input i of a map may be absent.
  unsigned optional = 0;
  /// The passes of an operator whose formulas are computed by rows; null for others.
  const RowsPassesInfo* rows = nullptr;
  /// A number made of the name, with which the operator's keys begin.
  std::int64_t id = internal::ProblemKey::HashOfText(name);
};

/// OpTask is a call as selection and plans see it. It is the key by which a plan is found, and
/// describes itself.
struct OpTask {
  const OpInfo* op = nullptr;
  /// The operands in the order of op->operands. Absent ones are not given or not wanted. What
  /// counts of an address is whether it is aligned to 16 bytes and whether an output is written in
  /// place.
  internal::InlineVector<TensorRef, kMaxOperands> tensors;
  /// The attributes that the choice of a kernel or its plan depends on.
  internal::InlineVector<std::int64_t, kMaxChoices> choices;
  /// The attributes that neither depends on; they reach a plan with every run.
  internal::InlineVector<double, kMaxScalars> scalars;

  [[nodiscard]] int inputs() const { return op->inputs; }
  [[nodiscard]] int operands() const { return tensors.size(); }
  [[nodiscard]] bool is_output(int operand) const { return operand >= op->inputs; }
  [[nodiscard]] const TensorRef& lead() const { return tensors[op->lead]; }
};

/// AddOperand adds a kernel's argument to a task; null stands for an absent one.
void AddOperand(const ConstTensorRef* tensor, OpTask* task);
void AddOperand(const TensorRef* tensor, OpTask* task);

/// MakeOpTask returns a task of a kernel's arguments, in the order of op.operands.
template <typename... Refs>
OpTask MakeOpTask(const OpInfo& op, const Refs*... arguments) {
  static_assert(sizeof...(arguments) <= kMaxOperands);
  OpTask task;
  task.op = &op;
  (AddOperand(arguments, &task), ...);
  return task;
}

/// OperandAddresses are operands' addresses in their order, null for absent ones.
using OperandAddresses = internal::InlineVector<void*, kMaxOperands>;
OperandAddresses AddressesOf(const OpTask& task);

/// HasNothingToWrite is true where every output is absent or empty.
bool HasNothingToWrite(const OpTask& task);
/// HasEmptyOperand is true where an operand that is present has no elements.
bool HasEmptyOperand(const OpTask& task);
/// IsAddedTo is true where an output is added to what it holds.
bool IsAddedTo(const OpTask& task);

/// AddTo adds to a key all that a plan depends on.
void AddTo(const OpTask& task, internal::ProblemKey* key);

/// Describe returns, for example, "SoftmaxGrad, dY half [8, 999], Y half [8, 999] aligned to 2
/// bytes, dX half [8, 999] accumulating, choices [1]". A tensor that is not contiguous is followed
/// by "channels last" or its strides.
std::string Describe(const OpTask& task);

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_OP_TASK_H_
