#include <array>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "conv/primitives.h"
#include "core/channels.h"
#include "core/element.h"

namespace gradsmith::conv {
namespace {

template <typename T>
void BackwardBiasOf(const Context& context, const ConstTensorRef& dY, const TensorRef& dB) {
  const auto term = [](std::int64_t, const std::array<double, 1>& values) {
    return internal::Sums{values[0], 0};
  };
  const std::vector<internal::Sums> sums = internal::SumChannels<T, 1>(context, {dY}, term);
  T* data = static_cast<T*>(dB.data);
  for (std::int64_t channel = 0; channel < dB.dims[0]; ++channel) {
    data[channel * dB.strides[0]] = internal::Convert<T>(sums[channel][0]);
  }
}

}  // namespace

void BackwardBias(const Context& context, const ConstTensorRef& dY, const TensorRef& dB) {
  internal::VisitFloatingType(
      dY.type, [&]<typename T>(std::type_identity<T>) { BackwardBiasOf<T>(context, dY, dB); });
}

}  // namespace gradsmith::conv
