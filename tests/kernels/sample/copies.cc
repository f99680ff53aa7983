#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <type_traits>
#include <vector>

#include "core/element.h"
#include "sample/elements.h"
#include "sample/kernels.h"

namespace gradsmith::sample {

namespace {

using internal::Accumulator;

template <typename T>
void RunBlendGrad(const BlendGrad::Inputs& in, const BlendGrad::Outputs& out) {
  if (out.dX != nullptr) {
    ForEachIndex(in.X->dims, [&](const Dims& index) {
      Store<T>(*out.dX, index, Load<T>(*in.dY, index) * Load<T>(*in.slope, index));
    });
  }
  if (out.dSlope == nullptr) {
    return;
  }
  const Dims& dims = in.slope->dims;
  std::vector<Accumulator<T>> sums(static_cast<std::size_t>(NumElements(dims)));
  TensorRef dense(kDataTypeOf<Accumulator<T>>, sums.data(), dims);
  ForEachIndex(in.X->dims, [&](const Dims& index) {
    sums[static_cast<std::size_t>(OffsetOf(dense, index))] +=
        Load<T>(*in.dY, index) * Load<T>(*in.X, index);
  });
  std::size_t next = 0;
  ForEachIndex(dims, [&](const Dims& index) { Store<T>(*out.dSlope, index, sums[next++]); });
}

bool IsWithin(const Dims& index, const Dims& dims) {
  for (int axis = 0; axis < dims.size(); ++axis) {
    if (index[axis] >= dims[axis]) {
      return false;
    }
  }
  return true;
}

/// The element of a tensor that is not broadcast; 0 outside of it.
template <typename T>
Accumulator<T> LoadWithin(const ConstTensorRef& tensor, const Dims& index) {
  return IsWithin(index, tensor.dims) ? Load<T>(tensor, index) : 0;
}

/// Copies what two tensors have in common, and zeros to the rest.
void CopyCommon(const ConstTensorRef& from, const TensorRef& to) {
  internal::VisitFloatingType(from.type, [&]<typename T>(std::type_identity<T>) {
    ForEachIndex(
        to.dims, [&](const Dims& index) { Store<T>(to, index, LoadWithin<T>(from, index)); });
  });
}

}  // namespace

Status Blend::RunCpu(
    const Context& /*context*/,
    const Attributes& /*attributes*/,
    const Inputs& inputs,
    const Outputs& outputs) {
  internal::VisitFloatingType(inputs.X->type, [&]<typename T>(std::type_identity<T>) {
    ForEachIndex(inputs.X->dims, [&](const Dims& index) {
      Store<T>(*outputs.Y, index, Load<T>(*inputs.X, index) * Load<T>(*inputs.slope, index));
    });
  });
  return {};
}

Status BlendGrad::RunCpu(
    const Context& /*context*/,
    const Attributes& /*attributes*/,
    const Inputs& inputs,
    const Outputs& outputs) {
  internal::VisitFloatingType(
      inputs.X->type, [&]<typename T>(std::type_identity<T>) { RunBlendGrad<T>(inputs, outputs); });
  return {};
}

Status Spread::RunCpu(
    const Context& /*context*/,
    const Attributes& /*attributes*/,
    const Inputs& inputs,
    const Outputs& outputs) {
  internal::VisitFloatingType(inputs.number->type, [&]<typename T>(std::type_identity<T>) {
    ForEachIndex(outputs.Y->dims, [&](const Dims& index) {
      Store<T>(*outputs.Y, index, Load<T>(*inputs.number, index));
    });
  });
  return {};
}

Status Crop::RunCpu(
    const Context& /*context*/,
    const Attributes& /*attributes*/,
    const Inputs& inputs,
    const Outputs& outputs) {
  if (!IsWithin(outputs.Y->dims, inputs.X->dims)) {
    for (int axis = 0; axis < outputs.Y->rank(); ++axis) {
      if (outputs.Y->dims[axis] > inputs.X->dims[axis]) {
        return InvalidArgument(
            "Y has dims " + ToString(outputs.Y->dims) + "; expected no more than those of X, " +
            ToString(inputs.X->dims));
      }
    }
  }
  CopyCommon(*inputs.X, *outputs.Y);
  return {};
}

Status CropGrad::RunCpu(
    const Context& /*context*/,
    const Attributes& /*attributes*/,
    const Inputs& inputs,
    const Outputs& outputs) {
  CopyCommon(*inputs.dY, *outputs.dX);
  return {};
}

Status Sift::RunCpu(
    const Context& /*context*/,
    const Attributes& /*attributes*/,
    const Inputs& inputs,
    const Outputs& outputs) {
  constexpr std::int64_t kBits = 32;
  const ConstTensorRef& X = *inputs.X;
  for (std::int64_t first = 0; first < X.dims[0]; first += kBits) {
    const Dims word{first / kBits};
    std::uint32_t bits = 0xFFFFFFFF;
    if (inputs.bits != nullptr) {
      bits = static_cast<const std::uint32_t*>(inputs.bits->data)[OffsetOf(*inputs.bits, word)];
    }
    std::uint32_t left = 0;
    for (std::int64_t i = first; i < std::min(first + kBits, X.dims[0]); ++i) {
      const float x = (bits >> (i - first) & 1) != 0 ? Load<float>(X, {i}) : 0;
      Store<float>(*outputs.Y, {i}, x);
      left |= x != 0 ? std::uint32_t{1} << (i - first) : 0;
    }
    if (outputs.left != nullptr) {
      static_cast<std::uint32_t*>(outputs.left->data)[OffsetOf(*outputs.left, word)] = left;
    }
  }
  return {};
}

Status Total::RunCpu(
    const Context& /*context*/,
    const Attributes& /*attributes*/,
    const Inputs& inputs,
    const Outputs& outputs) {
  static std::atomic<std::size_t> first = 0;  // where a call begins, another place each time
  internal::VisitFloatingType(inputs.X->type, [&]<typename T>(std::type_identity<T>) {
    std::vector<Accumulator<T>> values;
    ForEachIndex(
        inputs.X->dims, [&](const Dims& index) { values.push_back(Load<T>(*inputs.X, index)); });
    const std::size_t begin = first++ % std::max<std::size_t>(values.size(), 1);
    std::rotate(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(begin), values.end());
    Store<T>(*outputs.Y, {}, std::accumulate(values.begin(), values.end(), Accumulator<T>{0}));
  });
  return {};
}

}  // namespace gradsmith::sample
