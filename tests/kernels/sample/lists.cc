#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include "core/element.h"
#include "core/host_number.h"
#include "sample/elements.h"
#include "sample/kernels.h"

namespace gradsmith::sample {

namespace {

using internal::Accumulator;

/// Copies a part to where it stands in the whole, or what stands there to the part.
template <typename T>
void CopyPart(const ConstTensorRef& from, const TensorRef& to, int axis, std::int64_t begin) {
  const bool is_from_whole = from.dims[axis] > to.dims[axis];
  ForEachIndex(is_from_whole ? to.dims : from.dims, [&](const Dims& index) {
    Dims in_whole = index;
    in_whole[axis] += begin;
    Store<T>(to, is_from_whole ? index : in_whole, Load<T>(from, is_from_whole ? in_whole : index));
  });
}

template <typename T>
void DescendOne(
    const Descend::Inputs& in,
    const Descend::Outputs& out,
    std::size_t i,
    float rate,
    float momentum) {
  const float scale = in.scale[i].present ? *static_cast<const float*>(in.scale[i].data) : 1.0F;
  ForEachIndex(in.W[i].dims, [&](const Dims& index) {
    const float velocity =
        momentum * Load<float>(in.V[i], index) + scale * Load<T>(in.dW[i], index);
    Store<T>(out.new_W[i], index, Load<T>(in.W[i], index) - rate * velocity);
    if (out.new_V[i].present) {
      Store<float>(out.new_V[i], index, velocity);
    }
  });
}

}  // namespace

Status Concat::RunCpu(
    const Context& /*context*/,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  const auto axis = static_cast<int>(attributes.axis);
  std::int64_t begin = 0;
  for (const ConstTensorRef& part : inputs.X) {
    internal::VisitFloatingType(part.type, [&]<typename T>(std::type_identity<T>) {
      CopyPart<T>(part, *outputs.Y, axis, begin);
    });
    begin += part.dims[axis];
  }
  return {};
}

Status ConcatGrad::RunCpu(
    const Context& /*context*/,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  const auto axis = static_cast<int>(attributes.axis);
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < inputs.X.size(); ++i) {
    if (outputs.dX[i].present) {
      internal::VisitFloatingType(inputs.dY->type, [&]<typename T>(std::type_identity<T>) {
        CopyPart<T>(*inputs.dY, outputs.dX[i], axis, begin);
      });
    }
    begin += inputs.X[i].dims[axis];
  }
  return {};
}

Status Sum::RunCpu(
    const Context& /*context*/,
    const Attributes& /*attributes*/,
    const Inputs& inputs,
    const Outputs& outputs) {
  internal::VisitFloatingType(outputs.Y->type, [&]<typename T>(std::type_identity<T>) {
    ForEachIndex(outputs.Y->dims, [&](const Dims& index) {
      Accumulator<T> sum = 0;
      for (const ConstTensorRef& term : inputs.X) {
        sum += Load<T>(term, index);
      }
      Store<T>(*outputs.Y, index, sum);
    });
  });
  return {};
}

Status Descend::RunCpu(
    const Context& /*context*/,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  const std::optional<double> rate = internal::NumberOnHost(*inputs.rate);
  if (!rate) {
    return Internal("the rate does not lie on the host");
  }
  for (std::size_t i = 0; i < inputs.W.size(); ++i) {
    const auto momentum = static_cast<float>(attributes.momentum);
    internal::VisitFloatingType(inputs.W[i].type, [&]<typename T>(std::type_identity<T>) {
      if constexpr (!std::is_same_v<T, double>) {
        DescendOne<T>(inputs, outputs, i, static_cast<float>(*rate), momentum);
      }
    });
  }
  return {};
}

}  // namespace gradsmith::sample
