#ifndef GRADSMITH_TESTS_REFERENCE_SOFTMAX_H_
#define GRADSMITH_TESTS_REFERENCE_SOFTMAX_H_

#include "reference/oracle.h"

/// Oracles of the kernels in runtime/softmax/kernels.h.
namespace gradsmith::reference::softmax {

const Oracle& Softmax();
const Oracle& SoftmaxGrad();
const Oracle& LogSoftmax();
const Oracle& LogSoftmaxGrad();

}  // namespace gradsmith::reference::softmax

#endif  // GRADSMITH_TESTS_REFERENCE_SOFTMAX_H_
