#include "patterns/conditional_arguments.h"

#include <cstddef>

#include "core/arguments.h"
#include "core/stub.h"

namespace gradsmith::internal {

ConditionalArguments::ConditionalArguments(
    std::span<const ConstTensorRef> inputs,
    int input_count,
    std::span<const TensorRef> outputs,
    int output_count) {
  for (int i = 0; i < input_count; ++i) {
    inputs_.push_back(OperandOrAbsent(ArgumentAt(inputs, static_cast<std::size_t>(i))));
  }
  for (int i = 0; i < output_count; ++i) {
    outputs_.push_back(OperandOrAbsent(ArgumentAt(outputs, static_cast<std::size_t>(i))));
  }
}

void ConditionalArguments::Spread(
    int input,
    const NamedDims& dims,
    const IntList& own_names,
    unsigned names) {
  if (inputs_[input].present) {
    inputs_[input] = dims.Spread(Unconst(inputs_[input]), own_names, names);
  }
}

void ConditionalArguments::Divide(int output, bool is_other) {
  TensorRef& here = outputs_[output];
  outputs_.push_back(is_other ? here : TensorRef());
  if (is_other) {
    outputs_[output] = TensorRef();
  }
}

}  // namespace gradsmith::internal
