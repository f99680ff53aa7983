#include "gradsmith/tensor.h"

#include <cstdint>
#include <string>

#include "core/text.h"

namespace gradsmith {

namespace {

template <typename Number>
std::string TextOf(const BasicList<Number>& list) {
  std::string text = "[";
  for (int i = 0; i < list.size(); ++i) {
    text += i == 0 ? "" : ", ";
    text += internal::ValueInError(list[i]);
  }
  if (list.too_long()) {
    text += ", ...";
  }
  return text + "]";
}

/// Saturating, so that absurd dims give a stride that validation refuses instead of one that
/// wrapped.
std::int64_t SaturatingProduct(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

}  // namespace

std::string ToString(const IntList& list) {
  return TextOf(list);
}

std::string ToString(const FloatList& list) {
  return TextOf(list);
}

Strides ContiguousStrides(const Dims& dims) {
  Strides strides = dims;
  std::int64_t step = 1;
  for (int i = dims.size() - 1; i >= 0; --i) {
    strides[i] = step;
    step = SaturatingProduct(step, dims[i]);
  }
  return strides;
}

Strides ChannelsLastStrides(const Dims& dims) {
  if (dims.size() < 2) {
    return ContiguousStrides(dims);
  }
  Strides strides = dims;
  strides[1] = 1;
  std::int64_t step = dims[1];
  for (int i = dims.size() - 1; i >= 2; --i) {
    strides[i] = step;
    step = SaturatingProduct(step, dims[i]);
  }
  strides[0] = step;
  return strides;
}

std::int64_t NumElements(const Dims& dims) {
  std::int64_t count = 1;
  bool overflow = false;
  bool empty = false;
  for (const std::int64_t dim : dims) {
    if (dim < 0) {
      return -1;
    }
    empty = empty || dim == 0;
    overflow = overflow || __builtin_mul_overflow(count, dim, &count);
  }
  if (empty) {
    return 0;
  }
  return overflow ? -1 : count;
}

}  // namespace gradsmith
