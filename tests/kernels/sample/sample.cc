#include <cstdint>
#include <type_traits>

#include "core/element.h"
#include "sample/kernels.h"

namespace gradsmith::sample {

namespace {

using internal::Accumulator;
using internal::Convert;

/// The rows of a tensor along an axis, by the dims on both sides of it.
struct Walk {
  Dims rows;  ///< the dims without the axis
  int axis = 0;

  /// OffsetOf returns where row `row` begins in a tensor with the axis.
  [[nodiscard]] std::int64_t OffsetOf(std::int64_t row, const Strides& strides, bool has_axis)
      const {
    std::int64_t offset = 0;
    for (int i = rows.size() - 1; i >= 0; --i) {
      offset += row % rows[i] * strides[i + (has_axis && i >= axis ? 1 : 0)];
      row /= rows[i];
    }
    return offset;
  }
};

template <typename T>
struct Terms {
  Accumulator<T> scale = 1;
  Accumulator<T> bias = 0;
  Accumulator<T> limit = 0;
};

template <typename T>
Terms<T> TermsOf(const Attributes& attributes) {
  double scale = (attributes.negate ? -1.0 : 1.0) * (attributes.unit == "two" ? 2.0 : 1.0);
  for (const double factor : attributes.factors) {
    scale *= factor;
  }
  return {
      static_cast<Accumulator<T>>(scale), static_cast<Accumulator<T>>(attributes.bias.value_or(0)),
      static_cast<Accumulator<T>>(attributes.limit)};
}

/// The element that is picked of a row; -1 where none is.
std::int64_t ElementOf(
    const Attributes& attributes,
    const Walk& walk,
    std::int64_t row,
    std::int64_t length,
    const ConstTensorRef& index,
    const ConstTensorRef* mask) {
  const std::int64_t element =
      static_cast<const std::int64_t*>(index.data)[walk.OffsetOf(row, index.strides, false)];
  const bool is_masked =
      mask != nullptr &&
      !static_cast<const bool*>(mask->data)[walk.OffsetOf(row, mask->strides, false)];
  const bool is_none = is_masked || element < 0 || element >= length ||
                       (attributes.ignore_index && element == *attributes.ignore_index);
  return is_none ? -1 : element;
}

template <typename T>
void RunPick(const Attributes& attributes, const Pick::Inputs& in, const Pick::Outputs& out) {
  const auto axis = static_cast<int>(attributes.axis);
  const Walk walk{in.index->dims, axis};
  const Terms<T> terms = TermsOf<T>(attributes);
  for (std::int64_t row = 0; row < NumElements(walk.rows); ++row) {
    const std::int64_t element =
        ElementOf(attributes, walk, row, in.X->dims[axis], *in.index, in.mask);
    Accumulator<T> value = 0;
    if (element >= 0) {
      const T* x = static_cast<const T*>(in.X->data) + walk.OffsetOf(row, in.X->strides, true);
      value = terms.scale * Convert<Accumulator<T>>(x[element * in.X->strides[axis]]) + terms.bias;
      value = value > terms.limit ? terms.limit : value;
    }
    static_cast<T*>(out.Y->data)[walk.OffsetOf(row, out.Y->strides, false)] = Convert<T>(value);
    if (out.hits != nullptr) {
      static_cast<std::int32_t*>(out.hits->data)[walk.OffsetOf(row, out.hits->strides, false)] =
          element >= 0 ? 1 : 0;
    }
  }
}

template <typename T>
void RunPickGrad(
    const Attributes& attributes,
    const PickGrad::Inputs& in,
    const PickGrad::Outputs& out) {
  const auto axis = static_cast<int>(attributes.axis);
  const Walk walk{in.index->dims, axis};
  const Terms<T> terms = TermsOf<T>(attributes);
  const std::int64_t length = in.X->dims[axis];
  for (std::int64_t row = 0; row < NumElements(walk.rows); ++row) {
    const std::int64_t picked = ElementOf(attributes, walk, row, length, *in.index, in.mask);
    const T* x = static_cast<const T*>(in.X->data) + walk.OffsetOf(row, in.X->strides, true);
    T* dx = static_cast<T*>(out.dX->data) + walk.OffsetOf(row, out.dX->strides, true);
    const T dy = static_cast<const T*>(in.dY->data)[walk.OffsetOf(row, in.dY->strides, false)];
    for (std::int64_t element = 0; element < length; ++element) {
      Accumulator<T> value = 0;
      if (element == picked) {
        const auto given = Convert<Accumulator<T>>(x[element * in.X->strides[axis]]);
        const bool is_clipped = terms.scale * given + terms.bias > terms.limit;
        value = is_clipped ? 0 : terms.scale * Convert<Accumulator<T>>(dy);
      }
      dx[element * out.dX->strides[axis]] = Convert<T>(value);
    }
  }
}

}  // namespace

Status Pick::RunCpu(
    const Context& /*context*/,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  internal::VisitFloatingType(inputs.X->type, [&]<typename T>(std::type_identity<T>) {
    RunPick<T>(attributes, inputs, outputs);
  });
  return {};
}

Status PickGrad::RunCpu(
    const Context& /*context*/,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  internal::VisitFloatingType(inputs.X->type, [&]<typename T>(std::type_identity<T>) {
    RunPickGrad<T>(attributes, inputs, outputs);
  });
  return {};
}

}  // namespace gradsmith::sample
