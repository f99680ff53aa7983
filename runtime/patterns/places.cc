#include "patterns/places.h"

#include <string>
#include <type_traits>

#include "core/element.h"

namespace gradsmith::internal {

namespace {

/// The indices of an element of the dims, of which the last run fastest, as in "[2, 0]".
std::string IndicesOf(std::int64_t element, const Dims& dims) {
  std::string text;
  for (int dim = dims.size() - 1; dim >= 0; --dim) {
    text.insert(0, std::to_string(element % dims[dim]) + (text.empty() ? "" : ", "));
    element /= dims[dim];
  }
  return "[" + text + "]";
}

std::int64_t OffsetOf(std::int64_t element, const ConstTensorRef& tensor) {
  std::int64_t offset = 0;
  for (int dim = tensor.dims.size() - 1; dim >= 0; --dim) {
    offset += element % tensor.dims[dim] * tensor.strides[dim];
    element /= tensor.dims[dim];
  }
  return offset;
}

std::string Expected(const PlacesAlong& places, const NeverRefused& allowed) {
  const std::string along = std::string(places.dim);
  std::string text = places.count == 0 ? "none, for " + along + " is 0"
                                       : "0 to " + std::to_string(places.count - 1) +
                                             ", the places along " + along;
  if (allowed.value) {
    text += ", or " + std::string(allowed.attribute) + ", " + std::to_string(*allowed.value);
  }
  return text;
}

}  // namespace

Status CheckPlaces(
    std::string_view name,
    const ConstTensorRef* integers,
    const PlacesAlong& places,
    const NeverRefused& allowed) {
  if (integers == nullptr) {
    return {};
  }
  return VisitIntegerType(integers->type, [&]<typename T>(std::type_identity<T> /*type*/) {
    const T* const data = static_cast<const T*>(integers->data);
    const std::int64_t count = NumElements(integers->dims);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::int64_t>(data[OffsetOf(i, *integers)]);
      if ((at < 0 || at >= places.count) && at != allowed.value) {
        return InvalidArgument(
            std::string(name) + IndicesOf(i, integers->dims) + " is " + std::to_string(at) +
            "; expected " + Expected(places, allowed));
      }
    }
    return Status();
  });
}

}  // namespace gradsmith::internal
