#ifndef GRADSMITH_BATCH_NORM_ACTIVATION_H_
#define GRADSMITH_BATCH_NORM_ACTIVATION_H_

#include "batch_norm/kernels.h"

/// What follows batch normalization in the same op.
namespace gradsmith::batch_norm {

enum class Activation : unsigned char { kNone, kRelu };

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
