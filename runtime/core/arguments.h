#ifndef GRADSMITH_CORE_ARGUMENTS_H_
#define GRADSMITH_CORE_ARGUMENTS_H_

#include <span>
#include <string>
#include <string_view>

#include "gradsmith/status.h"
#include "gradsmith/tensor.h"
#include "gradsmith/types.h"

/// What kernels compare of their arguments' dims and types, though the generator has proved that an
/// op's entry fits: memory is at stake.
namespace gradsmith::internal {

/// DimsOrNull returns an argument's dims; null where it is absent.
template <typename Ref>
const Dims* DimsOrNull(const Ref* tensor) {
  return tensor != nullptr && tensor->present ? &tensor->dims : nullptr;
}

/// Unconst returns an input as what lists of operands hold, inputs and outputs alike. Whoever lists
/// it does not write to it. It is not added to.
inline TensorRef Unconst(const ConstTensorRef& tensor) {
  return {tensor.type, const_cast<void*>(tensor.data), tensor.dims, tensor.strides, tensor.device};
}

/// OperandOrAbsent returns a kernel's argument as lists of operands hold it; null stands for an
/// absent one.
inline TensorRef OperandOrAbsent(const ConstTensorRef* tensor) {
  return tensor == nullptr || !tensor->present ? TensorRef() : Unconst(*tensor);
}
inline TensorRef OperandOrAbsent(const TensorRef* tensor) {
  return tensor == nullptr || !tensor->present ? TensorRef() : *tensor;
}

/// Argument is an op's argument, and the dims and the element type that it must have. It holds
/// none of the dims.
struct Argument {
  std::string_view name;
  const Dims* dims = nullptr;  ///< null where it is absent
  DataType type = DataType::kFloat;
  const Dims* expected_dims = nullptr;
  DataType expected_type = DataType::kFloat;
};

/// MakeArgument takes a kernel's argument, which may be null.
template <typename Ref>
Argument MakeArgument(
    std::string_view name,
    const Ref* tensor,
    const Dims& expected_dims,
    DataType expected_type) {
  const Dims* dims = DimsOrNull(tensor);
  return {
      .name = name,
      .dims = dims,
      .type = dims == nullptr ? expected_type : tensor->type,
      .expected_dims = &expected_dims,
      .expected_type = expected_type};
}
/// The dims must outlive what is made.
template <typename Ref>
Argument MakeArgument(std::string_view, const Ref*, Dims&&, DataType) = delete;

/// HasWrongDims returns whether an argument is there and has other dims than expected.
inline bool HasWrongDims(const Argument& argument) {
  return argument.dims != nullptr && !(*argument.dims == *argument.expected_dims);
}

/// WrongDims is the error of an argument with other dims than expected; `why` ends its sentence.
inline Status
WrongDims(std::string_view name, const Dims& dims, const Dims& expected, std::string_view why) {
  return InvalidArgument(
      std::string(name) + " has shape " + ToString(dims) + "; expected " + ToString(expected) +
      std::string(why));
}

/// CheckTypes returns the error of the first argument that is read as another type than its own.
inline Status CheckTypes(std::span<const Argument> arguments, std::string_view types) {
  for (const Argument& argument : arguments) {
    if (argument.type != argument.expected_type) {
      return Internal(
          std::string(argument.name) + " has type " + std::string(ToString(argument.type)) +
          "; expected " + std::string(ToString(argument.expected_type)) + ": the kernel takes " +
          std::string(types));
    }
  }
  return {};
}

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_ARGUMENTS_H_
