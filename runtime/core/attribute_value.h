#ifndef GRADSMITH_CORE_ATTRIBUTE_VALUE_H_
#define GRADSMITH_CORE_ATTRIBUTE_VALUE_H_

#include <cstddef>
#include <optional>

#include "gradsmith/schema.h"

namespace gradsmith::internal {

/// AttributeAt returns the attribute's field in the op's attributes struct.
template <typename T>
const T& AttributeAt(const AttributeSpec& spec, const void* attributes) {
  return *reinterpret_cast<const T*>(static_cast<const std::byte*>(attributes) + spec.offset);
}

/// FindAttribute returns the attribute's value; null where it is optional and absent.
template <typename T>
const T* FindAttribute(const AttributeSpec& spec, const void* attributes) {
  if (!spec.optional) {
    return &AttributeAt<T>(spec, attributes);
  }
  const auto& value = AttributeAt<std::optional<T>>(spec, attributes);
  return value ? &*value : nullptr;
}

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_ATTRIBUTE_VALUE_H_
