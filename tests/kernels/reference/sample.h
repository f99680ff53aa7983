#ifndef GRADSMITH_TESTS_KERNELS_REFERENCE_SAMPLE_H_
#define GRADSMITH_TESTS_KERNELS_REFERENCE_SAMPLE_H_

#include "reference/oracle.h"

/// Oracles of the kernels in tests/kernels/sample/kernels.h.
namespace gradsmith::reference::sample {

const Oracle& Pick();
const Oracle& PickGrad();
const Oracle& Blend();
const Oracle& BlendGrad();
const Oracle& Spread();
const Oracle& Crop();
const Oracle& CropGrad();
const Oracle& Sift();
const Oracle& Total();
const Oracle& Concat();
const Oracle& ConcatGrad();
const Oracle& Sum();
const Oracle& Descend();

}  // namespace gradsmith::reference::sample

#endif  // GRADSMITH_TESTS_KERNELS_REFERENCE_SAMPLE_H_
