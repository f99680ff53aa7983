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
#define GRADSMITH_VISIT(enumerator, type, name, dlpack_code, torch_type) \
  case DataType::enumerator:                                             \
    if constexpr (IsFloating(DataType::enumerator)) {                    \
      return std::forward<Visitor>(visitor)(std::type_identity<type>{}); \
    }                                                                    \
    break;
    GRADSMITH_ELEMENT_TYPES(GRADSMITH_VISIT)
#undef GRADSMITH_VISIT
  }
  std::abort();  // the type is not floating
}

/// StoredInteger is what an element of an integer type, or a truth value, is read as: a bool may be
/// any byte, of which all but 0 are true.
template <typename T>
using StoredInteger = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

/// VisitIntegerType is the same for a type that is not floating, with its StoredInteger.
template <typename Visitor>
decltype(auto) VisitIntegerType(DataType type, Visitor&& visitor) {
  switch (type) {
#define GRADSMITH_VISIT(enumerator, type, name, dlpack_code, torch_type)                \
  case DataType::enumerator:                                                            \
    /* NOLINTBEGIN(bugprone-macro-parentheses) type is the name of one */               \
    if constexpr (!IsFloating(DataType::enumerator)) {                                  \
      return std::forward<Visitor>(visitor)(std::type_identity<StoredInteger<type>>{}); \
    }                                                                                   \
    /* NOLINTEND(bugprone-macro-parentheses) */                                         \
    break;
    GRADSMITH_ELEMENT_TYPES(GRADSMITH_VISIT)
#undef GRADSMITH_VISIT
  }
  std::abort();  // the type is floating
}

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_ELEMENT_H_
