#ifndef GRADSMITH_TESTS_REFERENCE_ELEMENTWISE_H_
#define GRADSMITH_TESTS_REFERENCE_ELEMENTWISE_H_

#include "reference/oracle.h"

/// Oracles of the kernels in runtime/elementwise/kernels.h.
namespace gradsmith::reference::elementwise {

const Oracle& Sigmoid();
const Oracle& SigmoidGrad();
const Oracle& LeakyRelu();
const Oracle& LeakyReluGrad();

}  // namespace gradsmith::reference::elementwise

#endif  // GRADSMITH_TESTS_REFERENCE_ELEMENTWISE_H_
