#ifndef GRADSMITH_CORE_SHAPE_TEXT_H_
#define GRADSMITH_CORE_SHAPE_TEXT_H_

#include <string>
#include <string_view>

#include "gradsmith/schema.h"
#include "gradsmith/tensor.h"

namespace gradsmith::internal {

/// ShapeText returns "X has shape [2, 3]".
std::string ShapeText(std::string_view name, const Dims& dims);

/// ShapeText of an input that may hold a shape: "X gives Y the shape [2, 3]".
std::string ShapeText(const TensorSpec& tensor, const Dims& dims);

/// RangeText returns "3" or "1 to 3".
std::string RangeText(int minimum, int maximum);

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_SHAPE_TEXT_H_
