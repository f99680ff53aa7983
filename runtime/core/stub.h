#ifndef GRADSMITH_CORE_STUB_H_
#define GRADSMITH_CORE_STUB_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "gradsmith/schema.h"

/// What the generated registration stubs call.
namespace gradsmith::internal {

/// IsComplete is true of a type that has been defined, not just declared.
template <typename T>
concept IsComplete = requires { sizeof(T); };

/// The bound of an attribute that may be any finite number.
inline constexpr double kUnbounded = std::numeric_limits<double>::max();

/// The bound of an attribute that may be infinite.
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// ArgumentAt returns the argument, or null where it is absent.
template <typename Ref>
const Ref* ArgumentAt(std::span<const Ref> arguments, std::size_t i) {
  return i < arguments.size() && arguments[i].present ? &arguments[i] : nullptr;
}

/// AxisFromStart returns an axis counted from the first of `rank` dims, from 0. A negative one
/// counts from the end.
constexpr std::int64_t AxisFromStart(std::int64_t axis, int rank) {
  return axis < 0 ? axis + rank : axis;
}

/// HoldingShape returns an input that holds these dims (TensorSpec::shape_of), which must outlive
/// it.
inline ConstTensorRef HoldingShape(const Dims& dims) {
  const int size = dims.too_long() ? kMaxRank + 1 : dims.size();
  return {DataType::kInt64, dims.begin(), Dims{size}};
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
