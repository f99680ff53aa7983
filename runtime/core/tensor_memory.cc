#include "core/tensor_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/overlap.h"
#include "core/text.h"

namespace gradsmith::internal {

namespace {

/// A GPU that loads or stores across an element's boundary faults, and all that comes after fails.
Status CheckAlignment(std::string_view name, const ConstTensorRef& tensor) {
  const std::size_t size = SizeOf(tensor.type);
  const std::size_t past = reinterpret_cast<std::uintptr_t>(tensor.data) % size;
  if (past == 0) {
    return {};
  }
  return InvalidArgument(
      std::string(name) + " has data " + Counted(static_cast<std::int64_t>(past), "byte") +
      " past a multiple of " + std::to_string(size) + "; expected it aligned to its elements of " +
      std::to_string(size) + " bytes (" + std::string(ToString(tensor.type)) + ")");
}

bool IsNegative(std::int64_t number) {
  return number < 0;
}

/// The error of a tensor that has a negative dim or stride. It names a dim where there is one,
/// since strides that were derived from a negative dim are negative as well.
Status NegativeError(std::string_view name, const ConstTensorRef& tensor) {
  const bool is_dim = std::any_of(tensor.dims.begin(), tensor.dims.end(), IsNegative);
  const IntList& list = is_dim ? tensor.dims : tensor.strides;
  const auto* negative = std::find_if(list.begin(), list.end(), IsNegative);
  return InvalidArgument(
      std::string(name) + " has " + (is_dim ? "dims " : "strides ") + ToString(list) +
      ", negative at dimension " + std::to_string(negative - list.begin()) +
      "; expected 0 or more");
}

}  // namespace

std::size_t SpanBytes(const ConstTensorRef& tensor) {
  return NumElements(tensor.dims) == 0
             ? 0
             : static_cast<std::size_t>(LastOffset(tensor) + 1) * SizeOf(tensor.type);
}

Status CheckMemory(std::string_view name, const ConstTensorRef& tensor, bool may_be_null) {
  if (tensor.strides.size() != tensor.dims.size() || tensor.strides.too_long()) {
    return InvalidArgument(
        std::string(name) + " has " + Counted(tensor.strides.size(), "stride") + " " +
        ToString(tensor.strides) + " for " + Counted(tensor.rank(), "dim") + " " +
        ToString(tensor.dims) + "; expected one for each");
  }
  if (std::any_of(tensor.dims.begin(), tensor.dims.end(), IsNegative) ||
      std::any_of(tensor.strides.begin(), tensor.strides.end(), IsNegative)) {
    return NegativeError(name, tensor);
  }
  const std::int64_t count = NumElements(tensor.dims);
  if (count < 0 || (count > 0 && LastOffset(tensor) < 0)) {
    return InvalidArgument(
        std::string(name) + " has dims " + ToString(tensor.dims) + " and strides " +
        ToString(tensor.strides) + ", which reach past 2^59 elements; expected fewer");
  }
  if (count == 0) {
    return {};
  }
  if (tensor.data == nullptr && may_be_null) {
    return {};
  }
  if (tensor.data == nullptr) {
    return InvalidArgument(
        std::string(name) + " has null data; expected " + Counted(count, "element") + ", dims " +
        ToString(tensor.dims));
  }
  return CheckAlignment(name, tensor);
}

Status CheckNotShared(std::string_view name, const ConstTensorRef& output) {
  if (!OverlapsItself(output)) {
    return {};
  }
  return InvalidArgument(
      "output " + std::string(name) + " has dims " + ToString(output.dims) + " and strides " +
      ToString(output.strides) +
      ", in which elements share memory; expected strides that do not overlap");
}

Status CheckDisjoint(
    std::string_view name,
    const ConstTensorRef& output,
    const RoleAndName& other_name,
    const ConstTensorRef& other) {
  if (!Overlap(output, other)) {
    return {};
  }
  return InvalidArgument(
      "output " + std::string(name) + " overlaps " + std::string(other_name.role) + " " +
      std::string(other_name.name) + " in memory; expected memory of its own");
}

}  // namespace gradsmith::internal
