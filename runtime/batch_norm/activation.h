#ifndef GRADSMITH_BATCH_NORM_ACTIVATION_H_
#define GRADSMITH_BATCH_NORM_ACTIVATION_H_

#include <bit>
#include <cstdint>
#include <type_traits>

#include "batch_norm/kernels.h"

/// What follows batch normalization in the same op.
namespace gradsmith::batch_norm {

enum class Activation : unsigned char { kNone, kRelu };

/// KeepIf returns `value`, or 0 where it is not to be kept, on the way to an element of type T.
/// Which values are kept is as good as random, so that a branch would be slow; compilers make none
/// where nothing is converted to T afterwards.
template <typename T>
double KeepIf(bool keep, double value) {
  if constexpr (std::is_same_v<T, double>) {
    return keep ? value : 0;
  } else {
    const std::uint64_t mask = keep ? ~std::uint64_t{0} : 0;
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) & mask);
  }
}

/// ActivationOf returns what the gradient is taken through: there is an activation where B is
/// given.
inline Activation ActivationOf(const BatchNormalizationReluGrad::Inputs& inputs) {
  return inputs.B == nullptr ? Activation::kNone : Activation::kRelu;
}

/// WithoutActivation returns the inputs as those of a gradient with one, whose B is null.
inline BatchNormalizationReluGrad::Inputs WithoutActivation(
    const BatchNormalizationGrad::Inputs& inputs) {
  return {
      .dY = inputs.dY,
      .X = inputs.X,
      .scale = inputs.scale,
      .B = nullptr,
      .saved_mean = inputs.saved_mean,
      .saved_inv_std = inputs.saved_inv_std};
}

}  // namespace gradsmith::batch_norm

#endif  // GRADSMITH_BATCH_NORM_ACTIVATION_H_
