#include "core/shape_text.h"

#include <string>
#include <string_view>

namespace gradsmith::internal {

std::string ShapeText(std::string_view name, const Dims& dims) {
  return std::string(name) + " has shape " + ToString(dims);
}

std::string ShapeText(const TensorSpec& tensor, const Dims& dims) {
  if (tensor.shape_of.empty()) {
    return ShapeText(tensor.name, dims);
  }
  return std::string(tensor.name) + " gives " + std::string(tensor.shape_of) + " the shape " +
         ToString(dims);
}

std::string RangeText(int minimum, int maximum) {
  return minimum == maximum ? std::to_string(minimum)
                            : std::to_string(minimum) + " to " + std::to_string(maximum);
}

}  // namespace gradsmith::internal
