#include "operands.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/stub.h"

namespace gradsmith::python {

namespace {

/// HasStrides returns whether the elements lie as these strides say; the stride of a dim of one
/// element says nothing.
bool HasStrides(const TensorRef& ref, const Strides& strides) {
  for (int i = 0; i < ref.rank(); ++i) {
    if (ref.dims[i] > 1 && ref.strides[i] != strides[i]) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool TellsPlace(const Argument& input) {
  return input.object.is_valid() && !input.may_be_on_host;
}

const Argument& FirstGiven(const std::vector<Argument>& inputs) {
  const auto found = std::find_if(inputs.begin(), inputs.end(), &TellsPlace);
  return found != inputs.end()
             ? *found
             : *std::find_if(inputs.begin(), inputs.end(), [](const Argument& input) {
                 return input.object.is_valid();
               });
}

const Argument& MostLike(const std::vector<Argument>& inputs, DataType type) {
  const auto found = std::find_if(inputs.begin(), inputs.end(), [type](const Argument& input) {
    return TellsPlace(input) && input.array.ref.type == type;
  });
  return found != inputs.end() ? *found : FirstGiven(inputs);
}

DataType ExpectedType(const Row& row, const TensorSpec& spec) {
  return spec.type_parameter < 0 ? spec.fixed_type : row.types[spec.type_parameter];
}

bool HasTypes(const Row& row, const std::vector<Argument>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].object.is_valid() &&
        inputs[i].array.ref.type != ExpectedType(row, row.op->inputs[i])) {
      return false;
    }
  }
  return true;
}

bool HasTypes(const Row& row, const std::vector<Output>& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const TensorRef& ref = outputs[i].array.ref;
    if (ref.present && ref.type != ExpectedType(row, row.op->outputs[i])) {
      return false;
    }
  }
  return true;
}

std::vector<DataType> BoundTypes(const OpSchema& op, const std::vector<Argument>& inputs) {
  std::vector<DataType> types(op.type_parameters.size(), DataType::kFloat);
  for (std::size_t i = inputs.size(); i-- > 0;) {
    if (inputs[i].object.is_valid() && op.inputs[i].type_parameter >= 0) {
      types[op.inputs[i].type_parameter] = inputs[i].array.ref.type;
    }
  }
  return types;
}

bool IsChannelsLast(const std::vector<Argument>& inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [](const Argument& input) {
    const TensorRef& ref = input.array.ref;
    return input.object.is_valid() && ref.rank() > 2 && NumElements(ref.dims) > 0 &&
           HasStrides(ref, ChannelsLastStrides(ref.dims)) &&
           !HasStrides(ref, ContiguousStrides(ref.dims));
  });
}

std::vector<ConstTensorRef> Refs(const std::vector<Argument>& inputs) {
  std::vector<ConstTensorRef> refs;
  refs.reserve(inputs.size());
  for (const Argument& input : inputs) {
    refs.push_back(input.held ? internal::HoldingShape(*input.held) : input.array.ref);
  }
  return refs;
}

std::vector<TensorRef> Refs(const std::vector<Output>& outputs) {
  std::vector<TensorRef> refs;
  refs.reserve(outputs.size());
  for (const Output& output : outputs) {
    refs.push_back(output.array.ref);
  }
  return refs;
}

}  // namespace gradsmith::python
