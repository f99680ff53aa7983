#ifndef GRADSMITH_TESTS_REFERENCE_POOL_H_
#define GRADSMITH_TESTS_REFERENCE_POOL_H_

#include "reference/oracle.h"

/// Oracles of the kernels in runtime/pool/kernels.h.
namespace gradsmith::reference::pool {

const Oracle& MaxPool();
const Oracle& MaxPoolGrad();
const Oracle& MaxPoolXYGrad();
const Oracle& AveragePool();
const Oracle& AveragePoolGrad();
const Oracle& GlobalMaxPool();
const Oracle& GlobalMaxPoolGrad();
const Oracle& GlobalAveragePool();
const Oracle& GlobalAveragePoolGrad();

}  // namespace gradsmith::reference::pool

#endif  // GRADSMITH_TESTS_REFERENCE_POOL_H_
