#ifndef GRADSMITH_CORE_HOST_NUMBER_H_
#define GRADSMITH_CORE_HOST_NUMBER_H_

#include <optional>
#include <type_traits>

#include "core/element.h"
#include "gradsmith/tensor.h"

namespace gradsmith::internal {

/// NumberOnHost returns the value of a floating number that may lie on the host
/// (TensorSpec::may_be_on_host), and nothing where it lies on a device, whose kernels then read it
/// there. What is read here is read when the call is made: a graph that is captured keeps it.
inline std::optional<double> NumberOnHost(const ConstTensorRef& number) {
  if (number.device != Device{}) {
    return std::nullopt;
  }
  double value = 0;
  VisitFloatingType(number.type, [&]<typename T>(std::type_identity<T>) {
    value = Convert<double>(*static_cast<const T*>(number.data));
  });
  return value;
}

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_HOST_NUMBER_H_
