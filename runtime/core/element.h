#ifndef GRADSMITH_CORE_ELEMENT_H_
#define GRADSMITH_CORE_ELEMENT_H_

#include <cstdint>
#include <cstdlib>
#include <type_traits>
#include <utility>

#include "gradsmith/types.h"

namespace gradsmith::internal {

/// Accumulator is what products of T are summed in: double for double, float for all others.
template <typename T>
using Accumulator = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// Convert rounds once, to nearest, ties to even.
template <typename To, typename From>
To Convert(From value) {
  if constexpr (std::is_floating_point_v<From>) {
    return static_cast<To>(value);
  } else {
    // Exact: a float holds every number of 16 bits.
    return static_cast<To>(static_cast<float>(value));
  }
}

/// VisitDataType calls visitor(std::type_identity<T>{}) with the C++ type T of `type`.
template <typename Visitor>
decltype(auto) VisitDataType(DataType type, Visitor&& visitor) {
  switch (type) {
#define GRADSMITH_VISIT(enumerator, type, name, dlpack_code, torch_type) \
  case DataType::enumerator:                                             \
    return std::forward<Visitor>(visitor)(std::type_identity<type>{});
    GRADSMITH_ELEMENT_TYPES(GRADSMITH_VISIT)
#undef GRADSMITH_VISIT
  }
  std::abort();  // no enumerator
}

/// VisitFloatingType is VisitDataType for a type that is floating, so that the visitor need take no
/// other.
template <typename Visitor>
decltype(auto) VisitFloatingType(DataType type, Visitor&& visitor) {
  switch (type) {
    case DataType::kFloat:
      return std::forward<Visitor>(visitor)(std::type_identity<float>{});
    case DataType::kDouble:
      return std::forward<Visitor>(visitor)(std::type_identity<double>{});
    case DataType::kMLFloat16:
      return std::forward<Visitor>(visitor)(std::type_identity<MLFloat16>{});
    default:
      break;
  }
  return std::forward<Visitor>(visitor)(std::type_identity<BFloat16>{});
}

/// VisitIntegerType is the same for a type that is not floating.
template <typename Visitor>
decltype(auto) VisitIntegerType(DataType type, Visitor&& visitor) {
  switch (type) {
    case DataType::kInt32:
      return std::forward<Visitor>(visitor)(std::type_identity<std::int32_t>{});
    case DataType::kInt64:
      return std::forward<Visitor>(visitor)(std::type_identity<std::int64_t>{});
    case DataType::kUint32:
      return std::forward<Visitor>(visitor)(std::type_identity<std::uint32_t>{});
    default:
      break;
  }
  // A bool may be any byte: what is not 0 is true.
  return std::forward<Visitor>(visitor)(std::type_identity<std::uint8_t>{});
}

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_ELEMENT_H_
