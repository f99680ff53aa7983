#ifndef GRADSMITH_TESTS_REFERENCE_CONV_H_
#define GRADSMITH_TESTS_REFERENCE_CONV_H_

#include "reference/oracle.h"

/// Oracles of the kernels in runtime/conv/kernels.h.
namespace gradsmith::reference::conv {

const Oracle& Conv();
const Oracle& ConvGrad();
const Oracle& ConvTranspose();
const Oracle& ConvTransposeGrad();

}  // namespace gradsmith::reference::conv

#endif  // GRADSMITH_TESTS_REFERENCE_CONV_H_
