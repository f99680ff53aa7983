#ifndef GRADSMITH_CORE_ARGUMENT_DIMS_H_
#define GRADSMITH_CORE_ARGUMENT_DIMS_H_

#include <string>
#include <string_view>

#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

/// What kernels compare of their arguments' dims.
namespace gradsmith::internal {

/// DimsOrNull returns an argument's dims; null where it is absent.
template <typename Ref>
const Dims* DimsOrNull(const Ref* tensor) {
  return tensor != nullptr && tensor->present ? &tensor->dims : nullptr;
}

/// WrongDims is the error of an argument with other dims than expected; `why` ends its sentence.
inline Status
WrongDims(std::string_view name, const Dims& dims, const Dims& expected, std::string_view why) {
  return InvalidArgument(
      std::string(name) + " has shape " + ToString(dims) + "; expected " + ToString(expected) +
      std::string(why));
}

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_ARGUMENT_DIMS_H_
