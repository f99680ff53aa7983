#ifndef GRADSMITH_TESTS_REFERENCE_LAYER_NORM_H_
#define GRADSMITH_TESTS_REFERENCE_LAYER_NORM_H_

#include "reference/oracle.h"

/// Oracles of the kernels in runtime/layer_norm/kernels.h.
namespace gradsmith::reference::layer_norm {

const Oracle& LayerNormalization();
const Oracle& LayerNormalizationGrad();
const Oracle& SimplifiedLayerNormalization();
const Oracle& SimplifiedLayerNormalizationGrad();

}  // namespace gradsmith::reference::layer_norm

#endif  // GRADSMITH_TESTS_REFERENCE_LAYER_NORM_H_
