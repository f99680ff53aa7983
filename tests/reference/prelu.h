#ifndef GRADSMITH_TESTS_REFERENCE_PRELU_H_
#define GRADSMITH_TESTS_REFERENCE_PRELU_H_

#include "reference/oracle.h"

/// Oracles of the kernels in runtime/prelu/kernels.h.
namespace gradsmith::reference::prelu {

const Oracle& PRelu();
const Oracle& PReluGrad();

}  // namespace gradsmith::reference::prelu

#endif  // GRADSMITH_TESTS_REFERENCE_PRELU_H_
