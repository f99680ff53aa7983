#ifndef GRADSMITH_SOFTMAX_AXES_H_
#define GRADSMITH_SOFTMAX_AXES_H_

#include "gradsmith/tensor.h"
#include "patterns/rows.h"
#include "softmax/kernels.h"

namespace gradsmith::softmax {

using internal::RowsAxes;

/// AxesOf returns the dims of a row of X or Y.
inline RowsAxes AxesOf(const Attributes& attributes, const ConstTensorRef& tensor) {
  const int axis = static_cast<int>(attributes.axis);
  return internal::AxesFrom(axis, attributes.coerced ? tensor.dims.size() : axis + 1);
}

}  // namespace gradsmith::softmax

#endif  // GRADSMITH_SOFTMAX_AXES_H_
