#ifndef GRADSMITH_CORE_STUB_H_
#define GRADSMITH_CORE_STUB_H_

#include <cstddef>
#include <limits>
#include <span>

#include "gradsmith/schema.h"

/// What the generated registration stubs call.
namespace gradsmith::internal {

/// IsComplete is true of a type that has been defined, not just declared.
template <typename T>
concept IsComplete = requires { sizeof(T); };

/// The bound of an attribute that has none.
inline constexpr double kUnbounded = std::numeric_limits<double>::infinity();

/// ArgumentAt returns the argument, or null where it is absent.
template <typename Ref>
const Ref* ArgumentAt(std::span<const Ref> arguments, std::size_t i) {
  return i < arguments.size() && arguments[i].present ? &arguments[i] : nullptr;
}

/// CallOnBackend calls the one of a combination's rows that is on the context's backend.
Status CallOnBackend(
    std::span<const Row> combination,
    const Context& context,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs);

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_STUB_H_
