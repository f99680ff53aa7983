#ifndef GRADSMITH_TESTS_REFERENCE_BATCH_NORM_H_
#define GRADSMITH_TESTS_REFERENCE_BATCH_NORM_H_

#include "reference/oracle.h"

/// Oracles of the kernels in runtime/batch_norm/kernels.h.
namespace gradsmith::reference::batch_norm {

const Oracle& BatchNormalization();
const Oracle& BatchNormalizationGrad();
const Oracle& BatchNormalizationRelu();
const Oracle& BatchNormalizationReluGrad();

}  // namespace gradsmith::reference::batch_norm

#endif  // GRADSMITH_TESTS_REFERENCE_BATCH_NORM_H_
