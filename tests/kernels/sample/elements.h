#ifndef GRADSMITH_TESTS_KERNELS_SAMPLE_ELEMENTS_H_
#define GRADSMITH_TESTS_KERNELS_SAMPLE_ELEMENTS_H_

#include <cstdint>

#include "core/element.h"
#include "gradsmith/tensor.h"

/// How the sample kernels get at the elements of their tensors.
namespace gradsmith::sample {

/// Calls visit(index) with each index into dims, the last dim fastest.
template <typename Visit>
void ForEachIndex(const Dims& dims, Visit visit) {
  Dims index = Dims::Filled(dims.size(), 0);
  for (std::int64_t i = 0; i < NumElements(dims); ++i) {
    visit(index);
    for (int axis = dims.size() - 1; axis >= 0 && ++index[axis] == dims[axis]; --axis) {
      index[axis] = 0;
    }
  }
}

/// OffsetOf returns where an element is of a tensor that is broadcast to the dims that the index
/// goes by.
template <typename Ref>
std::int64_t OffsetOf(const Ref& tensor, const Dims& index) {
  std::int64_t offset = 0;
  const int missing = index.size() - tensor.rank();
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    offset += tensor.dims[axis] == 1 ? 0 : index[missing + axis] * tensor.strides[axis];
  }
  return offset;
}

template <typename T>
internal::Accumulator<T> Load(const ConstTensorRef& tensor, const Dims& index) {
  return internal::Convert<internal::Accumulator<T>>(
      static_cast<const T*>(tensor.data)[OffsetOf(tensor, index)]);
}

template <typename T>
void Store(const TensorRef& tensor, const Dims& index, internal::Accumulator<T> value) {
  static_cast<T*>(tensor.data)[OffsetOf(tensor, index)] = internal::Convert<T>(value);
}

}  // namespace gradsmith::sample

#endif  // GRADSMITH_TESTS_KERNELS_SAMPLE_ELEMENTS_H_
